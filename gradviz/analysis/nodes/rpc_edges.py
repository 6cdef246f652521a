"""RPC edges: gradients of nodes that came from another worker, or went to one.

A send function runs when gradients come, a receive function sends them: each belongs to
a message of the forward pass, whose number its gradients have too.
"""

from collections import defaultdict
from typing import Final, Literal, NamedTuple, TypeAlias

import msgspec
import numpy as np

from gradviz.analysis.tables.executions import definition
from gradviz.analysis.tables.messages import MAX_MESSAGES, SentMessage, messages_of
from gradviz.trace.format.model import Trace
from gradviz.trace.format.table import Column

#: The end of a message that a node stands for.
End: TypeAlias = Literal["send", "receive"]

_FORWARD: Final = -1


class RpcEdge(msgspec.Struct, frozen=True, kw_only=True):
    """Edge between a node of a pass and another worker.

    Times are as those of `SentMessage`, and None where the trace does not have them.

    Attributes:
        end: A send gets gradients from the peer, a receive sends it some.
        worker: The worker of the node.
        peer: The other worker.
        message: The number of the message.
        node: The function at the other end; -1 if the trace does not have it.
        name: That function's name.
        size_bytes: Size of the gradients; None if none are known to have left or come.
        sent_ns: Departure.
        received_ns: Arrival.
        start_ns: Start of the node that they are for.
        contradicts: True if they arrived before they left, by clocks that disagree.
        index: The index of that function in the execution order; -1 if unknown.
    """

    end: End
    worker: int
    peer: int
    message: int
    node: int
    name: str
    size_bytes: int | None = None
    sent_ns: int | None = None
    received_ns: int | None = None
    start_ns: int | None = None
    contradicts: bool = False
    index: int = -1


class _Known(NamedTuple):
    """A node's role in a message, and the function at its other end."""

    end: End
    worker: int
    peer: int
    message: int
    context: int
    node: int


class RpcEdges:
    """The RPC edges of some nodes, arranged so that a node's is found at once.

    Args:
        trace: The trace.
        nodes: The nodes; of a pass all that it has, for its gradients are known by the
            number that it has on all workers.
    """

    def __init__(self, trace: Trace, nodes: Column) -> None:
        self._trace = trace
        self._known: dict[int, _Known] = {}
        self._gradients: dict[tuple[int, ...], SentMessage] = {}
        self._passes: dict[int, set[int]] = defaultdict(set)
        every = _messages_at(trace, nodes)
        for one in every:
            if one.pass_id == _FORWARD:
                self._learn(one, "send", "receive")
        for one in every:
            if one.pass_id != _FORWARD:
                self._learn(one, "receive", "send")
                self._gradients[_key(one.worker, one)] = one
                self._passes[one.task].add(one.pass_id)
                self._passes[one.to_task].add(one.pass_id)

    @property
    def nodes(self) -> tuple[int, ...]:
        """Those of the nodes, and of the other ends, that have one."""
        return tuple(self._known)

    def of(self, task: int, node: int, origin_ns: int = 0) -> RpcEdge | None:
        """Return the edge of a node to another worker; None if it has none.

        Args:
            task: The pass.
            node: The node.
            origin_ns: Origin of the times.
        """
        known = self._known.get(node)
        if known is None:
            return None
        crossing = RpcEdge(
            end=known.end,
            worker=known.worker,
            peer=known.peer,
            message=known.message,
            node=known.node,
            name=definition(self._trace, known.node).name if known.node >= 0 else "",
        )
        sender = known.peer if known.end == "send" else known.worker
        for pass_id in sorted(self._passes.get(task, ())):
            key = (sender, known.message, known.context, pass_id)
            if (sent := self._gradients.get(key)) is not None:
                return _with_gradients(crossing, sent.after(origin_ns))
        return crossing

    def _learn(self, one: SentMessage, at_sender: End, at_receiver: End) -> None:
        """Note both ends of a message, unless the forward pass has named them."""
        about = (one.message, one.context)
        if one.node >= 0:
            self._known.setdefault(
                one.node, _Known(at_sender, one.worker, one.peer, *about, one.to_node)
            )
        if one.to_node >= 0:
            self._known.setdefault(
                one.to_node, _Known(at_receiver, one.peer, one.worker, *about, one.node)
            )


def _messages_at(trace: Trace, nodes: Column) -> tuple[SentMessage, ...]:
    """The messages that nodes have to do with, on their way there and back."""
    tables = {
        kind: trace.columns[kind] for kind in ("message_sent", "message_received")
    }
    numbers = np.concatenate(
        [
            one.narrow("message")[np.isin(one.narrow("node"), nodes)]
            for one in tables.values()
        ]
    )
    some = {
        kind: one.at(np.flatnonzero(np.isin(one.narrow("message"), numbers)))
        for kind, one in tables.items()
    }
    few = {kind: one.at(slice(MAX_MESSAGES)) for kind, one in some.items()}
    return messages_of({**trace.columns, **few})


def _key(sender: int, one: SentMessage) -> tuple[int, ...]:
    return (sender, one.message, one.context, one.pass_id)


def _with_gradients(crossing: RpcEdge, sent: SentMessage) -> RpcEdge:
    return msgspec.structs.replace(
        crossing,
        size_bytes=sent.size_bytes,
        sent_ns=sent.sent_ns,
        received_ns=sent.received_ns,
        start_ns=sent.start_ns,
        contradicts=sent.contradicts,
    )
