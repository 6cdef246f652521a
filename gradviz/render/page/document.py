"""What a page holds: some passes of a trace, as tables of numbers and a few words."""

from collections.abc import Sequence
from typing import Any, Final, NamedTuple, get_args

import msgspec
import numpy as np

from gradviz.analysis.critical_path import SegmentKind, find_critical_path
from gradviz.analysis.executions import MAX_TEXT, STATUSES
from gradviz.analysis.holdings import NEEDED, Holdings
from gradviz.analysis.memory import PURPOSES, build_memory
from gradviz.analysis.passes import Pass, passes
from gradviz.analysis.stream_waits import stream_waits
from gradviz.analysis.thread_owners import by_owner, name_at, owner_of
from gradviz.errors import UserError
from gradviz.render.page.columns import pack
from gradviz.render.page.cost_tables import (
    cost_table,
    memory_table,
    segment_table,
)
from gradviz.render.page.crossing_table import crossing_table
from gradviz.render.page.drawings import Drawings, draw_passes
from gradviz.render.page.extract import Extract
from gradviz.render.page.families import FAMILIES
from gradviz.render.page.node_tables import edge_table, node_table, run_table
from gradviz.render.page.queue_tables import (
    gradient_table,
    sleep_table,
    stay_table,
    stream_wait_table,
)
from gradviz.render.page.stream_tables import (
    blocked_table,
    kernel_table,
    kernel_wait_table,
    kernels_meanwhile,
)
from gradviz.render.page.tables import (
    BlockedTable,
    CostTable,
    CrossingTable,
    EdgeTable,
    EventTable,
    GradientTable,
    KernelTable,
    KernelWaitTable,
    MemoryTable,
    NodeTable,
    RunTable,
    SegmentTable,
    SleepTable,
    StayTable,
    StreamWaitTable,
)
from gradviz.render.page.window import window_on
from gradviz.render.text import clean
from gradviz.trace.losses import losses_in_words
from gradviz.trace.model import Trace
from gradviz.trace.strings import shortened
from gradviz.trace.table import Narrow, different

SCHEMA: Final = "gradviz.page"
VERSION: Final = 2

_SEGMENT_KINDS: Final[tuple[SegmentKind, ...]] = get_args(SegmentKind)


class PageThread(msgspec.Struct, frozen=True):
    """A thread, by the trace's number.

    Attributes:
        number: The trace's number.
        name: What it is called.
        owner: The worker or process that it is called after, or nothing.
        name_at_owner: What it is called beside that.
    """

    number: int
    name: str
    owner: str
    name_at_owner: str


class PageQueue(msgspec.Struct, frozen=True):
    """A ready queue, by the trace's id."""

    id: int
    name: str


class PageHeader(msgspec.Struct, frozen=True, kw_only=True):
    """What a page says in words.

    Attributes:
        schema: What this is.
        version: Of the tables; a program knows one.
        file: The name of the trace's file, empty if it has none.
        argv: The program that was recorded.
        host: Where.
        wall_ns: When, since 1970.
        gradviz: The version that recorded it.
        duration_ns: Of all, kernels included that ran on after the passes.
        num_events: Of the passes, those that are left out included.
        is_cut: Whether events are left out; see Note [A page that does not hold all].
        passes: In order of begin; `task` of a table is a place in here. Their times too
            are counted from the begin of the first.
        threads: Those that did something.
        queues: Those that something was pushed to.
        kinds: Of events.
        statuses: Of runs.
        families: Of operations, and leaves.
        purposes: Of memory.
        segment_kinds: Of segments.
        critical_task: The place of the pass that `Segments` and `Costs` are of, or -1.
        warnings: What is missing, a sentence each, to be shown.
    """

    schema: str = SCHEMA
    version: int = VERSION
    file: str
    argv: tuple[str, ...]
    host: str
    wall_ns: int
    gradviz: str
    duration_ns: int
    num_events: int
    is_cut: bool
    passes: tuple[Pass, ...]
    threads: tuple[PageThread, ...]
    queues: tuple[PageQueue, ...]
    kinds: tuple[str, ...]
    statuses: tuple[str, ...] = STATUSES
    families: tuple[str, ...] = FAMILIES
    purposes: tuple[str, ...] = ("total", *PURPOSES)
    segment_kinds: tuple[str, ...]
    critical_task: int
    warnings: tuple[str, ...]


class PageDocument(NamedTuple):
    """All that a page holds."""

    header: PageHeader
    texts: tuple[str, ...]
    nodes: NodeTable
    edges: EdgeTable
    events: EventTable
    runs: RunTable
    stays: StayTable
    gradients: GradientTable
    sleeps: SleepTable
    stream_waits: StreamWaitTable
    crossings: CrossingTable
    kernels: KernelTable
    kernel_waits: KernelWaitTable
    blocked: BlockedTable
    memory: MemoryTable
    segments: SegmentTable
    costs: CostTable
    drawings: Drawings


