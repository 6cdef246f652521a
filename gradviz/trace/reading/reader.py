"""The reader: the bytes of a trace file into a `Trace`.

Everything in a file may be wrong: it was cut by a killed process, changed by a bad
disk, or made by somebody who wants to do harm. The reader takes every intact frame,
reports what is missing in `Losses`, and refuses only what is not a trace at all.
Nothing is believed before its checksum, nothing allocated before its size is checked,
and no code or type is ever taken from a file.
"""

import contextlib
import os
import stat
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import BinaryIO, Final

from gradviz import posix
from gradviz._version import __version__
from gradviz.errors import TraceError
from gradviz.trace.events import INFERRED, KINDS
from gradviz.trace.format.clock import ClockPair
from gradviz.trace.format.columns import Block, decode_events
from gradviz.trace.format.definitions import (
    VERSION,
    Closed,
    Definitions,
    InputRow,
    Lost,
    ModelRow,
    ParameterRow,
    ProcessRow,
    Stamped,
    VersionOnly,
    decode_json,
)
from gradviz.trace.format.frames import (
    MAGIC,
    Budget,
    DamageError,
    Frame,
    FrameType,
    Gap,
    Numbering,
    Stamp,
    scan,
    unpack,
)
from gradviz.trace.format.model import (
    LOST_TEXT,
    UNKNOWN_DEVICE,
    Header,
    Losses,
    ModelDefinition,
    ParameterDefinition,
    ProcessDefinition,
    QueueDefinition,
    ThreadDefinition,
    Trace,
)
from gradviz.trace.format.strings import shortened
from gradviz.trace.format.table import Table, different
from gradviz.trace.reading.assembly import (
    GatheredRows,
    Texts,
    credible_rows,
    known_rows,
    merge,
)
from gradviz.trace.reading.node_definitions import GatheredNodes
from gradviz.trace.reading.worker_threads import called_after_workers

#: Details of what is missing are listed up to this many.
_MAX_PROBLEMS: Final = 100

#: Longer texts are cut. A recorder writes none.
_MAX_TEXT: Final = 4_000

#: Larger frames of definitions are refused if they are not mostly long lists: each `[`
#: becomes an object of some hundred bytes.
_MAX_LISTS: Final = 1 << 19

#: Size of a definition besides its text, in bytes.
_DEFINITION_BYTES: Final = 250


def load_trace(path: str | os.PathLike[str]) -> Trace:
    """Read a trace file, as much of it as is intact.

    Raises:
        TraceError: There is no such file, it cannot be read, it is not a trace, it was
            written in a format too new for this version, or not even its first frame
            is intact. Anything less is told in `Trace.losses`.
    """
    path = Path(path)
    with open_trace(path) as file:
        data = file.read()
    parser = _taken(data, path)
    del data  # or a long file is in memory beside its columns
    return parser.trace(path)


def parse_trace(data: bytes, *, path: Path | None = None) -> Trace:
    """Read a trace from its bytes; see `load_trace`.

    Args:
        data: Bytes that a recorder wrote.
        path: File that they came from, for messages.
    """
    return _taken(data, path).trace(path)


def _taken(data: bytes, path: Path | None) -> "Parser":
    """Return the parser that has taken all pieces of a file."""
    name = repr(str(path)) if path else "the trace"
    pieces = scan(data)
    header = header_of(name, data, next(pieces, None))
    parser = Parser(header, Budget(len(data)))
    for piece in pieces:
        if not parser.take(piece):
            break
    return parser


@contextlib.contextmanager
def open_trace(path: Path) -> Iterator[BinaryIO]:
    """A regular file, to be read; never waits, as opening a FIFO would.

    Raises:
        TraceError: It cannot be opened, or be read in the block.
    """
    try:
        file = os.open(path, posix.READ)
    except FileNotFoundError:
        raise TraceError(f"there is no trace {str(path)!r}") from None
    except (OSError, ValueError) as error:
        raise _unreadable(path, error) from None
    try:
        mode = os.fstat(file).st_mode
        if stat.S_ISDIR(mode):
            raise TraceError(f"{str(path)!r} is a directory, not a trace")
        if not stat.S_ISREG(mode):
            raise TraceError(f"{str(path)!r} is not a regular file, so not a trace")
        with open(file, "rb", closefd=False) as opened:
            yield opened
    except (OSError, MemoryError) as error:
        raise _unreadable(path, error) from None
    finally:
        os.close(file)


