import pytest

from gradviz.distributed.messaging.timers import Timers
from gradviz.testing.policy import RandomWalk
from gradviz.testing.scheduler import Scheduler, sleep


@pytest.fixture(params=range(5))
def scheduler(request):
    with Scheduler(RandomWalk(request.param)) as scheduler:
        yield scheduler


def test_calls_are_made_in_the_order_of_their_times(scheduler):
    timers, made = Timers(scheduler, "timers"), []

    def now(name):
        return lambda: made.append((name, scheduler.fibers.now_ns // 10**9))

    def program():
        timers.after(3, now("late"))
        timers.after(1, now("early"))
        timers.after(3, now("later"))
        sleep(5)
        timers.after(1, now("last"))
        sleep(2)
        timers.close()

    scheduler.run(program=program)

    assert made == [("early", 1), ("late", 3), ("later", 3), ("last", 6)]


def test_a_call_for_which_there_is_no_thread_is_not_made_and_later_ones_are(
    scheduler, monkeypatch
):
    timers, made = Timers(scheduler, "timers"), []

    def refuse(_target, _name):
        raise RuntimeError("can't start new thread")

    def program():
        with monkeypatch.context() as patch:
            patch.setattr(scheduler, "spawn", refuse)
            with pytest.raises(RuntimeError, match="new thread"):
                timers.after(1, lambda: made.append("refused"))
        timers.after(1, lambda: made.append("made"))
        sleep(5)
        timers.close()

    scheduler.run(program=program)

    assert made == ["made"]


def test_cancelled_and_closed_timers_make_no_call(scheduler):
    timers, made = Timers(scheduler, "timers"), []

    def program():
        timers.after(1, lambda: made.append("cancelled")).cancel()
        timers.after(2, lambda: made.append("closed"))
        sleep(1.5)
        timers.close()
        timers.after(1, lambda: made.append("too late"))
        sleep(5)

    scheduler.run(program=program)

    assert made == []
    assert not scheduler.fibers.alive
