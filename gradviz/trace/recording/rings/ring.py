"""The ring: the last part of a recording, with its definitions.

A flight recorder runs for as long as its program and keeps what happened last. Events
come in slices of time; the oldest slices go when there is too much. Definitions are
kept apart from them, for they are needed longer:

* Nodes are defined anew by each pass (see `PendingGraph`). So a definition is needed
  while a pass is under way that began when it came, and as long as there are events of
  such a pass.
* Texts, threads, queues, inputs and models are few, and stay. Should texts or inputs
  become many, those go that nothing refers to.
"""

from collections import defaultdict, deque
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from typing import Final, NamedTuple

import msgspec

from gradviz.trace.events import INFERRED, KINDS, own_columns
from gradviz.trace.format.clock import ClockPair
from gradviz.trace.format.columns import decode_events
from gradviz.trace.format.definitions import (
    Closed,
    Definitions,
    InputRow,
    Lost,
    ModelRow,
    NodeRow,
    QueueRow,
    decode_json,
    encode_definitions,
    encode_json,
)
from gradviz.trace.format.frames import (
    Budget,
    FrameType,
    Stamp,
    encode_frame,
    pack,
    stamped,
    unpack,
)
from gradviz.trace.format.model import Header

#: Maximum number of texts and inputs that stay without a question.
_FEW: Final = 20_000

#: Limit for frames that the ring itself has packed: it may take what it takes to
#: unpack.
_NO_LIMIT: Final = 1 << 50

#: The columns before a kind's own.
_COMMON: Final = ("t_ns", "task", "node")

#: The columns that name a node.
NODES: Final = ("node", "producer", "pushed_by")

_NO_NODE: Final = -1

#: Kind of columns that hold texts.
_TEXT: Final = "text"


class RingSlice(NamedTuple):
    """Rows that threads reported in a stretch of time, packed."""

    round: int
    num_events: int
    payloads: tuple[bytes, ...]


class RingNodes(NamedTuple):
    """The nodes that were defined in a round, packed."""

    round: int
    num_nodes: int
    payloads: tuple[bytes, ...]


