"""A trace in memory: the model that analysis and rendering read.

Nothing here knows of files or frames (see `reader`) or of who recorded what. A
`Trace` never changes and may be read from any thread.
"""

import abc
import enum
from collections.abc import Callable, Iterable, Iterator, Mapping
from pathlib import Path
from types import MappingProxyType
from typing import Annotated, Any, Final, Literal, NamedTuple, cast

import msgspec
import numpy as np

from gradviz.trace.events import (
    KINDS,
    MAX_SEQUENCE_NR,
    AnyEvent,
    Event,
    EventColumn,
    kind_name,
    own_columns,
)
from gradviz.trace.format.clock import ClockPair
from gradviz.trace.format.scope import Scope
from gradviz.trace.format.table import Column, Narrow, Table

#: Integers that a trace may hold where a number is expected.
Integer = Annotated[int, msgspec.Meta(ge=-(2**63), le=2**63 - 1)]

#: Stands for a text whose definition was lost.
LOST_TEXT: Final = "(lost)"

#: `QueueDefinition.device` where the definition was lost (PyTorch's NO_DEVICE).
UNKNOWN_DEVICE: Final = -2

#: Events are made typed so many at a time.
_CHUNK: Final = 1 << 14


class InputDefinition(msgspec.Struct, frozen=True, gc=False):
    """Expected metadata of a node's input, as text."""

    shape: tuple[int, ...]
    dtype: str
    device: str


class NodeDefinition(msgspec.Struct, frozen=True, kw_only=True):
    """A node of the backward graph.

    Attributes:
        id: Number that events call it by.
        name: Such as ``MulBackward0``.
        sequence_nr: Number of nodes that its thread had made before; 2**64 - 1 for
            every AccumulateGrad.
        topological_nr: Length of the longest path to a leaf.
        device: Device on which it runs, such as ``cpu`` or ``sim:0``.
        edges: For each gradient that the node returns the id of the node that gets
            it, -1 for none, and which of that node's inputs.
        inputs: Metadata that each input expects, None for anything.
        location: ``path:line`` of the user's program that made the node, empty where
            that is not known. After a library's, the program's own follows; see Note
            [Two lines] in `reporting.location`.
        module: The part of a model that made it, such as ``encoder.0.linear``; empty
            outside a model.
        parameters: Names of the leaf of an AccumulateGrad, such as
            ``Net.encoder.0.weight``: all its names, if models share it.
    """

    id: int
    name: str
    sequence_nr: int
    topological_nr: int
    device: str
    edges: tuple[tuple[int, int], ...]
    inputs: tuple[InputDefinition | None, ...]
    location: str = ""
    module: str = ""
    parameters: tuple[str, ...] = ()


class EdgeColumns(NamedTuple):
    """EdgeColumns of many nodes.

    Attributes:
        ends: Of each node, how many there are of it and of those before it.
        consumer: The node that each leads to, -1 for none.
        input_nr: Index of that node's input.
    """

    ends: Column
    consumer: Column
    input_nr: Column


class NodeDefinitions(Mapping[int, NodeDefinition], abc.ABC):
    """Node id -> definition, of all nodes of a trace. May be read from any thread."""

    @abc.abstractmethod
    def names(
        self,
        nodes: Narrow,
        of: Literal["name", "device", "module", "location", "parameter"] = "name",
    ) -> tuple[list[str], Column]:
        """The names of many nodes: each name once, and of each node which it has.

        A node whose definition is lost is called ``?``. So with their devices, modules
        and locations.
        """

    @abc.abstractmethod
    def sequence_nrs(self, nodes: Narrow) -> Column:
        """The sequence_nr of many nodes, -1 of an AccumulateGrad, 0 if it is lost."""

    @abc.abstractmethod
    def topological_nrs(self, nodes: Narrow) -> Column:
        """The topological_nr of many nodes, 0 if it is lost."""

    @abc.abstractmethod
    def inputs(self, nodes: Narrow) -> list[tuple[InputDefinition | None, ...]]:
        """Return the expected inputs of many nodes; none for a lost node."""

    @abc.abstractmethod
    def edges(self, nodes: Narrow) -> "EdgeColumns":
        """The edges of many nodes, one after the other; none of one that is lost."""


class ParameterDefinition(msgspec.Struct, frozen=True, gc=False):
    """A parameter of a model, when the recorder first saw its model.

    Attributes:
        names: Its names in the model, such as ``Net.encoder.0.weight``: several if
            modules share it.
        shape: Its shape, None if it had none yet.
        dtype: Its dtype, as text.
        device: The device it was on, as text.
        requires_grad: True if it required a gradient.
    """

    names: tuple[str, ...]
    shape: tuple[int, ...] | None
    dtype: str
    device: str
    requires_grad: bool