def build_page(
    trace: Trace, tasks: Sequence[int], held: Holdings | None = None
) -> PageDocument:
    """What a page of these passes, and of all called from inside them, holds.

    Args:
        trace: The trace.
        tasks: The passes.
        held: The `holdings` of the trace, for who makes several pages of it.
    """
    window = window_on(trace, tasks)
    tasks = window.tasks
    extract = Extract(trace, tasks, window.last_seq)
    nodes = node_table(extract)
    warnings = [
        *losses_in_words(trace.losses),
        *trace.header.scope.in_words(),
        *window.left_out,
    ]
    memory = MemoryTable(*np.empty((3, 0), np.int64))
    if missing := sorted(set(NEEDED).intersection(trace.header.scope.left_out)):
        warnings.append(f"without events {', '.join(missing)} memory is not known")
    else:
        memory = memory_table(
            extract, build_memory(trace, tasks, held=held, has_savings=False)
        )
    segments = SegmentTable(*np.empty((7, 0), np.int64))
    costs = CostTable(*np.empty((6, 0), np.int64))
    try:
        path = find_critical_path(trace, tasks[0])
    except UserError as error:
        warnings.append(f"no critical path: {error}")
    else:
        segments = segment_table(extract, path, _SEGMENT_KINDS)
        costs = cost_table(extract, path)
    ran = set(extract.executions.task.tolist())
    numbers = {task: number for number, task in enumerate(tasks) if task in ran}
    drawings = draw_passes(trace, numbers, extract.node_places, extract.texts)
    ran_on_streams = kernels_meanwhile(extract)
    waits = stream_waits(trace, ran_on_streams)
    kernels = kernel_table(extract, ran_on_streams)
    sleeps = sleep_table(extract)
    runs, stays, events = run_table(extract), stay_table(extract), extract.events()
    end_ns = max(extract.end_ns - extract.origin_ns, *kernels.end_ns.tolist(), 0)
    header = PageHeader(
        file="" if trace.path is None else _clean(trace.path.name),
        argv=tuple(map(_clean, trace.header.argv)),
        host=_clean(trace.header.host),
        wall_ns=extract.wall_ns(),
        gradviz=_clean(trace.header.gradviz),
        duration_ns=end_ns,
        num_events=window.num_events,
        is_cut=window.last_seq is not None,
        passes=tuple(
            _relative(one, extract.origin_ns)
            for one in passes(trace, limit=None, tasks=tasks)
        ),
        threads=tuple(
            _page_thread(one, trace.threads[one].name)
            for one in by_owner(
                trace,
                different(
                    np.concatenate((events.thread, sleeps.thread, kernels.thread))
                ).tolist(),
            )
            if one in trace.threads
        ),
        queues=tuple(
            PageQueue(
                one, _clean(trace.queues[one].name) if one in trace.queues else "?"
            )
            for one in different(stays.queue).tolist()
        ),
        kinds=extract.kinds,
        segment_kinds=_SEGMENT_KINDS,
        critical_task=0 if len(segments.kind) else -1,
        warnings=tuple(map(_clean, warnings)),
    )
    return PageDocument(
        header=header,
        nodes=nodes,
        edges=edge_table(extract),
        events=events,
        runs=runs,
        stays=stays,
        gradients=gradient_table(extract),
        sleeps=sleeps,
        stream_waits=stream_wait_table(extract),
        crossings=crossing_table(extract),
        kernels=kernels,
        kernel_waits=kernel_wait_table(extract, ran_on_streams, waits),
        blocked=blocked_table(extract, ran_on_streams, waits),
        memory=memory,
        segments=segments,
        costs=costs,
        drawings=drawings,
        texts=tuple(extract.texts),  # the last: all tables give it some
    )


def pack_page(page: PageDocument) -> bytes:
    """The bytes of a page's data; see Note [What a page unpacks] of `columns`."""
    tables: dict[str, Any] = dict(zip(page._fields, page, strict=True))
    header, texts = tables.pop("header"), tables.pop("texts")
    tables |= tables.pop("drawings")._asdict()
    columns: dict[str, Narrow] = {
        f"{name}.{field}": column
        for name, table in tables.items()
        for field, column in zip(table._fields, table, strict=True)
    }
    return pack({**msgspec.to_builtins(header), "texts": texts}, columns)


def _relative(one: Pass, origin_ns: int) -> Pass:
    return msgspec.structs.replace(
        one,
        begin_ns=one.begin_ns - origin_ns,
        end_ns=None if one.end_ns is None else one.end_ns - origin_ns,
        error=_clean(one.error),
        location=_clean(one.location),
    )


def _clean(text: str) -> str:
    return clean(shortened(text, MAX_TEXT))


def _page_thread(number: int, name: str) -> PageThread:
    owner = owner_of(name)
    return PageThread(number, _clean(name), _clean(owner), _clean(name_at(owner, name)))
