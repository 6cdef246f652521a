import itertools

import pytest

from gradviz.distributed.messaging.elastic_pool import MAX_THREADS, ElasticPool
from gradviz.distributed.messaging.future import Future
from gradviz.testing.policy import RandomWalk
from gradviz.testing.scheduler import Scheduler, sleep


@pytest.fixture(params=range(5))
def scheduler(request):
    with Scheduler(RandomWalk(request.param)) as scheduler:
        yield scheduler


def test_jobs_that_wait_for_each_other_all_have_a_thread(scheduler):
    pool = ElasticPool(scheduler, "pool")
    futures = [Future(scheduler) for _ in range(20)]

    def link(index):
        if index:
            futures[index - 1].wait()
        futures[index].set_result(index)

    def program():
        for index in reversed(range(20)):
            pool.submit(lambda index=index: link(index))
        assert futures[-1].wait(1) == 19
        pool.close()

    scheduler.run(program=program)

    assert not scheduler.fibers.alive


def test_a_thread_that_is_free_takes_the_next_job(scheduler):
    pool, threads = ElasticPool(scheduler, "pool"), set()

    def program():
        for _ in range(10):
            pool.submit(lambda: threads.add(scheduler.thread()))
            sleep(1)
        pool.close()

    scheduler.run(program=program)

    assert len(threads) == 1


def refuse_threads(scheduler, monkeypatch, numbers):
    """Have the system refuse some of the threads that are asked for."""
    asked, spawn = itertools.count(), scheduler.spawn

    def maybe(target, name):
        if next(asked) in numbers:
            raise RuntimeError("can't start new thread")
        spawn(target, name)

    monkeypatch.setattr(scheduler, "spawn", maybe)


def test_a_job_that_got_no_thread_never_runs(scheduler, monkeypatch):
    refuse_threads(scheduler, monkeypatch, {1, 2, 4})
    pool, ran, refused = ElasticPool(scheduler, "pool"), [], []

    def run(number):
        ran.append(number)
        sleep(1)

    def program():
        for number in range(6):
            try:
                pool.submit(lambda number=number: run(number))
            except RuntimeError:
                refused.append(number)
        sleep(10)
        pool.submit(lambda: ran.append("last"))  # a thread is free
        pool.close()

    scheduler.run(program=program)

    assert refused == [1, 2, 4]
    assert sorted(ran[:-1]) == [0, 3, 5]
    assert ran[-1] == "last"
    assert not scheduler.fibers.alive


def test_an_interrupt_after_the_thread_has_begun_leaves_the_pool_whole(
    scheduler, monkeypatch
):
    pool, ran, spawn = ElasticPool(scheduler, "pool"), [], scheduler.spawn

    def interrupted(target, name):
        spawn(target, name)
        sleep(1)
        raise KeyboardInterrupt

    def program():
        with monkeypatch.context() as patch:
            patch.setattr(scheduler, "spawn", interrupted)
            with pytest.raises(KeyboardInterrupt):
                pool.submit(lambda: ran.append("first"))
        pool.submit(lambda: ran.append("second"))
        pool.close()

    scheduler.run(program=program)

    assert ran == ["first", "second"]
    assert not scheduler.fibers.alive


def test_a_pool_that_is_closed_takes_no_job(scheduler):
    pool = ElasticPool(scheduler, "pool")
    pool.close()

    with pytest.raises(RuntimeError, match="shut down"):
        pool.submit(lambda: None)


def test_there_is_a_last_thread():
    assert MAX_THREADS == 512