class ModelDefinition(msgspec.Struct, frozen=True, gc=False):
    """A model with parameters that passes may reach.

    Attributes:
        name: The first part of the paths of its modules.
        num_parameters: Number of its parameters.
        parameters: These parameters; of very many the first.
    """

    name: str
    num_parameters: int
    parameters: tuple[ParameterDefinition, ...]


class ThreadDefinition(msgspec.Struct, frozen=True, gc=False):
    """A thread that reported something; `number` counts from 0 within the trace."""

    number: int
    name: str


class ProcessDefinition(msgspec.Struct, frozen=True):
    """A process that was recorded, and the numbers of its threads.

    Attributes:
        pid: Its id.
        rank: Its number in a distributed run, -1 outside one.
        host: Name of the machine.
        argv: The program and its arguments.
        threads: Numbers of those of the trace's threads that are its own.
        clock_uncertainty_ns: Amount by which its times may be wrong beside those of
            the first process, whose clock the trace has.
    """

    pid: int
    rank: int
    host: str
    argv: tuple[str, ...]
    threads: tuple[int, ...]
    clock_uncertainty_ns: int = 0


class QueueDefinition(msgspec.Struct, frozen=True, gc=False):
    """A ready queue.

    Attributes:
        id: Number that events call it by.
        name: For people.
        device: Index of the device it serves, -1 for a caller's CPU queue, -2 where
            that is not known.
    """

    id: int
    name: str
    device: int


class Header(msgspec.Struct, frozen=True, kw_only=True):
    """Producer of a trace, and time of the recording.

    Attributes:
        version: Major and minor number of the trace format.
        gradviz: Version of gradviz.
        python: Version of Python.
        packages: Name -> version of the packages that matter for the results.
        platform: Operating system and machine.
        host: Name of the machine.
        boot_id: Random id of the machine's start; empty if unknown.
        pid: Process id.
        rank: Number of the process in a distributed run, -1 outside one.
        run_id: The same for all processes of that run; empty if none was given.
        argv: The program and its arguments.
        recording: Random number in the stamps of this recording's frames; -1 if they
            have none.
        clock: Clock reading at the start of the recording.
        scope: Parts that the recording was asked to keep.
    """

    version: tuple[int, int]
    recording: int = -1
    gradviz: str = ""
    python: str = ""
    packages: dict[str, str] = {}
    platform: str = ""
    host: str = ""
    boot_id: str = ""
    pid: int = -1
    rank: int = -1
    run_id: str = ""
    argv: tuple[str, ...] = ()
    clock: ClockPair
    scope: Scope = Scope()


class Losses(msgspec.Struct, frozen=True, kw_only=True):
    """Known losses of a trace.

    Attributes:
        dropped: Events that the recorder had to drop.
        overwritten: Events at the start that a ring overwrote with later ones.
        damaged_bytes: Bytes of the file in no intact frame, a cut tail not counted.
        unknown_events: Events of kinds, or with values, that this version does not
            know.
        truncated: The file ends inside a frame.
        closed: The recorder reported that it was done.
        problems: Everything else, and details, a sentence each.
    """

    dropped: int = 0
    overwritten: int = 0
    damaged_bytes: int = 0
    unknown_events: int = 0
    truncated: bool = False
    closed: bool = True
    problems: tuple[str, ...] = ()

    @property
    def is_complete(self) -> bool:
        """True if nothing is missing, as far as that can be known."""
        return self.closed and not (
            self.dropped
            or self.overwritten
            or self.damaged_bytes
            or self.unknown_events
            or self.truncated
            or self.problems
        )

    def in_words(self) -> list[str]:
        """Return the losses, a few words each."""
        told = [
            (self.dropped, f"{self.dropped:,} events were dropped while recording"),
            (
                self.overwritten,
                f"its first {self.overwritten:,} events were overwritten by later ones",
            ),
            (self.damaged_bytes, f"{self.damaged_bytes:,} bytes are damaged"),
            (
                self.unknown_events,
                f"{self.unknown_events:,} events are of no kind known here",
            ),
            (self.truncated, "its end is cut off"),
            (not self.closed, "it goes on or was broken off"),
        ]
        return [*(text for has, text in told if has), *self.problems]


