"""Messages between the workers of a distributed program: both ends of each."""

import bisect
import weakref
from collections import defaultdict, deque
from collections.abc import Mapping, Sequence
from typing import Final, NamedTuple, TypeAlias

import msgspec
import numpy as np

from gradviz.trace.format.model import Trace
from gradviz.trace.format.table import Table

#: No view tells of more messages than this.
MAX_MESSAGES: Final = 100_000

#: Facts that both ends of a message have: sender, receiver, its number, context and
#: pass.
_Key: TypeAlias = tuple[int, int, int, int, int]


class SentMessage(msgspec.Struct, frozen=True, kw_only=True):
    """A message of a distributed autograd context.

    What is known of one end only has -1, or None, where the other end would say it.

    Attributes:
        worker: Worker that sent it.
        peer: Worker that it came to.
        message: The number that its send and its receive have.
        context: The context.
        pass_id: Number, on all workers, of the backward pass whose gradients it has; -1
            for none: it went in the forward pass.
        size_bytes: Of its arrays.
        task: The sender's pass.
        node: In the forward pass the send, in the backward pass the receive.
        thread: Thread that sent it.
        sent_ns: Time at which it was sent, on the trace's clock.
        received_ns: Time at which it had arrived.
        to_node: The other end of `node`.
        to_task: The receiver's pass, in which `to_node` ran for it.
        to_thread: Thread that ran that.
        start_ns: Start time of that.
        sent_seq: Number of the event that says that it left; -1 for none.
        received_seq: Number of the event that says that it came; -1 for none.
    """

    worker: int
    peer: int
    message: int
    context: int
    pass_id: int
    size_bytes: int
    task: int = -1
    node: int = -1
    thread: int = -1
    sent_ns: int | None = None
    received_ns: int | None = None
    to_node: int = -1
    to_task: int = -1
    to_thread: int = -1
    start_ns: int | None = None
    sent_seq: int = -1
    received_seq: int = -1

    @property
    def contradicts(self) -> bool:
        """True if it arrived before it left: clocks of two machines disagree."""
        if self.sent_ns is None or self.received_ns is None:
            return False
        return self.received_ns < self.sent_ns

    def after(self, origin_ns: int) -> "SentMessage":
        """The same with times counted from `origin_ns`."""
        names = ("sent_ns", "received_ns", "start_ns")
        times = {name: getattr(self, name) for name in names}
        return msgspec.structs.replace(
            self,
            **{
                name: None if t_ns is None else t_ns - origin_ns
                for name, t_ns in times.items()
            },
        )


class _NodeStart(NamedTuple):
    """A run of a node."""

    seq: int
    task: int
    thread: int
    t_ns: int


#: Messages of traces that somebody holds: a picture of several timelines asks for each.
_found: Final[weakref.WeakKeyDictionary[Trace, tuple[SentMessage, ...]]] = (
    weakref.WeakKeyDictionary()
)


def messages(trace: Trace) -> tuple[SentMessage, ...]:
    """The messages of a trace; of very many the first."""
    if trace not in _found:
        kinds = ("message_sent", "message_received")
        tables = {kind: trace.columns[kind].at(slice(MAX_MESSAGES)) for kind in kinds}
        _found[trace] = messages_of({**trace.columns, **tables})
    return _found[trace]


def messages_of(tables: Mapping[str, Table]) -> tuple[SentMessage, ...]:
    """Return the messages in order of departure, then those without one.

    Args:
        tables: The events of some time, by kind.
    """
    sent, received = tables["message_sent"], tables["message_received"]
    if not sent.num_rows and not received.num_rows:
        return ()
    runs = _runs(tables["node_started"], received["node"].tolist())
    ids = ("worker", "peer", "message", "context", "pass_id")
    ends = ("seq", "t_ns", "node", "thread", "size_bytes")
    # The numbers of a program that starts its workers anew begin anew: in their order.
    came: dict[_Key, deque[tuple[int, ...]]] = defaultdict(deque)
    for row in received.rows(*ids, *ends):
        peer, worker, *key = row[:5]
        came[worker, peer, *key].append(row[5:])  # type: ignore[index] # of three
    found = []
    for row in sent.rows(*ids, "task", *ends):
        known: _Key = row[:5]  # type: ignore[assignment] # of five
        task, seq, t_ns, node, thread, size = row[5:]
        one = SentMessage(
            **dict(zip(ids, known, strict=True)),
            size_bytes=size,
            task=task,
            node=node,
            thread=thread,
            sent_ns=t_ns,
            sent_seq=seq,
        )
        arrivals = came.get(known)
        found.append(_with_end(one, arrivals.popleft(), runs) if arrivals else one)
    for known, arrivals in came.items():
        for end in arrivals:
            one = SentMessage(**dict(zip(ids, known, strict=True)), size_bytes=end[-1])
            found.append(_with_end(one, end, runs))
    return tuple(found)


def _runs(started: Table, nodes: Sequence[int]) -> Mapping[int, list[_NodeStart]]:
    """The runs of some nodes, in order."""
    started = started.at(np.isin(started.narrow("node"), nodes))
    runs: dict[int, list[_NodeStart]] = defaultdict(list)
    for node, *run in started.rows("node", "seq", "task", "thread", "t_ns"):
        runs[node].append(_NodeStart(*run))
    return runs


def _with_end(
    message: SentMessage, end: Sequence[int], runs: Mapping[int, list[_NodeStart]]
) -> SentMessage:
    """Return an arrived message with the next run of its node."""
    seq, t_ns, node, thread, _ = end
    message = msgspec.structs.replace(
        message,
        received_ns=t_ns,
        to_node=node,
        to_thread=thread,
        received_seq=seq,
    )
    own = runs.get(node, []) if message.pass_id >= 0 else []
    at = bisect.bisect(own, seq, key=lambda run: run.seq)
    if at == len(own):
        return message
    run = own[at]
    return msgspec.structs.replace(
        message, to_task=run.task, to_thread=run.thread, start_ns=run.t_ns
    )
