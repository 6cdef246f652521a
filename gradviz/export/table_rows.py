"""The rows of the tables: see `tables`.

What a trace does not have is None, which is NULL in a database.
"""

from collections.abc import Iterator, Sequence
from typing import Final, TypeAlias

import msgspec
import numpy as np

from gradviz.analysis.graphs.backward_graph import MAX_INPUTS
from gradviz.analysis.tables.executions import (
    MAX_TEXT,
    STATUSES,
    definition,
    execution_columns,
)
from gradviz.analysis.tables.kernels import launches
from gradviz.analysis.tables.passes import pass_parts, passes
from gradviz.analysis.tables.worker_parts import worker_parts
from gradviz.trace.events import AnyEvent, kind_name, own_columns
from gradviz.trace.format.model import InputDefinition, NodeDefinition, Trace
from gradviz.trace.format.strings import shortened

#: Of a shape that has more dimensions the first are told.
MAX_DIMENSIONS: Final = 64

#: Columns of a run, as `Executions` has them.
_OF_RUN: Final = (
    *("task", "node", "thread", "start_ns", "end_ns", "has_ended", "waited_ns"),
    *("thread_time_ns", "status", "error"),
    *("queue", "pushed_ns", "popped_ns", "was_popped"),
)

#: Number of rows made at a time.
BATCH: Final = 1 << 13

TableCell: TypeAlias = int | str | None
TableRow: TypeAlias = tuple[TableCell, ...]


def runs_rows(trace: Trace) -> Iterator[TableRow]:
    """Nodes that were started, in order of start."""
    every = execution_columns(trace)
    parts = worker_parts(trace)
    for first in range(0, len(every.node), BATCH):
        some = every.at(slice(first, first + BATCH))
        columns = (getattr(some, name).tolist() for name in _OF_RUN)
        for (
            task,
            id_,
            thread,
            started_ns,
            ended_ns,
            has_ended,
            waited_ns,
            thread_time_ns,
            status,
            error,
            queue,
            pushed_ns,
            popped_ns,
            was_popped,
        ) in zip(*columns, strict=True):
            node = definition(trace, id_)
            yield (
                parts[task].whole if task in parts else task,
                id_,
                node.name,
                node.module or None,
                node.location or None,
                node.device,
                thread,
                queue if queue >= 0 else None,
                pushed_ns if queue >= 0 else None,
                popped_ns if was_popped else None,
                started_ns,
                ended_ns if has_ended else None,
                waited_ns if waited_ns >= 0 else None,
                ended_ns - started_ns if has_ended else None,
                thread_time_ns if thread_time_ns >= 0 else None,
                STATUSES[status],
                _text(trace, error),
                task,
                parts[task].worker if task in parts else None,
            )


def passes_rows(trace: Trace) -> Iterator[TableRow]:
    """Backward passes, in the order in which they began."""
    for one in passes(trace, limit=None):
        yield (
            one.task,
            _known(one.parent),
            one.depth,
            one.thread,
            one.begin_ns,
            one.end_ns,
            one.duration_ns,
            one.status,
            one.error or None,
        )


def parts_rows(trace: Trace) -> Iterator[TableRow]:
    """Per-worker parts of the passes; a local pass is one part."""
    for one in pass_parts(trace):
        yield (
            one.task,
            one.whole,
            one.worker,
            _known(one.parent),
            one.thread,
            one.begin_ns,
            one.end_ns,
            one.duration_ns,
            one.status,
            one.error or None,
        )


def nodes_rows(trace: Trace) -> Iterator[TableRow]:
    """Every node that the trace defines."""
    for node in _definitions(trace):
        yield (
            node.id,
            node.name,
            # SQL's integers are signed: of an AccumulateGrad it is NULL.
            node.sequence_nr if node.sequence_nr < 2**63 else None,
            node.topological_nr,
            node.device,
            node.module or None,
            node.location or None,
            inputs_in_words(node.inputs),
            ", ".join(node.parameters) or None,
        )


def edges_rows(trace: Trace) -> Iterator[TableRow]:
    """Yield one row per edge of each node."""
    for node in _definitions(trace):
        for output_nr, (consumer, input_nr) in enumerate(node.edges):
            if consumer >= 0:
                yield node.id, output_nr, consumer, input_nr


