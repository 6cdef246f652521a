"""Programs of several workers as real threads, also with sockets between them."""

import threading
import traceback
from collections.abc import Callable
from functools import partial

from gradviz.distributed import rpc
from gradviz.distributed.calling.worker import RpcWorker
from gradviz.distributed.transport.inproc import Network
from tests.distributed.sockets import LocalNetwork
from tests.distributed.waiting import PATIENCE_SECONDS, is_clean, until


class Connected:
    """A `Company` with system threads, which nobody schedules.

    Attributes:
        workers: Those of the last run, by rank.
        transports: Theirs.
        network: What connects them.
    """

    def __init__(self, kind: str = "unix") -> None:
        self.kind = kind

    def run(self, *programs: Callable[[], object], dies: tuple[int, ...] = ()) -> None:
        """Have worker `rank` run ``programs[rank]``; those that die wait for `kill`."""
        size = len(programs)
        self.workers: list[RpcWorker] = []
        self._errors: list[BaseException] = []
        self._deaths = {rank: threading.Event() for rank in dies}
        self._all_done = threading.Barrier(size - len(dies))
        if self.kind == "inproc":
            self.network = Network(size)
            self._run(programs)
        else:
            with LocalNetwork(size, self.kind) as self.network:
                self._run(programs)
        for thread in threading.enumerate():
            if thread.name.startswith("worker "):
                thread.join(PATIENCE_SECONDS)
                assert not thread.is_alive(), thread.name

    def _run(self, programs: tuple[Callable[[], object], ...]) -> None:
        self.transports = self.network.transports
        threads = [
            threading.Thread(target=self._main, args=(rank, program, len(programs)))
            for rank, program in enumerate(programs)
        ]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join(2 * PATIENCE_SECONDS)
        assert not self._errors
        assert not any(thread.is_alive() for thread in threads)

    def _main(self, rank: int, program: Callable[[], object], size: int) -> None:
        try:
            rpc.init(f"worker{rank}", rank, size, transport=self.transports[rank])
            self.workers.append(rpc.current_worker())
            self.workers.sort(key=lambda one: one.info.id)
            try:
                program()
                self._wait_for_the_end(rank)
            except BaseException:
                rpc.shutdown(graceful=False)
                raise
            rpc.shutdown(graceful=rank not in self._deaths)
        except BaseException as error:  # noqa: BLE001 - raised by `run`
            self._all_done.abort()
            self._errors.append(error)
            traceback.print_exc()

    def _wait_for_the_end(self, rank: int) -> None:
        if rank in self._deaths:
            assert self._deaths[rank].wait(PATIENCE_SECONDS)
            return
        self._all_done.wait(PATIENCE_SECONDS)
        until(partial(is_clean, rpc.current_worker()))

    def kill(self, rank: int) -> None:
        """Let a worker that dies be gone for the others."""
        self.network.kill(rank)
        self._deaths[rank].set()
