"""State of one pass."""

import pytest

from gradviz.engine.tasks.graph_task import (
    CPU_DEVICE,
    NO_DEVICE,
    Capture,
    ExecInfo,
    LetGo,
    NodeTask,
    Shutdown,
    WakeUp,
)
from gradviz.ready_order import (
    DEPTH_SHIFT,
    SHUTDOWN_PRIORITY,
    WAKE_UP_PRIORITY,
)
from tests.engine.nodes import Sink, WatchingLock, new_graph_task


def test_the_constants_are_pytorchs():
    """L1."""
    assert (NO_DEVICE, CPU_DEVICE) == (-2, -1)


def test_ids_grow_from_task_to_task():
    """G8: an inner pass has its parent's id plus one."""
    first, second = new_graph_task(), new_graph_task()

    assert second.id == first.id + 1


class TestCounting:
    @pytest.mark.parametrize("is_private", [True, False])
    def test_the_last_task_ends_it(self, is_private: bool):
        task = new_graph_task()
        task.is_private = is_private
        task.outstanding_tasks = 3

        assert [task.finish_one() for _ in range(3)] == [False, False, True]

    def test_the_mutex_is_held_while_it_counts(self):
        """N4."""
        task = new_graph_task()
        task.is_private = False
        task.mutex = lock = WatchingLock(lambda: task.outstanding_tasks)

        task.finish_one()

        assert lock.num_taken == 1

    def test_its_outcome_has_the_same_mutex(self):
        """A wake-up is counted, pushed and noted in one step."""
        task = new_graph_task()

        assert task.outcome.mutex is task.mutex

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

    def test_a_task_that_lets_a_stand_in_go_reports_the_end_of_the_pass(self):
        """F04."""
        assert LetGo(new_graph_task()).ends_pass

    def test_a_node_ends_no_pass_by_itself(self):
        assert not NodeTask(new_graph_task(), Sink(), [], 0).ends_pass

    def test_a_shutdown_has_neither_and_comes_first(self):
        """Q6."""
        task = Shutdown()

        assert (task.graph_task, task.node) == (None, None)
        assert task.priority == SHUTDOWN_PRIORITY > WAKE_UP_PRIORITY