class Trace:
    """A recording in memory.

    Attributes:
        path: The file it was read from, None for a recording in memory.
        header: The producer and its settings.
        clocks: Pairs of clock readings, the first of them the header's.
        nodes: Node id -> definition; a node whose definition was lost is not there.
        threads: Number -> definition, of every thread in the events.
        queues: Id -> definition, of every queue in the events.
        losses: Missing parts.
        strings: The texts that columns of text refer to by index.
        columns: Kind of event -> name of column -> numbers, in the order of `seq`,
            for all kinds and all columns: ``seq``, ``t_ns``, ``thread``, ``task``,
            ``node``, ``inferred`` and the kind's own. Text is an index into `strings`,
            an enum its value, and a sequence_nr of 2**64 - 1 is -1. See `Table`.
        processes: The recorded processes: one, unless traces were merged.
        models: Name -> definition of the models that were seen, with the parameters
            that no pass reached too; empty in older traces.
    """

    def __init__(  # noqa: PLR0913 - a trace has the parts it has
        self,
        *,
        path: Path | None,
        header: Header,
        clocks: tuple[ClockPair, ...],
        nodes: NodeDefinitions,
        threads: Mapping[int, ThreadDefinition],
        queues: Mapping[int, QueueDefinition],
        losses: Losses,
        strings: tuple[str, ...],
        columns: Mapping[str, Table],
        processes: tuple[ProcessDefinition, ...] = (),
        models: Mapping[str, ModelDefinition] = MappingProxyType({}),
    ) -> None:
        self.path = path
        self.header = header
        self.clocks = clocks
        self.nodes = nodes
        self.threads = threads
        self.queues = queues
        self.losses = losses
        self.strings = strings
        self.columns = columns
        self.processes = processes or (_process(header, threads),)
        self.models = models

    @property
    def num_events(self) -> int:
        """Number of events."""
        return sum(table.num_rows for table in self.columns.values())

    @property
    def tasks(self) -> tuple[int, ...]:
        """Ids of the GraphTasks, in the order in which they began."""
        return tuple(self.columns["task_begun"]["task"].tolist())

    def events(self, *, task: int | None = None) -> Iterator[AnyEvent]:
        """Every event, or those of one GraphTask, in the order of `seq`.

        That is the order of time, and of threads where times are equal.
        """
        tables = self.columns
        if task is not None:
            tables = {
                name: table.at(table.narrow("task") == task)
                for name, table in tables.items()
            }
        return self.events_of(tables)

    def events_of(self, tables: Mapping[str, Table]) -> Iterator[AnyEvent]:
        """The events of some rows of this trace's tables, in the order of `seq`."""
        seqs = {
            name: table.narrow("seq")
            for name, table in tables.items()
            if table.num_rows
        }
        while seqs:
            # So far that no kind gives more than a chunk.
            ends = [int(seq[_CHUNK]) for seq in seqs.values() if len(seq) > _CHUNK]
            chunk: list[AnyEvent] = []
            for name, seq in list(seqs.items()):
                high = int(np.searchsorted(seq, min(ends))) if ends else len(seq)
                begin = tables[name].num_rows - len(seq)
                chunk += self._typed(
                    _KINDS[name], tables[name].at(slice(begin, begin + high))
                )
                if high == len(seq):
                    del seqs[name]
                else:
                    seqs[name] = seq[high:]
            chunk.sort(key=lambda event: event.seq)
            yield from chunk

    def _typed(self, kind: type[Event], rows: Table) -> Iterator[AnyEvent]:
        names = kind.__struct_fields__
        own: dict[str, Callable[[int], Any]] = {
            column.name: self._meaning(column) for column in own_columns(kind)
        }
        own["inferred"] = bool
        values: list[Iterable[Any]] = []
        for name in names:
            numbers = rows.narrow(name).tolist()
            of = own.get(name, int)
            values.append(numbers if of is int else map(of, numbers))
        made = cast("Callable[..., AnyEvent]", kind)
        for row in zip(*values, strict=True):
            yield made(**dict(zip(names, row, strict=True)))

    def _meaning(self, column: EventColumn) -> Callable[[int], Any]:
        """Return a function from the numbers of a column to their values."""
        of = column.type
        if column.name == "sequence_nr":
            return _sequence_nr
        if column.may_be_unknown:
            return _known
        if of is str:
            return self.strings.__getitem__
        if of is bool:
            return bool
        if issubclass(of, enum.Enum):
            return {member.value: member for member in of}.__getitem__
        return int

    def __repr__(self) -> str:
        where = self.path.name if self.path else "in memory"
        return f"<Trace {where}: {len(self.tasks)} tasks, {self.num_events} events>"


_KINDS: Final = {kind_name(kind): kind for kind in KINDS.values()}


def _process(header: Header, threads: Mapping[int, object]) -> ProcessDefinition:
    """Return the process of a header."""
    return ProcessDefinition(
        header.pid, header.rank, header.host, header.argv, tuple(threads)
    )


def _known(number: int) -> int | None:
    return None if number == -1 else number


def _sequence_nr(number: int) -> int:
    return MAX_SEQUENCE_NR if number == -1 else number
