"""Merging: the traces of several processes become the file of one.

What is unique in a process only (passes, nodes, threads, queues, streams, memory) gets
other numbers and names, so that no two of them are taken for one; times are brought to
one clock. What is missing from any of them is missing from the whole, and told there.
"""

import zlib
from array import array
from collections.abc import Iterator, Sequence
from typing import Final, TypeVar

import msgspec
import numpy as np

from gradviz._version import __version__
from gradviz.trace.events import KINDS, MAX_SEQUENCE_NR, kind_name, own_columns
from gradviz.trace.format.columns import RowTable, encode_events
from gradviz.trace.format.definitions import (
    VERSION,
    Closed,
    Definitions,
    InputRow,
    Lost,
    ModelRow,
    NodeRow,
    ParameterRow,
    ProcessRow,
    QueueRow,
    encode_definitions,
    encode_json,
)
from gradviz.trace.format.frames import FrameType, Stamp, encode_frame, pack, stamped
from gradviz.trace.format.model import Header, InputDefinition, ModelDefinition, Trace
from gradviz.trace.format.row_layouts import LAYOUTS, Inferred
from gradviz.trace.format.scope import STACKS, Scope
from gradviz.trace.format.table import Column, Table
from gradviz.trace.merging.collective_order import uneven_in_words
from gradviz.trace.merging.identities import IDENTITIES, MOMENTS, PLACES
from gradviz.trace.merging.message_order import early_in_words
from gradviz.trace.merging.placement import Placed

#: Number of nodes defined at a time.
_BATCH: Final = 1 << 12

Value = TypeVar("Value")


def merged(placed: Sequence[Placed]) -> Iterator[bytes]:
    """The bytes of the file that holds all of them, frame by frame."""
    return _Whole(placed).frames()