class Ring:
    """The last events of a recording, and the definitions that they need.

    Called by one thread at a time.

    Args:
        limit: So many bytes are kept, or one slice and its definitions if that is more.
        known: The texts and inputs that may be referred to again without a definition.
    """

    def __init__(
        self, limit: int, known: Callable[[], tuple[set[int], set[int]]]
    ) -> None:
        self._limit = limit
        self._known = known
        self._slices: deque[RingSlice] = deque()
        self._slices_size = 0
        self._nodes: list[RingNodes] = []
        self._nodes_size = self._nodes_unasked = 0
        self._strings: dict[int, str] = {}
        self._threads: dict[int, str] = {}
        self._queues: dict[int, QueueRow] = {}
        self._inputs: dict[int, InputRow] = {}
        self._models: dict[int, ModelRow] = {}
        self._num_unasked = _FEW
        self._round = 0
        #: The passes under way, each with the round in which it began.
        self._under_way: dict[int, int] = {}
        self._roots: dict[int, int] = {}
        #: Of rounds in which nodes were defined: the last one with events of them.
        self._needed_until: defaultdict[int, int] = defaultdict(int)
        self._num_overwritten = 0
        self._dropped: defaultdict[int, int] = defaultdict(int)

    def begin_round(
        self,
        definitions: Definitions,
        *,
        begun: Iterable[int],
        roots: Mapping[int, int],
        ended: Iterable[int],
    ) -> None:
        """Take the definitions for the events that follow.

        Args:
            definitions: Those that were made since the last round.
            begun: The passes that began since then.
            roots: Of passes of which that is known by now, the node they begin with,
                which is defined before all others of the pass.
            ended: The passes that ended.
        """
        self._round += 1
        for task in begun:
            self._under_way[task] = self._round
        self._roots.update(roots)
        for task in ended:
            began = self._under_way.pop(task, self._round)
            self._roots.pop(task, None)
            for place in (began - 1, began, began + 1, self._round - 1, self._round):
                self._needed_until[place] = self._round  # see `_is_needed`
        self._strings.update(definitions.strings)
        self._threads.update(definitions.threads)
        self._queues.update((row.id, row) for row in definitions.queues)
        self._inputs.update((row.index, row) for row in definitions.inputs)
        self._models.update((row.name, row) for row in definitions.models)
        if nodes := definitions.nodes:
            self._nodes.append(nodes_of(self._round, nodes))
            self._nodes_size += size(self._nodes[-1])

    def add(self, events: Iterable[bytes], num_events: int) -> None:
        """Take a slice of events, later than all before, as frames hold them."""
        if num_events:
            self._slices.append(
                RingSlice(self._round, num_events, tuple(map(pack, events)))
            )
            self._slices_size += size(self._slices[-1])

    def add_dropped(self, thread: int, num_events: int) -> None:
        """Count the dropped events of a thread."""
        if num_events:
            self._dropped[thread] += num_events

    def end_round(self) -> None:
        """Drop the excess, the oldest first."""
        self._forget_slices(at_least=self._limit // 2)
        if self.size > self._limit and self._nodes_size > self._nodes_unasked:
            self._forget_unused_nodes()
            self._nodes_unasked = 2 * self._nodes_size
        self._forget_slices(at_least=1)
        if len(self._strings) + len(self._inputs) > self._num_unasked:
            self._forget_unused()
            self._num_unasked = 2 * (len(self._strings) + len(self._inputs)) + _FEW

    def frames(self, header: Header, anchor: ClockPair) -> Iterator[bytes]:
        """Yield the frames of a trace of the contents; nothing is added meanwhile.

        Args:
            header: Header that it begins with.
            anchor: This moment.
        """
        if self._nodes_size > self._slices_size:
            self._forget_unused_nodes()
        all_nodes, slices = self._written()
        yield encode_frame(FrameType.HEADER, encode_json(header))
        stamps = (Stamp(header.recording, number) for number in range(1, 1 << 31))

        def of_json(kind: FrameType, value: msgspec.Struct) -> bytes:
            return encode_frame(kind, stamped(encode_json(value), next(stamps)))

        def of_packed(kind: FrameType, payload: bytes) -> bytes:
            return encode_frame(kind, payload + next(stamps).packed())

        definitions = Definitions(
            strings=list(self._strings.items()),
            threads=list(self._threads.items()),
            queues=list(self._queues.values()),
            inputs=list(self._inputs.values()),
            models=list(self._models.values()),
        )
        for piece in encode_definitions(definitions):
            yield of_packed(FrameType.DEFINITIONS, pack(piece))
        for nodes in all_nodes:
            for payload in nodes.payloads:
                yield of_packed(FrameType.DEFINITIONS, payload)
        for one in slices:
            for payload in one.payloads:
                yield of_packed(FrameType.EVENTS, payload)
        for thread, num_events in self._dropped.items():
            yield of_json(FrameType.LOST, Lost(thread, num_events))
        yield of_json(FrameType.ANCHOR, anchor)
        yield of_json(
            FrameType.CLOSED,
            Closed(
                events=sum(one.num_events for one in slices),
                nodes=sum(one.num_nodes for one in all_nodes),
                dropped=sum(self._dropped.values()),
                overwritten=self._num_overwritten,
            ),
        )

    @property
    def size(self) -> int:
        """Number of bytes held."""
        return self._slices_size + self._nodes_size

    def _all_slices(self) -> Iterable[RingSlice]:
        """Everything that is held, the earliest first."""
        return self._slices

    def _all_nodes(self) -> Iterable[RingNodes]:
        """The nodes of all that is held."""
        return self._nodes

    def _written(self) -> tuple[Sequence[RingNodes], Sequence[RingSlice]]:
        """Return the contents of a file."""
        return self._nodes, self._slices

    def _forget_slices(self, at_least: int) -> None:
        """Forget the oldest while there is too much; so many bytes of slices stay."""
        while (
            self.size > self._limit
            and len(self._slices) > 1
            and self._slices_size > at_least
        ):
            oldest = self._slices.popleft()
            self._num_overwritten += oldest.num_events
            self._slices_size -= size(oldest)
            if self._slices[0].round != oldest.round:
                self._forget_nodes()

    def _forget_nodes(self) -> None:
        """Forget nodes of rounds of which all passes are over and forgotten."""
        self._nodes = [one for one in self._nodes if self._is_needed(one.round)]
        self._nodes_size = sum(map(size, self._nodes))
        oldest = self._slices[0].round
        for place in [
            place for place, last in self._needed_until.items() if last < oldest
        ]:
            del self._needed_until[place]

    def _is_needed(self, place: int) -> bool:
        """Return whether nodes defined in that round may be referred to.

        A pass reports its start and then its nodes, and the writer takes them in that
        order. So it finds the two in one round, or in neighboring ones. Nodes that are
        placed after a pass are reported just before its end: they are in the round of
        that end, or in the one before.
        """
        last = self._needed_until.get(place, 0)
        is_needed = last >= self._slices[0].round or self._is_open(place)
        return is_needed or self._may_have_placed(place)

    def _may_have_placed(self, place: int) -> bool:
        """Return whether the round may place nodes and have the end of their pass."""
        return place == self._round and bool(self._under_way)

    def _is_open(self, place: int) -> bool:
        """Return whether a pass is under way whose nodes may be of that round."""
        return any(abs(began - place) <= 1 for began in self._under_way.values())

    def _forget_unused_nodes(self) -> None:
        """Of rounds that are needed, forget the nodes of passes that are forgotten."""
        used: set[int] = set()
        for name, numbers in self._numbers(self._slices):
            if name in NODES:
                used.update(numbers)
        kept = []
        for one in self._nodes:
            if self._may_have_placed(one.round):
                kept.append(one)
                continue
            rows = list(self._rows(one))
            open_from = self._open_from(one.round, [row.id for row in rows])
            rows = [
                row
                for place, row in enumerate(rows)
                if place >= open_from or row.id in used
            ]
            if rows:
                kept.append(nodes_of(one.round, rows))
        self._nodes = kept
        self._nodes_size = sum(map(size, kept))

    def _open_from(self, place: int, nodes: list[int]) -> int:
        """Return the index from which `nodes` of a round may be of a pass under way."""
        roots = {
            self._roots.get(task, _NO_NODE)
            for task, began in self._under_way.items()
            if abs(began - place) <= 1
        }
        if _NO_NODE in roots:
            return 0
        return min(
            (nodes.index(root) for root in roots if root in nodes), default=len(nodes)
        )

    def _forget_unused(self) -> None:
        """Forget the texts and inputs that nothing refers to, nor ever will."""
        try:
            strings, inputs = self._known()
        except RuntimeError:  # something was added meanwhile
            return
        for name, numbers in self._numbers(self._all_slices()):
            if name == _TEXT:
                strings.update(numbers)
        for nodes in self._all_nodes():
            for node in self._rows(nodes):
                strings.update((node.name, node.device, node.module))
                inputs.update(node.inputs)
        self._inputs = {one: self._inputs[one] for one in self._inputs if one in inputs}
        for row in self._inputs.values():
            strings.update((row.dtype, row.device))
        for model in self._models.values():
            strings.add(model.name)
            for one in model.parameters:
                strings.update((one.names, one.dtype, one.device))
        self._strings = {
            one: self._strings[one] for one in self._strings if one in strings
        }

    @staticmethod
    def _numbers(slices: Iterable[RingSlice]) -> Iterator[tuple[str, list[int]]]:
        """The columns of their events with their names; that of a text is `_TEXT`."""
        budget = Budget(_NO_LIMIT)
        for one in slices:
            for payload in one.payloads:
                raw, _ = unpack(memoryview(payload), budget)
                for code, columns in decode_events(raw, budget)[1]:
                    own = own_columns(KINDS[code & ~INFERRED])
                    names = [_TEXT if one.type is str else one.name for one in own]
                    for name, numbers in zip((*_COMMON, *names), columns, strict=True):
                        yield name, numbers.tolist()

    @staticmethod
    def _rows(nodes: RingNodes) -> Iterator[NodeRow]:
        budget = Budget(_NO_LIMIT)
        for payload in nodes.payloads:
            raw, _ = unpack(memoryview(payload), budget)
            yield from decode_json(raw, Definitions).nodes


def nodes_of(place: int, rows: list[NodeRow]) -> RingNodes:
    """Return the nodes that were defined in a round, packed."""
    pieces = encode_definitions(Definitions(nodes=rows))
    return RingNodes(place, len(rows), tuple(map(pack, pieces)))


def size(part: RingSlice | RingNodes) -> int:
    """Return how many bytes it takes."""
    return sum(map(len, part.payloads))
