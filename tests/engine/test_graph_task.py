"""What one pass remembers."""

import pytest

from gradviz.engine.graph_task import (
    CPU_DEVICE,
    NO_DEVICE,
    Capture,
    ExecInfo,
    Shutdown,
    WakeUp,
    describe,
)
from gradviz.engine.schedule import (
    DEPTH_SHIFT,
    SHUTDOWN_PRIORITY,
    WAKE_UP_PRIORITY,
)
from tests.engine.nodes import Listener, Sink, new_graph_task


def test_the_constants_are_pytorchs():
    """L1."""
    assert (NO_DEVICE, CPU_DEVICE) == (-2, -1)


def test_ids_grow_from_task_to_task():
    """G8: an inner pass has its parent's id plus one."""
    first, second = new_graph_task(), new_graph_task()

    assert second.id == first.id + 1


class TestErrors:
    def test_the_first_error_wins(self):
        """R1, R2."""
        task, first, second = (
            new_graph_task(),
            ValueError("first"),
            ValueError("second"),
        )

        assert task.set_error(first, None)
        assert not task.set_error(second, None)

        assert task.error is first
        assert task.has_error.value

    def test_only_the_first_error_is_reported_with_its_node(self):
        """R1."""
        listener, node = Listener(), Sink()
        task = new_graph_task(probe=listener)

        task.set_error(ValueError("first"), node)
        task.set_error(ValueError("second"), None)

        failures = listener.of("task_failed", "task", "node", "error")
        assert failures == [(task.id, node.id, "ValueError: first")]

    def test_an_error_of_no_node_is_reported_without_one(self):
        listener = Listener()
        task = new_graph_task(probe=listener)

        task.set_error(KeyboardInterrupt(), None)

        failures = listener.of("task_failed", "node", "error")
        assert failures == [(-1, "KeyboardInterrupt")]

    def test_an_error_is_described_in_one_line(self):
        assert describe(ValueError("one\ntwo")) == "ValueError: one"
        assert describe(KeyboardInterrupt()) == "KeyboardInterrupt"


class TestExecInfo:
    def test_an_unrestricted_pass_runs_everything(self):
        """I1."""
        assert new_graph_task().should_execute(Sink())

    def test_a_restricted_pass_runs_what_is_needed_or_captured(self):
        """I1, I6."""
        task = new_graph_task()
        needed, captured, neither = Sink(), Sink(), Sink()
        task.exec_info = {one: ExecInfo() for one in (needed, captured, neither)}
        task.exec_info[needed].is_needed = True
        task.exec_info[captured].captures.append(Capture(0, 0))

        asked = [task.should_execute(one) for one in (needed, captured, neither)]

        assert asked == [True, True, False]
        assert not task.should_execute(Sink())


class TestTasks:
    """Q1, Q2, Q6: what a ready queue holds."""

    def test_a_node_comes_by_the_depth_of_its_pass(self):
        assert new_graph_task(reentrant_depth=3).priority == 3 << DEPTH_SHIFT

    @pytest.mark.parametrize("ends_pass", [True, False])
    def test_a_wake_up_has_a_pass_and_no_node(self, ends_pass: bool):
        """M5."""
        graph_task = new_graph_task(reentrant_depth=9_000)

        task = WakeUp(graph_task, ends_pass=ends_pass)

        assert (task.graph_task, task.node) == (graph_task, None)
        assert task.ends_pass is ends_pass
        assert graph_task.priority < task.priority == WAKE_UP_PRIORITY

    def test_a_shutdown_has_neither_and_comes_first(self):
        """Q6."""
        task = Shutdown()

        assert (task.graph_task, task.node) == (None, None)
        assert task.priority == SHUTDOWN_PRIORITY > WAKE_UP_PRIORITY