def _unreadable(path: Path, error: Exception) -> TraceError:
    reason = getattr(error, "strerror", None) or str(error) or type(error).__name__
    return TraceError(f"cannot read {str(path)!r}: {reason}")


def header_of(name: str, data: bytes, first: Frame | Gap | None) -> Header:
    """Return the header from the first frame.

    Raises:
        TraceError: It is not there, not intact, no header, or of a later format.
    """
    if first is None:
        raise TraceError(f"{name} is empty: nothing was recorded into it")
    if isinstance(first, Gap):
        if first.is_tail:
            raise TraceError(f"{name} is cut off inside its first frame")
        if MAGIC not in data:
            raise TraceError(
                f"{name} is not a gradviz trace: it begins with {data[:8]!r}, "
                f"a trace with {MAGIC!r}"
            )
    try:
        if isinstance(first, Gap) or first.type != FrameType.HEADER:
            raise DamageError("it has been changed")
        major, minor = decode_json(first.payload, VersionOnly).version
        if major != VERSION[0]:
            raise TraceError(
                f"{name} is written in trace format {major}.{minor}, and this "
                f"gradviz ({__version__}) reads {VERSION[0]}.x: use the gradviz "
                f"that wrote it, or a later one"
            )
        return decode_json(first.payload, Header)
    except DamageError as error:
        raise TraceError(
            f"{name} is damaged in its first frame, without which the others cannot "
            f"be read: {error}"
        ) from None


