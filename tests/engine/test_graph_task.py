"""What one pass remembers."""

from collections.abc import Callable
from typing import Any

import pytest

from gradviz.engine.graph_task import (
    CPU_DEVICE,
    NO_DEVICE,
    Capture,
    ExecInfo,
    GraphTask,
    LetGo,
    NodeTask,
    Shutdown,
    WakeUp,
    describe,
)
from gradviz.ready_order import (
    DEPTH_SHIFT,
    SHUTDOWN_PRIORITY,
    WAKE_UP_PRIORITY,
)
from tests.engine.nodes import Listener, Sink, WatchingLock, new_graph_task


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

    def test_an_error_that_comes_after_the_end_is_none_of_the_pass(self):
        """P1: its caller may have its results by then."""
        listener = Listener()
        task = new_graph_task(probe=listener)
        task.complete()

        assert not task.set_error(ValueError("late"), None)

        assert task.error is None
        assert not task.has_error.value
        assert listener.of("task_failed", "error") == []


class TestTheEnd:
    """P1."""

    def test_a_pass_without_an_error_completes(self):
        listener = Listener()
        task = new_graph_task(probe=listener)
        assert not task.is_complete

        task.complete()

        assert task.is_complete
        assert listener.of("task_completed", "task") == [task.id]

    def test_a_failed_pass_never_completes(self):
        listener = Listener()
        task = new_graph_task(probe=listener)
        task.set_error(ValueError("mine"), None)

        task.complete()

        assert not task.is_complete
        assert listener.of("task_completed", "task") == []

    def test_one_thread_may_tell_the_owner_of_it(self):
        task = new_graph_task()

        assert [task.claim_end() for _ in range(3)] == [True, False, False]

    @pytest.mark.parametrize("is_private", [True, False])
    def test_the_last_task_ends_it(self, is_private: bool):
        task = new_graph_task()
        task.is_private = is_private
        task.outstanding_tasks = 3

        assert [task.finish_one() for _ in range(3)] == [False, False, True]

    def test_the_time_of_a_failed_pass_begins_once(self):
        """F05: five seconds in all, however often somebody asks."""
        task, second = new_graph_task(), 1_000_000_000

        left = [task.time_left((100 + after) * second) for after in (0, 2, 4, 5, 7)]

        assert left == [5.0, 3.0, 1.0, 0.0, 0.0]


class TestHelpers:
    """Threads other than the caller's that run nodes of a pass."""

    def test_no_node_begins_on_one_once_the_pass_has_failed(self):
        """R3."""
        task = new_graph_task()
        assert task.begin_help("a")
        task.set_error(ValueError("mine"), None)

        assert not task.begin_help("b")

        assert task.helpers == ["a"]

    def test_one_that_runs_two_nodes_ends_them_one_by_one(self):
        """M6: a nested loop may run another node of the same pass."""
        task = new_graph_task()
        for helper in ("a", "b", "a"):
            task.begin_help(helper)

        task.end_help("a")

        assert task.helpers == ["b", "a"]

    def test_a_helper_that_was_forgotten_may_end_all_the_same(self):
        task = new_graph_task()
        task.begin_help("a")
        task.begin_help("b")
        task.forget_helper("a")

        task.end_help("a")

        assert task.helpers == ["b"]

    def test_one_that_was_struck_runs_none_of_its_nodes_any_more(self):
        """F11."""
        task = new_graph_task()
        for helper in ("a", "b", "a"):
            task.begin_help(helper)

        task.forget_helper("a")

        assert task.helpers == ["b"]

    @pytest.mark.parametrize("leave", [GraphTask.end_help, GraphTask.forget_helper])
    def test_the_last_of_a_failed_pass_says_that_it_is_quiet(
        self, leave: Callable[[GraphTask, object], None]
    ):
        """F05: who waits for the nodes of a failed pass is woken."""
        task = new_graph_task()
        task.begin_help("a")
        task.begin_help("b")
        task.set_error(ValueError("mine"), None)

        leave(task, "a")
        assert task.quiet.empty()
        leave(task, "b")
        assert task.quiet.qsize() == 1

    @pytest.mark.parametrize("leave", [GraphTask.end_help, GraphTask.forget_helper])
    def test_a_pass_that_goes_well_tells_nobody(
        self, leave: Callable[[GraphTask, object], None]
    ):
        task = new_graph_task()
        task.begin_help("a")

        leave(task, "a")

        assert task.quiet.empty()


class TestTheMutex:
    """N4: what several threads change is changed under the mutex, and only there."""

    @pytest.mark.parametrize(
        "change",
        [
            lambda task: task.set_error(ValueError(), None),
            GraphTask.claim_end,
            GraphTask.complete,
            lambda task: task.begin_help("b"),
            lambda task: task.end_help("a"),
            lambda task: task.forget_helper("a"),
            GraphTask.finish_one,
        ],
    )
    def test_it_is_held_while_the_pass_changes(
        self, change: Callable[[GraphTask], Any]
    ):
        task = new_graph_task()
        task.is_private = False
        task.begin_help("a")

        def look() -> object:
            return (
                task.error,
                task.has_error.value,
                task.is_complete,
                task.is_ended,
                tuple(task.helpers),
                task.outstanding_tasks,
            )

        before = look()
        task.mutex = lock = WatchingLock(look)

        change(task)

        assert lock.num_taken == 1
        assert look() == lock.free != before

    def test_a_private_pass_counts_without_it(self):
        """Note [Private passes]."""
        task = new_graph_task()
        task.mutex = lock = WatchingLock(lambda: None)

        task.finish_one()

        assert lock.num_taken == 0


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

    def test_who_is_let_go_is_told_that_the_pass_has_ended(self):
        """F04."""
        assert LetGo(new_graph_task()).ends_pass

    def test_a_node_ends_no_pass_by_itself(self):
        assert not NodeTask(new_graph_task(), Sink(), [], 0).ends_pass

    def test_a_shutdown_has_neither_and_comes_first(self):
        """Q6."""
        task = Shutdown()

        assert (task.graph_task, task.node) == (None, None)
        assert task.priority == SHUTDOWN_PRIORITY > WAKE_UP_PRIORITY
