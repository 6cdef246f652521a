"""An engine's report on a pass that hangs."""

from collections.abc import Iterator
from typing import Any

import pytest

from gradviz.engine import Engine, Node
from gradviz.engine.tasks.graph_task import NodeTask
from gradviz.engine.tasks.passes_under_way import Passes
from gradviz.engine.threads.inspection import Watchdog, describe_state, progress
from gradviz.testing import Scheduler, Scripted, sleep
from tests.engine.nodes import (
    SIM_0,
    Call,
    Mailbox,
    Pass,
    Sink,
    new_graph_task,
    new_worker,
    start_thread,
)


class Hanging:
    """A pass that waits for the test on a device; `may_end` lets it go on."""

    def __init__(self, engine: Engine) -> None:
        self.began, self.all_pushed, self.may_end = Mailbox(), Mailbox(), Mailbox()
        self.sink = Sink()
        self.waiting = Pass(device=SIM_0)
        self.node = Call(self.hang, self.sink, device=SIM_0)
        last = Call(lambda grad: self.all_pushed.send() or ())
        root: Node = Pass(self.sink, self.node, self.waiting, last)
        self.call = start_thread(lambda: engine.execute([(root, 0)], [1]))
        self.began.wait()
        self.all_pushed.wait()

    def hang(self, grad: Any) -> Any:
        self.began.send()
        self.may_end.wait()
        return (grad,)


@pytest.fixture
def hanging(engine: Engine) -> Iterator[Hanging]:
    one = Hanging(engine)
    yield one
    one.may_end.send()
    one.call.result(60)


def test_it_names_passes_queues_unmet_dependencies_and_stacks(
    engine: Engine, hanging: Hanging
):
    """RE8: `dump_state`, from another thread and without a lock."""
    text = engine.dump_state()

    assert text.startswith("1 pass under way\n")
    assert f"{hanging.sink!r} waits for 1 more gradients" in text
    assert f"device 0: 1 task: {hanging.waiting!r}" in text
    assert f"thread gv_autograd_0\n  runs {hanging.node!r} of" in text
    assert "in hang\n" in text


def test_an_idle_engine_has_nothing_to_say(engine: Engine):
    engine.execute([(Sink(), 0)], [1])

    assert engine.dump_state().startswith("0 passes under way\n")


def test_a_watchdog_reports_a_standstill(engine: Engine, hanging: Hanging):
    """RE8."""
    reports: list[str] = []
    came = Mailbox()

    def write(text: str) -> None:
        reports.append(text)
        came.send()

    engine.watch(0.01, write)
    came.wait()
    engine.watch(0, write)

    assert repr(hanging.node) in reports[0]


def test_a_pass_inside_a_pass_is_shown_with_who_called_it(engine: Engine):
    """RE8: what may deadlock over a user's lock."""
    texts: list[str] = []
    inner = Call(lambda grad: texts.append(engine.dump_state()) or ())
    outer = Call(lambda grad: engine.execute([(inner, 0)], [grad]))

    engine.execute([(outer, 0)], [1])

    assert texts[0].startswith("2 passes under way\n")
    assert f"{outer!r} of <GraphTask #" in texts[0]
    assert "called backward, which waits;" in texts[0]