class Parser:
    """Parser of the pieces of a file, which returns traces on request.

    A trace has all definitions so far and the events since the previous one, or all
    events.

    Args:
        header: The header from the first frame.
        budget: Limits on the cost of the file.
        keeps: True if events are returned again.
    """

    def __init__(self, header: Header, budget: Budget, *, keeps: bool = False) -> None:
        self._budget = budget
        self._header = header
        self._numbering = Numbering(header.recording)
        self._clocks = [header.clock]
        self._strings: dict[int, str] = {}
        self._threads: dict[int, ThreadDefinition] = {}
        self._queues: dict[int, QueueDefinition] = {}
        self._inputs: dict[int, InputRow] = {}
        self._processes: list[ProcessDefinition] = []
        self._models: dict[str, ModelDefinition] = {}
        self._nodes = GatheredNodes()
        self._rows = {kind: GatheredRows(kind) for kind in KINDS.values()}
        self._closed: Closed | None = None
        self._truncated = False
        self._damaged_bytes = 0
        self._dropped = 0
        self._num_unknown = 0
        self._num_events = 0
        self._keeps = keeps
        self._num_cut = 0
        self._num_incredible = 0
        self._problems: list[str] = []
        self._num_problems = 0

    @property
    def is_closed(self) -> bool:
        """Return whether the recorder has reported that it is done."""
        return self._closed is not None

    def take(self, piece: Frame | Gap) -> bool:
        """Take the next piece; False if nothing after it belongs to this trace."""
        if isinstance(piece, Gap):
            self._take_gap(piece)
        elif piece.type == FrameType.HEADER:
            self._note(f"another trace begins at byte {piece.offset} and is left out")
            return False
        else:
            try:
                self._take_frame(piece)
            except DamageError as error:
                self._damaged_bytes += len(piece.payload)
                self._note(f"the frame at byte {piece.offset} is left out: {error}")
        return True

    def trace(self, path: Path | None, *, is_cut: bool = False) -> Trace:
        """Everything taken, as a trace; `is_cut` says that a frame is not whole yet."""
        texts = Texts(self._strings)
        given = 0 if self._keeps else self._num_events
        columns = merge(self._rows, texts, given, keeps=self._keeps)
        num_new = sum(table.num_rows for table in columns.values())
        self._num_events = given + num_new
        return Trace(
            path=path,
            header=self._header,
            clocks=tuple(self._clocks),
            nodes=self._nodes.nodes(self._inputs, texts, columns["node_created"]),
            threads=self._threads_of(columns),
            queues=self._queues_of(columns),
            losses=self._losses(is_cut=is_cut),
            strings=texts.all,
            columns=columns,
            processes=tuple(self._processes),
            models=dict(self._models),
        )

    # --- pieces --------------------------------------------------------------------

    def _take_gap(self, gap: Gap) -> None:
        if gap.is_tail:
            self._truncated = True
            return
        self._damaged_bytes += gap.size
        self._note(f"{gap.size} bytes from byte {gap.offset} on are damaged")

    def _take_frame(self, frame: Frame) -> None:
        match frame.type:
            case FrameType.EVENTS | FrameType.DEFINITIONS:
                raw, stamp = unpack(frame.payload, self._budget)
                self._take_number(frame, stamp)
                if frame.type == FrameType.EVENTS:
                    self._take_events(*decode_events(raw, self._budget))
                else:
                    self._take_definitions(raw)
            case FrameType.LOST | FrameType.ANCHOR | FrameType.CLOSED:
                stamped = decode_json(frame.payload, Stamped).stamp
                self._take_number(frame, stamped and Stamp(*stamped))
                self._take_json(frame)
            case unknown:
                self._note(
                    f"the frame at byte {frame.offset} has unknown type {unknown}"
                )

    def _take_number(self, frame: Frame, stamp: Stamp | None) -> None:
        if wrong := self._numbering.take(stamp):
            self._note(f"the frame at byte {frame.offset} was moved: {wrong}")

    def _take_json(self, frame: Frame) -> None:
        if frame.type == FrameType.LOST:
            self._dropped += decode_json(frame.payload, Lost).events
        elif frame.type == FrameType.ANCHOR:
            self._clocks.append(decode_json(frame.payload, ClockPair))
        else:
            self._closed = decode_json(frame.payload, Closed)

    def _take_definitions(self, raw: bytes) -> None:
        num_lists = raw.count(b"[")
        if num_lists > _MAX_LISTS:
            raise DamageError("it holds far more definitions than a recorder writes")
        self._budget.define(num_lists)
        new = decode_json(raw, Definitions)
        if any(len(row.edges) % 2 for row in new.nodes):
            raise DamageError("an edge of a node has no input number")
        few = (
            *(*new.strings, *new.threads, *new.queues, *new.inputs),
            *(*new.processes, *new.problems, *new.models),
            *(row for model in new.models for row in model.parameters),
            *(word for row in new.processes for word in (*row.argv, *row.threads)),
        )
        shapes = sum(len(row.shape) for row in new.inputs)
        shapes += sum(
            len(row.shape or ()) for model in new.models for row in model.parameters
        )
        self._budget.keep(_DEFINITION_BYTES * len(few) + 8 * shapes)
        self._nodes.add(new.nodes, self._budget)
        self._strings.update((index, self._cut(text)) for index, text in new.strings)
        self._threads.update(
            (number, ThreadDefinition(number, self._cut(name)))
            for number, name in new.threads
        )
        self._queues.update(
            (row.id, QueueDefinition(row.id, self._cut(row.name), row.device))
            for row in new.queues
        )
        self._inputs.update((row.index, row) for row in new.inputs)
        self._processes += map(self._process, new.processes)
        for model in map(self._model, new.models):
            self._models[model.name] = model
        for problem in new.problems:
            self._note(self._cut(problem))

    def _process(self, row: ProcessRow) -> ProcessDefinition:
        argv = tuple(map(self._cut, row.argv))
        threads = tuple(row.threads)
        host, uncertainty_ns = self._cut(row.host), row.clock_uncertainty_ns
        return ProcessDefinition(row.pid, row.rank, host, argv, threads, uncertainty_ns)

    def _model(self, row: ModelRow) -> ModelDefinition:
        parameters = tuple(map(self._parameter, row.parameters))
        num_parameters = max(row.num_parameters, len(parameters))
        return ModelDefinition(self._text(row.name), num_parameters, parameters)

    def _parameter(self, row: ParameterRow) -> ParameterDefinition:
        names = tuple(self._text(row.names).split("\n"))
        self._budget.keep(_DEFINITION_BYTES * len(names))
        dtype, device = self._text(row.dtype), self._text(row.device)
        return ParameterDefinition(names, row.shape, dtype, device, row.requires_grad)

    def _text(self, index: int) -> str:
        return self._strings.get(index, LOST_TEXT)

    def _cut(self, text: str) -> str:
        """`text`, or its beginning if it is longer than any that a recorder writes."""
        if len(text) > _MAX_TEXT:
            self._num_cut += 1
            text = shortened(text, _MAX_TEXT)
        self._budget.keep(len(text))
        return text

    def _take_events(self, thread: int, blocks: list[Block]) -> None:
        for code, columns in blocks:
            kind = KINDS.get(code & ~INFERRED)
            num_rows = columns.shape[1]
            if kind is None:
                self._num_unknown += num_rows
                continue
            known = known_rows(kind, columns)
            self._num_unknown += num_rows - known.shape[1]
            rows = credible_rows(kind, known)
            self._num_incredible += known.shape[1] - rows.shape[1]
            inferred = bool(code & INFERRED)
            self._rows[kind].add(thread, rows, self._budget, inferred=inferred)

    def _note(self, problem: str) -> None:
        self._num_problems += 1
        if len(self._problems) < _MAX_PROBLEMS:
            self._problems.append(problem)

    # --- parts of a trace ----------------------------------------------------------

    def _threads_of(self, columns: Mapping[str, Table]) -> dict[int, ThreadDefinition]:
        numbers = _values("thread", columns)
        threads = {
            number: self._threads.get(number)
            or ThreadDefinition(number, f"thread {number}")
            for number in numbers
        }
        return called_after_workers(threads, columns["worker_began"])

    def _queues_of(self, columns: Mapping[str, Table]) -> dict[int, QueueDefinition]:
        ids = _values("queue", columns) | self._queues.keys()
        return {
            queue: self._queues.get(queue)
            or QueueDefinition(queue, f"queue {queue}", UNKNOWN_DEVICE)
            for queue in sorted(ids)
        }

    def _losses(self, *, is_cut: bool) -> Losses:
        problems = [*self._numbering.missing(), *self._differences()]
        if self._num_incredible:
            problems.append(
                f"{self._num_incredible} events are left out: their times or sizes "
                f"cannot be true"
            )
        if self._num_cut:
            problems.append(f"{self._num_cut} texts were too long and are cut")
        problems = [*self._problems, *problems]
        more = self._num_problems - len(self._problems)
        return Losses(
            dropped=self._dropped,
            overwritten=self._closed.overwritten if self._closed else 0,
            damaged_bytes=self._damaged_bytes,
            unknown_events=self._num_unknown,
            truncated=self._truncated or is_cut,
            closed=self.is_closed,
            problems=(*problems, *([f"and {more} more"] if more else ())),
        )

    def _differences(self) -> Iterator[str]:
        """Yield the losses by the recorder's own account."""
        closed = self._closed
        if closed is None:
            return
        for what, promised, found in (
            ("recorded events", closed.events, self._num_events + self._num_unknown),
            ("definitions of nodes", closed.nodes, self._nodes.num_rows),
        ):
            if found < promised:
                yield f"{promised - found} of {promised} {what} are missing"
            elif found > promised:
                yield f"{found} {what} where the recorder counted {promised}"
        if closed.dropped != self._dropped:
            yield f"the recorder dropped {closed.dropped} events"


def _values(name: str, columns: Mapping[str, Table]) -> set[int]:
    """Every number in the columns of one name."""
    return {
        value
        for own in columns.values()
        if name in own and own.num_rows
        for value in different(own.narrow(name)).tolist()
    }
