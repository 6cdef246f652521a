import queue
from contextvars import ContextVar

import pytest

from gradviz.distributed.messaging.future import Future, completed, failed, when_all
from gradviz.engine.graph.sync import THREADS
from gradviz.testing.policy import DepthFirst, RandomWalk
from gradviz.testing.scheduler import Scheduler

WHERE = ContextVar("where", default="nowhere")


@pytest.fixture
def future():
    return Future(THREADS)


def test_the_first_answer_counts(future):
    assert future.set_result(1)
    assert not future.set_result(2)
    assert not future.set_error(ValueError())
    assert future.wait() == 1


def test_an_error_is_raised_by_whoever_waits(future):
    future.set_error(KeyError("k"))

    assert future.done()
    with pytest.raises(KeyError):
        future.wait()
    with pytest.raises(KeyError):
        future.value()


def test_a_value_that_is_not_there_is_not_given(future):
    with pytest.raises(RuntimeError, match="no value yet"):
        future.value()


def test_a_wait_with_a_timeout_ends_in_time_and_can_be_repeated():
    with Scheduler(RandomWalk(0)) as scheduler:
        future = Future(scheduler)

        def wait():
            with pytest.raises(TimeoutError, match="within 2 s"):
                future.wait(timeout=2)
            assert scheduler.fibers.now_ns == 2_000_000_000
            future.set_result(3)
            assert future.wait() == 3

        scheduler.run(wait=wait)


def test_a_wait_that_timed_out_leaves_no_callback(future):
    for _ in range(3):
        with pytest.raises(TimeoutError):
            future.wait(timeout=0)

    assert future._callbacks == []


def test_an_interrupted_wait_leaves_nothing_behind(future, monkeypatch):
    class Interrupted(queue.SimpleQueue):
        def get(self, *args, **kwargs):
            raise KeyboardInterrupt

    monkeypatch.setattr(THREADS, "mailbox", Interrupted)
    with pytest.raises(KeyboardInterrupt):
        future.wait()

    assert future._callbacks == []


def test_callbacks_are_called_once_before_or_after_the_answer(future):
    called = []
    future.add_done_callback(lambda: called.append("before"))
    future.set_result(None)
    future.add_done_callback(lambda: called.append("after"))

    assert called == ["before", "after"]


def test_a_continuation_runs_with_the_variables_of_who_asked_for_it(future):
    token = WHERE.set("here")
    result = future.then(lambda done: (done.value(), WHERE.get()))
    WHERE.reset(token)
    future.set_result(1)

    assert result.wait() == (1, "here")


def test_the_error_of_a_continuation_is_that_of_its_future(future):
    result = future.then(lambda done: done.value() / 0)
    future.set_result(1)

    with pytest.raises(ZeroDivisionError):
        result.wait()


def test_all_are_done_when_the_last_one_is_and_the_first_error_is_told():
    futures = [Future(THREADS) for _ in range(3)]
    everything = when_all(THREADS, futures)
    futures[2].set_error(ValueError("two"))
    futures[1].set_error(ValueError("one"))
    assert not everything.done()
    futures[0].set_result(None)

    assert str(everything.error) == "one"
    assert when_all(THREADS, []).done()


def test_futures_may_have_their_answer_from_the_beginning():
    assert completed(THREADS, 5).wait() == 5
    assert isinstance(failed(THREADS, KeyError()).error, KeyError)


def wait_and_answer(scheduler):
    future, got = Future(scheduler), []
    scheduler.run(
        wait=lambda: got.append(future.wait()), answer=lambda: future.set_result(7)
    )
    return got


def test_in_every_order_of_threads_the_one_that_waits_gets_the_answer():
    search = DepthFirst(2)
    for policy in search:
        with Scheduler(policy) as scheduler:
            assert wait_and_answer(scheduler) == [7]
            search.decisions = scheduler.fibers.decisions