class TestThePasses:
    def test_one_tells_of_its_caller_its_parent_its_tasks_and_its_error(self):
        home, outer = new_worker(), new_graph_task()
        task = new_graph_task(home=home, parent=outer, reentrant_depth=3)
        task.outstanding_tasks = 2
        task.outcome.begin_help("a")
        task.outcome.set_error(ValueError("mine"), None)

        lines = describe_state([task], [], []).splitlines()

        assert lines[:4] == [
            "1 pass under way",
            f"  {task!r}: called by {home.thread_name}, inside {outer!r}",
            "    depth 3; 2 tasks queued or running, 1 of them on other threads",
            "    has failed: ValueError('mine')",
        ]

    def test_one_that_nobody_called_from_inside_another_says_no_more(self):
        task = new_graph_task()
        task.outstanding_tasks = 1

        lines = describe_state([task], [], []).splitlines()

        assert lines[1:3] == [
            f"  {task!r}: called by ?",
            "    depth 0; 1 task queued or running, 0 of them on other threads",
        ]
        assert "has failed" not in "".join(lines)

    @pytest.mark.parametrize(("waiting", "told"), [(10, 10), (11, 11), (30, 11)])
    def test_ten_nodes_that_wait_are_named_and_the_rest_counted(
        self, waiting: int, told: int
    ):
        task = new_graph_task()
        for _ in range(waiting):
            node = Sink()
            task.not_ready[node] = [None]
            task.dependencies[node] = 2

        text = describe_state([task], [], [])

        assert text.count("waits for 2 more gradients") == min(waiting, 10)
        assert (f"    and {waiting - 10} more\n" in text) == (told == 11)

    def test_its_queue_is_told_once_with_the_first_ten_tasks(self):
        task = new_graph_task()
        queue = task.cpu_ready_queue
        for _ in range(12):
            queue.push_own(NodeTask(task, Sink(), [], 0))
        queue.push(NodeTask(task, Sink(), [], 0))

        text = describe_state([task, task], [queue], [])

        assert "1 queue\n" in text
        (line,) = (one for one in text.splitlines() if queue.name in one)
        assert line.startswith(f"  {queue.name}: 13 tasks: <Sink #")
        assert line.endswith(" and 2 more (1 not looked at yet)")
        assert line.count("Sink") == 10

    @pytest.mark.parametrize("number", [0, 1, 10])
    def test_up_to_ten_tasks_are_named_and_no_more_is_said(self, number: int):
        task = new_graph_task()
        for _ in range(number):
            task.cpu_ready_queue.push_own(NodeTask(task, Sink(), [], 0))

        text = describe_state([task], [], [])

        assert text.count("Sink") == number
        assert "more" not in text
        assert "not looked at" not in text

    def test_progress_is_what_is_outstanding_and_what_is_unmet(self):
        """RE8."""
        task, node = new_graph_task(), Sink()
        task.outstanding_tasks = 2
        task.dependencies |= {node: 3, Sink(): 4}

        assert progress([task]) == ((task.id, 2, 7),)


class TestTheThreads:
    def test_one_in_no_backward_is_not_told(self):
        assert "thread" not in describe_state([], [], [new_worker()])

    def test_one_between_two_nodes_tells_its_calls_alone(self):
        state, task, node = new_worker(), new_graph_task(), Sink()
        state.calls.append((task, node))

        lines = describe_state([], [], [state]).splitlines()

        assert lines[2:4] == [
            f"thread {state.thread_name}",
            f"  {node!r} of {task!r} called backward, which waits;",
        ]
        assert lines[4].startswith("    ")

    @pytest.mark.parametrize("in_user_code", [True, False])
    @pytest.mark.parametrize("is_outer", [True, False])
    def test_a_node_above_another_of_its_pass_is_warned_of(
        self, is_outer: bool, in_user_code: bool
    ):
        """RE8: the one may hold a lock that the other needs."""
        state, task, node = new_worker(), new_graph_task(), Sink()
        state.calls.append((task if is_outer else new_graph_task(), Sink()))
        state.graph_task, state.node = task, node
        state.in_user_code = in_user_code

        text = describe_state([], [], [state])

        assert f"  runs {node!r} of {task!r}" in text
        assert ("Do not hold a lock" in text) == (is_outer and in_user_code)


def reports_of(*dependencies: int) -> list[float]:
    """Return the report times of a pass with these unmet dependencies, by second."""
    times: list[float] = []
    with Scheduler(Scripted({})) as scheduler:
        passes = Passes(scheduler)
        task, node = new_graph_task(), Sink()

        def report(seconds: float) -> None:
            assert seconds == 2.0
            times.append(scheduler.fibers.now_ns / 1e9)

        def work() -> None:
            watchdog = Watchdog(scheduler, passes, 2.0, report)
            if dependencies:
                passes.begin(task)
            sleep(0.5)
            for number in dependencies:
                task.dependencies[node] = number
                sleep(1)
            watchdog.stop()

        scheduler.run(work=work)
        assert not scheduler.fibers.alive
    return times


def test_a_pass_that_stands_still_is_reported_once():
    """RE8."""
    assert reports_of(*[9] * 12) == [4.0]


def test_a_pass_that_goes_on_is_not():
    assert reports_of(*range(20, 0, -1)) == []


def test_an_engine_without_passes_is_not_reported():
    assert reports_of() == []


def test_each_standstill_is_reported():
    assert reports_of(*[9] * 6, *[8] * 6) == [4.0, 10.0]