class _Whole:
    """Makes the frames, and numbers texts and inputs as they come."""

    def __init__(self, placed: Sequence[Placed]) -> None:
        self._placed = placed
        self._header = _header([one.trace for one in placed])
        self._num_frames = 0
        self._num_nodes = 0
        self._strings: dict[str, int] = {}
        self._new_strings: list[tuple[int, str]] = []
        self._inputs: dict[InputDefinition, int] = {}

    def frames(self) -> Iterator[bytes]:
        """All of them."""
        yield encode_frame(FrameType.HEADER, encode_json(self._header))
        self._num_frames = 1
        yield from self._defined(
            Definitions(
                processes=self._processes(),
                problems=self._problems(),
            )
        )
        num_events = num_dropped = 0
        for one in self._placed:
            yield from self._definitions(one)
            yield from self._events(one)
            num_events += one.trace.num_events
            if dropped := one.trace.losses.dropped:
                num_dropped += dropped
                thread = one.numbered("thread", min(one.trace.threads, default=0))
                yield self._json(FrameType.LOST, encode_json(Lost(thread, dropped)))
        for clock in self._placed[0].trace.clocks[1:]:
            yield self._json(FrameType.ANCHOR, encode_json(clock))
        num_overwritten = sum(one.trace.losses.overwritten for one in self._placed)
        closed = Closed(num_events, self._num_nodes, num_dropped, num_overwritten)
        yield self._json(FrameType.CLOSED, encode_json(closed))

    def _problems(self) -> list[str]:
        """Return the problems; for one trace those that no number of the file shows."""
        if len(self._placed) > 1:
            early = early_in_words([(one.trace, one.clock) for one in self._placed])
            named = [(one.label, one.trace) for one in self._placed]
            told = (text for one in self._placed for text in one.problems)
            return [*told, *early, *uneven_in_words(named)]
        losses = self._placed[0].trace.losses
        return msgspec.structs.replace(losses, dropped=0, overwritten=0).in_words()

    def _processes(self) -> list[ProcessRow]:
        """Return all processes; none if there is only one, which is in the header."""
        rows = [
            ProcessRow(
                process.pid,
                process.rank,
                process.host,
                list(process.argv),
                [one.numbered("thread", thread) for thread in process.threads],
                one.clock.uncertainty_ns + process.clock_uncertainty_ns,
            )
            for one in self._placed
            for process in one.trace.processes
        ]
        return rows if len(rows) > 1 else []

    # --- definitions -----------------------------------------------------------------

    def _definitions(self, one: Placed) -> Iterator[bytes]:
        trace = one.trace
        yield from self._defined(
            Definitions(
                threads=[
                    (one.numbered("thread", thread.number), one.named(thread.name))
                    for thread in trace.threads.values()
                ],
                queues=[
                    QueueRow(
                        one.numbered("queue", queue.id),
                        one.named(queue.name),
                        queue.device,
                    )
                    for queue in trace.queues.values()
                ],
            )
        )
        ids = list(trace.nodes)
        for first in range(0, len(ids), _BATCH):
            inputs: list[InputRow] = []
            rows = [self._node(one, id_, inputs) for id_ in ids[first : first + _BATCH]]
            self._num_nodes += len(rows)
            yield from self._defined(Definitions(inputs=inputs, nodes=rows))
        models = [self._model(one, model) for model in trace.models.values()]
        yield from self._defined(Definitions(models=models))

    def _node(self, one: Placed, id_: int, inputs: list[InputRow]) -> NodeRow:
        """Return a node's row; add new definitions to `inputs`."""
        node = one.trace.nodes[id_]
        sequence_nr = node.sequence_nr
        return NodeRow(
            id=one.numbered("node", id_),
            name=self._string(node.name),
            sequence_nr=-1 if sequence_nr == MAX_SEQUENCE_NR else sequence_nr,
            topological_nr=node.topological_nr,
            device=self._string(one.device(node.device)),
            edges=tuple(
                number
                for consumer, input_nr in node.edges
                for number in (one.numbered("node", consumer), input_nr)
            ),
            inputs=tuple(
                self._input(one, expected, inputs) for expected in node.inputs
            ),
            module=self._string(node.module) if node.module else -1,
            parameter=self._string("\n".join(node.parameters))
            if node.parameters
            else -1,
            location=self._string(node.location) if node.location else -1,
        )

    def _model(self, one: Placed, model: ModelDefinition) -> ModelRow:
        rows = tuple(
            ParameterRow(
                self._string("\n".join(parameter.names)),
                parameter.shape,
                self._string(parameter.dtype),
                self._string(one.device(parameter.device)),
                parameter.requires_grad,
            )
            for parameter in model.parameters
        )
        return ModelRow(self._string(model.name), model.num_parameters, rows)

    def _input(
        self, one: Placed, expected: InputDefinition | None, rows: list[InputRow]
    ) -> int:
        if expected is None:
            return -1
        device = one.device(expected.device)
        expected = msgspec.structs.replace(expected, device=device)
        index = self._inputs.get(expected)
        if index is None:
            index = self._inputs[expected] = len(self._inputs)
            dtype = self._string(expected.dtype)
            rows.append(InputRow(index, expected.shape, dtype, self._string(device)))
        return index

    def _string(self, text: str) -> int:
        index = self._strings.get(text)
        if index is None:
            index = self._strings[text] = len(self._strings)
            self._new_strings.append((index, text))
        return index

    # --- events ----------------------------------------------------------------------

    def _events(self, one: Placed) -> Iterator[bytes]:
        times = _times(one)
        for kind in KINDS.values():
            table = one.trace.columns[kind_name(kind)]
            if not table.num_rows:
                continue
            names = ["t_ns", "task", "node", *(own.name for own in own_columns(kind))]
            texts = {own.name for own in own_columns(kind) if own.type is str}
            columns = [
                self._texts(one, name, table)
                if name in texts
                else times[kind_name(kind)]
                if name == "t_ns"
                else _numbers(one, name, table)
                for name in names
            ]
            yield from self._defined(Definitions())  # of the texts
            # The rows of a block have their thread in common, and who saw them.
            block = 2 * table["thread"] + table.narrow("inferred")
            order = np.argsort(block, kind="stable")
            begins = np.flatnonzero(np.diff(block[order], prepend=-1))
            for rows in np.split(order, begins[1:]):
                thread, inferred = divmod(int(block[rows[0]]), 2)
                number = one.numbered("thread", thread)
                packed = (array("q", column[rows].tobytes()) for column in columns)
                layout = LAYOUTS[Inferred(kind) if inferred else kind]
                of_thread = RowTable(layout, len(rows), tuple(packed))
                for payload in encode_events(number, [of_thread]):
                    yield self._packed(FrameType.EVENTS, payload)

    def _texts(self, one: Placed, name: str, table: Table) -> Column:
        """Return the indices of a column's texts among those of the whole."""
        used, places = np.unique(table.narrow(name), return_inverse=True)
        texts = [one.trace.strings[place] for place in used.tolist()]
        if name in PLACES:
            texts = list(map(one.device, texts))
        return np.array(list(map(self._string, texts)), np.int64)[places]

    # --- frames ----------------------------------------------------------------------

    def _defined(self, definitions: Definitions) -> Iterator[bytes]:
        """The frames of some definitions, before them those of the texts they use."""
        strings, self._new_strings = self._new_strings, []
        for some in (Definitions(strings=strings), definitions):
            for piece in encode_definitions(some):
                yield self._packed(FrameType.DEFINITIONS, piece)

    def _packed(self, kind: FrameType, raw: bytes) -> bytes:
        return encode_frame(kind, pack(raw, self._stamp()))

    def _json(self, kind: FrameType, json: bytes) -> bytes:
        return encode_frame(kind, stamped(json, self._stamp()))

    def _stamp(self) -> Stamp:
        self._num_frames += 1
        return Stamp(self._header.recording, self._num_frames - 1)


