"""When a standstill is reported, on the clock of a scheduler."""

from gradviz.engine.passes import Passes
from gradviz.engine.watchdog import Watchdog
from gradviz.testing import Scheduler, Scripted, sleep
from tests.engine.nodes import Sink, new_graph_task


def reports_of(*dependencies: int) -> list[float]:
    """When a pass is reported whose unmet dependencies are these, second by second."""
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


def test_nor_is_an_engine_without_passes():
    assert reports_of() == []


def test_each_standstill_is_reported():
    assert reports_of(*[9] * 6, *[8] * 6) == [4.0, 10.0]
