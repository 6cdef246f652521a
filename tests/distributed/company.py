"""Programs of several workers under the deterministic scheduler."""

from collections.abc import Callable
from functools import partial

from gradviz.distributed import rpc
from gradviz.distributed.calling.worker import RpcWorker
from gradviz.distributed.transport.base import Transport
from gradviz.distributed.transport.inproc import Network
from gradviz.testing.policy import RandomWalk
from gradviz.testing.scheduler import Scheduler


class Company:
    """Runs one program a worker, and sees to it that nothing is left behind.

    Attributes:
        workers: Those of the last run, by rank.
        transports: Theirs, as `wrap` has made them of those of `network`.
        network: Theirs.
        scheduler: Its clock and threads.
    """

    def __init__(
        self, seed: int, wrap: Callable[[Transport], Transport] = lambda inner: inner
    ) -> None:
        self.seed = seed
        self.wrap = wrap
        self.workers: list[RpcWorker] = []

    def run(self, *programs: Callable[[], object], dies: tuple[int, ...] = ()) -> None:
        """Have worker `rank` run ``programs[rank]``; those that die wait for `kill`."""
        policy = RandomWalk(self.seed)
        with Scheduler(policy) as self.scheduler, self.scheduler.default_engine():
            self.network = Network(len(programs), self.scheduler)
            self.transports = [self.wrap(one) for one in self.network.transports]
            self.workers = []
            self._deaths = {rank: self.scheduler.mailbox() for rank in dies}
            self.scheduler.run(
                **{
                    f"worker{rank}": partial(self._main, rank, program, len(programs))
                    for rank, program in enumerate(programs)
                }
            )
            for rank, worker in enumerate(self.workers):
                if rank not in dies:
                    assert {*worker.dist_engine.debug_info().values()} == {0}
            daemons = [fiber.name for fiber in self.scheduler.fibers.alive.values()]
            assert all(name.startswith("gv_autograd") for name in daemons), daemons

    def _main(self, rank: int, program: Callable[[], object], size: int) -> None:
        rpc.init(f"worker{rank}", rank, size, transport=self.transports[rank])
        self.workers = sorted(
            [*self.workers, rpc.current_worker()], key=lambda one: one.info.id
        )
        try:
            program()
        except BaseException:
            rpc.shutdown(graceful=False)
            raise
        if rank in self._deaths:
            self._deaths[rank].get()
        rpc.shutdown(graceful=rank not in self._deaths, timeout=None)

    def kill(self, rank: int) -> None:
        """Let a worker that dies be gone for the others."""
        self.network.kill(rank)
        self.transports[rank].give_up("it was killed")
        self._deaths[rank].put(None)


def idle() -> None:
    """Idle: the worker is there only for others."""
