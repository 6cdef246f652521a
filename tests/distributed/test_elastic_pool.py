import pytest

from gradviz.distributed.elastic_pool import MAX_THREADS, ElasticPool
from gradviz.distributed.future import Future
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


def test_a_pool_that_is_closed_takes_no_job(scheduler):
    pool = ElasticPool(scheduler, "pool")
    pool.close()

    with pytest.raises(RuntimeError, match="shut down"):
        pool.submit(lambda: None)


def test_there_is_a_last_thread():
    assert MAX_THREADS == 512