def events_rows(trace: Trace) -> Iterator[TableRow]:
    """All events, their own fields as an object of JSON."""
    encode = msgspec.json.Encoder().encode
    own: dict[type[AnyEvent], tuple[str, tuple[str, ...]]] = {}
    for event in trace.events():
        kind = type(event)
        if kind not in own:
            own[kind] = kind_name(kind), tuple(one.name for one in own_columns(kind))
        name, fields = own[kind]
        yield (
            event.seq,
            event.t_ns,
            event.thread,
            _known(event.task),
            _known(event.node),
            name,
            encode({one: getattr(event, one) for one in fields}).decode(),
            int(event.inferred),
        )


def threads_rows(trace: Trace) -> Iterator[TableRow]:
    """Threads that reported something."""
    pids = {number: one.pid for one in trace.processes for number in one.threads}
    for one in trace.threads.values():
        yield one.number, one.name, _known(pids.get(one.number, -1))


def processes_rows(trace: Trace) -> Iterator[TableRow]:
    """Processes: one, unless traces were merged."""
    for one in trace.processes:
        argv = msgspec.json.encode(one.argv).decode()
        yield _known(one.pid), _known(one.rank), one.host, argv


def queues_rows(trace: Trace) -> Iterator[TableRow]:
    """Ready queues."""
    for one in trace.queues.values():
        yield one.id, one.name, one.device if one.device >= -1 else None


def streams_rows(trace: Trace) -> Iterator[TableRow]:
    """Each stream that did work or was named; its last name counts."""
    named: dict[int, tuple[int, int]] = {}
    for kind in ("kernel_launched", "event_recorded", "stream_waited"):
        named |= dict.fromkeys(
            np.unique(trace.columns[kind].narrow("stream")).tolist(), (-1, -1)
        )
    for stream, name, location in trace.columns["stream_named"].rows(
        "stream", "name", "location"
    ):
        if trace.strings[name] or stream not in named:
            named[stream] = name, location
    for stream, (name, location) in named.items():
        yield (
            _text(trace, stream),
            _text(trace, name) or None,
            _text(trace, location) or None,
        )


def kernels_rows(trace: Trace) -> Iterator[TableRow]:
    """Yield kernels in order of start; last those with unknown times."""
    for one in launches(trace):
        yield (
            one.kernel,
            one.name,
            one.stream,
            one.location or None,
            one.thread,
            one.launched_ns,
            one.start_ns,
            one.end_ns,
        )


def losses_rows(trace: Trace) -> Iterator[TableRow]:
    """Yield one row per loss; none if nothing is missing."""
    losses = trace.losses
    for what in ("dropped", "overwritten", "damaged_bytes", "unknown_events"):
        if number := getattr(losses, what):
            yield what, number, None
    if losses.truncated:
        yield "truncated", None, "the end of the file is cut off"
    if not losses.closed:
        yield "not closed", None, "the recording goes on or was broken off"
    for problem in losses.problems:
        yield "problem", None, problem
    for words in trace.header.scope.in_words():
        yield "left out on purpose", None, words


def trace_rows(trace: Trace) -> Iterator[TableRow]:
    """Yield keys and values: producer of the trace, and its completeness."""
    for key, value in msgspec.to_builtins(trace.header).items():
        text = value if isinstance(value, str) else msgspec.json.encode(value).decode()
        yield key, text
    yield "is_complete", "true" if trace.losses.is_complete else "false"


def _definitions(trace: Trace) -> Iterator[NodeDefinition]:
    """The nodes that the trace defines, with their texts cut."""
    for node in trace.nodes:
        yield definition(trace, node)


def inputs_in_words(inputs: Sequence[InputDefinition | None]) -> str:
    """Describe a node's expected inputs: ``float32[64, 10] cpu; any``."""
    told = [
        "any"
        if one is None
        else f"{one.dtype}{list(one.shape[:MAX_DIMENSIONS])} {one.device}"
        for one in inputs[:MAX_INPUTS]
    ]
    return shortened("; ".join(told), 4 * MAX_TEXT)


def _known(number: int) -> int | None:
    return None if number == -1 else number


def _text(trace: Trace, place: int) -> str | None:
    """A text by its place among the trace's strings, -1 for none."""
    return None if place < 0 else shortened(trace.strings[place], MAX_TEXT)
