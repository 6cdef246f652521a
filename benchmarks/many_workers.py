"""Up to a thousand workers, simulated: their own code on a clock that costs no time.

Every worker is real but for what is between them: it runs as a thread of a scheduler
whose clock is virtual. A message costs its sender some time and its receiver some, one
message after the other, and takes some on its way; how much was measured between two
processes of one machine. So this says what the protocol adds up to, and nothing of
networks, of caches, or of what a function itself computes.
"""

from collections.abc import Callable, Sequence
from functools import partial
from typing import Any, Final, NamedTuple

import gradviz as gv
from gradviz.backends.base import Array
from gradviz.distributed import autograd, rpc
from gradviz.distributed.calling.worker import CURRENT, RpcWorker
from gradviz.distributed.messaging.future import Future
from gradviz.distributed.transport.base import Parcel, as_remote
from gradviz.distributed.transport.inproc import InprocTransport, Network
from gradviz.engine.graph.sync import Sync
from gradviz.testing import fibers
from gradviz.testing.policy import RandomWalk
from gradviz.testing.scheduler import Scheduler

#: How many others each worker calls; None for one that calls all of them.
SHAPES: Final = {"a star": None, "a tree of 10 each": 10}

SIZES: Final = (2, 10, 100, 1000)


class Costs(NamedTuple):
    """Seconds of one message, there or back.

    Attributes:
        own: At either end, which does one after the other.
        way: Between them.
    """

    own: float
    way: float


class Took(NamedTuple):
    """Simulated seconds of one program.

    Attributes:
        shape: Who calls whom.
        size: How many workers there are.
        forward: Until the loss was there.
        backward: From then until all gradients were.
        num_messages: All that were sent, answers not counted.
    """

    shape: str
    size: int
    forward: float
    backward: float
    num_messages: int


class CostlyTransport(InprocTransport):
    """A way to the others that takes its time."""

    def __init__(
        self, rank: int, size: int, sync: Sync, network: "CostlyNetwork"
    ) -> None:
        super().__init__(rank, size, sync, network)
        self.costs = network.costs
        self.num_messages = 0
        self._busy_until = 0.0

    def deliver(
        self,
        dst: int,
        meta: dict[str, Any],
        arrays: Sequence[Array],
        future: Future[Parcel],
    ) -> None:
        """Bring a request, and its answer, when their time has come."""
        self.num_messages += 1
        other = self._network.transports[dst]
        assert isinstance(other, CostlyTransport)

        def reply(answer: Future[Parcel]) -> None:
            if answer.error is not None:
                come = partial(future.set_error, as_remote(dst, answer.error))
            else:
                come = partial(future.set_result, answer.value())
            other.bring(self, come)

        self.bring(other, lambda: other.take(self.rank, meta, arrays, reply))

    def bring(self, other: "CostlyTransport", come: Callable[[], object]) -> None:
        """Have something happen there, after what sending and receiving takes."""
        there = self.spend(self._now()) + self.costs.way - self._now()
        self.timers.after(there, lambda: self._arrive(other, come))

    def spend(self, earliest: float) -> float:
        """Be busy with one more message; returns until when."""
        self._busy_until = max(self._busy_until, earliest) + self.costs.own
        return self._busy_until

    def _arrive(self, other: "CostlyTransport", come: Callable[[], object]) -> None:
        now = self._now()
        other.timers.after(other.spend(now) - now, come)

    def _now(self) -> float:
        return self.sync.now_ns() / 1e9


class CostlyNetwork(Network):
    """What such workers share."""

    def __init__(self, size: int, sync: Sync, costs: Costs) -> None:
        self.costs = costs
        self.transports = [
            CostlyTransport(one, size, sync, self) for one in range(size)
        ]


@rpc.register
def through(ranks: list[int], x: gv.Tensor, branches: int | None) -> gv.Tensor:
    """Have `ranks` compute: some of them are asked here, and ask the others."""
    count = len(ranks) if branches is None else branches
    parts = [ranks[start::count] for start in range(min(count, len(ranks)))]
    asked = [
        rpc.rpc_async(first, through, (rest, x, branches), timeout=None)
        for first, *rest in parts
    ]
    total = x * 2
    for one in asked:
        total = total + one.wait()
    return total


def simulated(shape: str, size: int, costs: Costs) -> Took:
    """One call of all workers, and the backward through them."""
    found: list[Took] = []
    fibers.MAX_SWITCHES = 1_000_000_000  # type: ignore[misc]  # a test's are too few
    with Scheduler(RandomWalk(0)) as scheduler, scheduler.default_engine() as engine:
        network = CostlyNetwork(size, scheduler, costs)
        workers = [
            RpcWorker(f"worker{one.rank}", one, engine) for one in network.transports
        ]
        infos = {one.info.id: one.info for one in workers}
        for one in workers:
            # Instead of `meet`: a million greetings, on which nothing depends.
            one.transport.start(one.handle, one._peer_is_down)
            one.infos.update(infos)
            one._has_met.set_result(None)

        def program() -> None:
            CURRENT.set(workers[0])
            x = gv.ones(2, requires_grad=True)
            began = scheduler.now_ns()
            with autograd.context() as context_id:
                ranks = [*range(1, size)]
                loss = through(ranks, x, SHAPES[shape]).sum()
                middle = scheduler.now_ns()
                autograd.backward(context_id, [loss])
                ended = scheduler.now_ns()
                (gradient,) = autograd.get_gradients(context_id).values()
                assert gradient.tolist() == [2.0 * size] * 2
            sent = sum(one.num_messages for one in network.transports)
            forward, backward = (middle - began) / 1e9, (ended - middle) / 1e9
            found.append(Took(shape, size, forward, backward, sent))
            for one in workers:
                one.close()

        scheduler.run(program=program)
    return found[0]