def _times(one: Placed) -> dict[str, Column]:
    """Of each kind the times of its events, as they are in the whole.

    What a thread did stays in its order where a clock that is slowed down would give
    two events the same time.
    """
    tables = {
        kind: table for kind, table in one.trace.columns.items() if table.num_rows
    }
    times = {kind: one.clock.moved(table["t_ns"]) for kind, table in tables.items()}
    if one.clock.is_even or not tables:
        return times
    everything = np.concatenate([*times.values()])
    seq, thread = (
        np.concatenate([table[name] for table in tables.values()])
        for name in ("seq", "thread")
    )
    order = np.lexsort((seq, thread))
    begins = np.flatnonzero(np.diff(thread[order])) + 1
    for places in np.split(order, begins):
        steps = np.arange(len(places))
        everything[places] = np.maximum.accumulate(everything[places] - steps) + steps
    ends = np.cumsum([table.num_rows for table in tables.values()])
    return dict(zip(tables, np.split(everything, ends[:-1]), strict=True))


def _numbers(one: Placed, name: str, table: Table) -> Column:
    """A column of numbers, as they are in the whole."""
    column = table[name]
    if name in MOMENTS:
        return one.clock.moved(column)
    if name in IDENTITIES:
        return np.where(column >= 0, column + one.first[IDENTITIES[name]], column)
    return column


def _header(traces: Sequence[Trace]) -> Header:
    """Return the header of one trace, or the common parts of several."""
    headers = [trace.header for trace in traces]
    first = headers[0]
    if len(headers) == 1:
        recording = max(first.recording, 0)
        return msgspec.structs.replace(first, version=VERSION, recording=recording)
    recordings = ",".join(str(one.recording) for one in headers)
    return Header(
        version=VERSION,
        recording=zlib.crc32(recordings.encode()) >> 1,
        gradviz=__version__,
        python=first.python,
        packages=first.packages,
        platform=first.platform,
        host=_common([one.host for one in headers], ""),
        boot_id=_common([one.boot_id for one in headers], ""),
        run_id=_common([one.run_id for one in headers], ""),
        argv=_common([one.argv for one in headers], ()),
        clock=first.clock,
        scope=_scope([one.scope for one in headers]),
    )


def _scope(scopes: Sequence[Scope]) -> Scope:
    """Return the common scope: parts left out by one recording are incomplete here."""
    schedules = (one.schedule for one in scopes)
    return Scope(
        left_out=tuple(dict.fromkeys(kind for one in scopes for kind in one.left_out)),
        only=tuple(dict.fromkeys(name for one in scopes for name in one.only)),
        stacks=min((one.stacks for one in scopes), key=STACKS.index),
        schedule=next((one for one in schedules if one is not None), None),
        ring_bytes=max(one.ring_bytes for one in scopes),
        kept_steps=next((one.kept_steps for one in scopes if one.kept_steps), None),
    )


def _common(values: Sequence[Value], otherwise: Value) -> Value:
    """Return the common value, if all are the same."""
    return values[0] if all(one == values[0] for one in values) else otherwise
