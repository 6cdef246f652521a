"""Reports of workers for a trace: their messages, and their clocks' offsets."""

import contextlib
from collections.abc import Callable, Sequence
from typing import Final

from gradviz.backends.base import Array
from gradviz.distributed.messaging.failures import RpcError
from gradviz.distributed.messaging.messages import (
    AskClock,
    AutogradMetadata,
    ClockReading,
    PropagateGradients,
    as_meta,
    from_meta,
)
from gradviz.distributed.transport.base import Transport
from gradviz.engine.graph.node import Node
from gradviz.ops.variables.variable import Variable
from gradviz.trace import probe as trace
from gradviz.trace.probe import Probe

#: So often a clock is asked for: the quickest answer says most.
_NUM_READINGS: Final = 5

#: Seconds that an answer may take; a worker is not kept waiting for a trace.
_TIMEOUT: Final = 5.0

#: Seconds between two comparisons of clocks, which drift.
_PERIOD: Final = 10.0

#: In the place of a pass, of a task, of a node.
_NONE: Final = -1


def forward_sent(
    worker: int,
    peer: int,
    metadata: AutogradMetadata,
    node: Node | None,
    tensors: Sequence[Variable],
) -> None:
    """Report that a message of a forward pass is about to leave."""
    if probe := trace.current:
        number = _NONE if node is None else node.id
        size = sum(one.array.nbytes for one in tensors)
        probe.message_sent(_NONE, number, worker, peer, *_ids(metadata), _NONE, size)


def forward_received(
    worker: int,
    peer: int,
    metadata: AutogradMetadata,
    node: Node | None,
    tensors: Sequence[Variable],
) -> None:
    """Report that a message of a forward pass has come."""
    if probe := trace.current:
        number = _NONE if node is None else node.id
        size = sum(one.array.nbytes for one in tensors)
        probe.message_received(
            _NONE, number, worker, peer, *_ids(metadata), _NONE, size
        )


def gradients_sent(
    probe: Probe | None,
    task: int,
    worker: int,
    peer: int,
    message: PropagateGradients,
    node: Node,
    gradients: Sequence[Array],
) -> None:
    """Report gradients about to leave, to the listener of the pass."""
    if probe:
        size = sum(one.nbytes for one in gradients)
        pass_id = _signed(message.pass_id)
        probe.message_sent(task, node.id, worker, peer, *_ids(message), pass_id, size)


def gradients_received(
    worker: int,
    peer: int,
    message: PropagateGradients,
    node: Node,
    gradients: Sequence[Array],
) -> None:
    """Report that gradients have come, maybe before their pass begins here."""
    if probe := trace.current:
        size = sum(one.nbytes for one in gradients)
        pass_id = _signed(message.pass_id)
        probe.message_received(
            _NONE, node.id, worker, peer, *_ids(message), pass_id, size
        )


def worker_began(
    name: str, transport: Transport, launch: Callable[[Callable[[], object]], object]
) -> None:
    """Report a worker that has met the others, and its clock's offsets.

    Args:
        name: Name of the worker.
        transport: Its way to the others, which are asked for their clocks again and
            again, as long as somebody listens.
        launch: Runs a job on another thread.
    """
    if probe := trace.current:
        probe.worker_began(transport.rank, transport.world_size, name)
        _compare_clocks(probe, transport)
    if transport.heartbeat_seconds is not None:  # else they are threads of one process
        _compare_clocks_later(transport, launch)


def worker_ends(transport: Transport) -> None:
    """Report clocks' offsets again, for they drift, while others still answer."""
    if probe := trace.current:
        _compare_clocks(probe, transport)


def worker_ended(rank: int) -> None:
    """Report that a worker no longer is one."""
    if probe := trace.current:
        probe.worker_ended(rank)


def _compare_clocks(probe: Probe, transport: Transport) -> None:
    sync = transport.sync
    for peer, is_alive in transport.alive().items():
        if peer == transport.rank or not is_alive:
            continue
        for _ in range(_NUM_READINGS):
            asked_ns = sync.now_ns()
            reply = transport.request(peer, as_meta(AskClock()), (), _TIMEOUT)
            try:
                reading = from_meta(reply.wait()[0])
            except RpcError:
                break  # whoever needs that worker is told
            round_trip_ns = sync.now_ns() - asked_ns
            assert isinstance(reading, ClockReading)
            probe.clock_compared(transport.rank, peer, reading.now_ns, round_trip_ns)


def _compare_clocks_later(
    transport: Transport, launch: Callable[[Callable[[], object]], object]
) -> None:
    def compare() -> None:
        if probe := trace.current:
            _compare_clocks(probe, transport)
        _compare_clocks_later(transport, launch)

    def begin() -> None:  # on the thread of timers, which must not wait
        if trace.current is None:
            _compare_clocks_later(transport, launch)
            return
        with contextlib.suppress(RuntimeError):  # the worker has been shut down
            launch(compare)

    transport.timers.after(_PERIOD, begin)


def _ids(message: AutogradMetadata | PropagateGradients) -> tuple[int, int]:
    return _signed(message.message_id), _signed(message.context_id)


def _signed(identifier: int) -> int:
    """An id in a column, where numbers have 63 bits and a sign."""
    return identifier - (identifier >> 63 << 64)
