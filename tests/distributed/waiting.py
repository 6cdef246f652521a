"""Waits of test workers, and the state that must hold afterwards."""

import time
from collections.abc import Callable

from gradviz.distributed.calling.worker import RpcWorker
from gradviz.testing.scheduler import sleep

#: No test waits longer than that.
PATIENCE_SECONDS = 60


def until_done(done):
    """Wait on a worker until another one reports that all is done."""

    def program():
        while not done:
            sleep(10)

    return program


def assert_nothing_is_left(company, ranks):
    """No context, no pass and no question on any of these workers."""
    for rank in ranks:
        assert {*company.workers[rank].dist_engine.debug_info().values()} == {0}
        assert not company.transports[rank]._pending


def is_clean(worker: RpcWorker) -> bool:
    """Return whether a worker has no context, no pass and no question."""
    counts = worker.dist_engine.debug_info()
    return not any(counts.values()) and not worker.transport._pending


def until(is_so: Callable[[], bool]) -> None:
    """Wait for what comes soon, but at no known time."""
    deadline = time.monotonic() + PATIENCE_SECONDS
    while not is_so():
        assert time.monotonic() < deadline
        sleep(1)
        time.sleep(0.001)
