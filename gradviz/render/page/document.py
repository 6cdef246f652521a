"""The contents of a page: some passes, as tables of numbers and a few words."""

from collections.abc import Sequence
from typing import Any, Final, NamedTuple, get_args

import msgspec
import numpy as np

from gradviz.analysis.causes.critical_path import SegmentKind, find_critical_path
from gradviz.analysis.graphs.gc_pause import gc_paused
from gradviz.analysis.memory.allocations import NEEDED, HoldingKind, Holdings
from gradviz.analysis.memory.memory_use import PURPOSES, build_memory
from gradviz.analysis.moments.node_stages import STAGES
from gradviz.analysis.moments.precedence import PRECEDENCES
from gradviz.analysis.tables.executions import MAX_TEXT, STATUSES
from gradviz.analysis.tables.passes import PassPart, pass_parts, passes
from gradviz.analysis.timelines.idle_spans import stream_waits
from gradviz.errors import UserError
from gradviz.render.page.columns import pack
from gradviz.render.page.cost_tables import (
    cost_table,
    memory_table,
    segment_table,
    unknown_memory,
)
from gradviz.render.page.drawings import Drawings, draw_passes, left_out
from gradviz.render.page.extract import Extract
from gradviz.render.page.node_tables import (
    FAMILIES,
    RPC_EDGE_FACTS,
    edge_table,
    hook_table,
    node_table,
    rpc_edge_table,
    run_table,
    stage_tables,
)
from gradviz.render.page.queue_tables import (
    blocked_table,
    gradient_table,
    kernel_table,
    kernel_wait_table,
    kernels_meanwhile,
    sleep_table,
    stay_tables,
    stream_wait_table,
)
from gradviz.render.page.tables import (
    BlockedTable,
    CostTable,
    EdgeTable,
    EndingTable,
    EventTable,
    GradientTable,
    HookTable,
    KernelTable,
    KernelWaitTable,
    MemoryTable,
    NodeTable,
    OvertakingTable,
    RpcEdgeTable,
    RunTable,
    SegmentTable,
    SleepTable,
    StayTable,
    StreamWaitTable,
    narrowed,
)
from gradviz.render.page.window import window_on
from gradviz.render.words.event_words import EVENT_SENTENCES
from gradviz.render.words.explanation_text import EXPLANATION, REASONS
from gradviz.render.words.moment_text import COUNTDOWN, NODE_AT, THREAD_AT
from gradviz.render.words.purposes import CALLED, STACKED, unknown_purposes
from gradviz.render.words.templates import Template
from gradviz.render.words.text import clean, is_notebook
from gradviz.trace.events import label
from gradviz.trace.format.model import Trace
from gradviz.trace.format.strings import shortened
from gradviz.trace.format.table import Narrow, different
from gradviz.trace.probe import Push
from gradviz.trace.reading.worker_threads import by_owner, name_at, owner_of

SCHEMA: Final = "gradviz.page"
VERSION: Final = 4

_SEGMENT_KINDS: Final[tuple[SegmentKind, ...]] = get_args(SegmentKind)


class PageThread(msgspec.Struct, frozen=True):
    """A thread, by the trace's number.

    Attributes:
        number: The trace's number.
        name: Full name of the thread.
        owner: The worker or process that it is called after, or nothing.
        name_at_owner: Name of the thread beside that.
    """

    number: int
    name: str
    owner: str
    name_at_owner: str


class PagePart(PassPart, frozen=True, kw_only=True):
    """A part of a pass, and when the whole pass began and ended.

    Attributes:
        pass_begin_ns: As `begin_ns`.
        pass_end_ns: As `end_ns`.
    """

    pass_begin_ns: int
    pass_end_ns: int | None


class PageQueue(msgspec.Struct, frozen=True):
    """A ready queue, by the trace's id."""

    id: int
    name: str


class PageHeader(msgspec.Struct, frozen=True, kw_only=True):
    """Texts of a page.

    Attributes:
        schema: Kind of document.
        version: Of the tables; a program knows one.
        file: The name of the trace's file, empty if it has none.
        argv: The program that was recorded; empty if that is the kernel of a notebook.
        host: Machine on which it was recorded.
        wall_ns: Time of its start, since 1970.
        gradviz: The version that recorded it.
        duration_ns: Of all, kernels included that ran on after the passes.
        num_events: Of the passes, those that are left out included.
        is_cut: True if events are left out; see Note [A page that does not hold all].
        passes: The parts of passes, in order of begin; `task` of a table is a place in
            here. Their times too are counted from the start of the first.
        threads: Those that did something.
        queues: Those that something was pushed to.
        kinds: Of events.
        event_sentences: Of each kind the templates; the first that is filled is said.
        pushes: Of tasks: what was pushed.
        statuses: Of runs.
        explanation: Templates of all that is said of a node.
        reasons: Templates, by why one task goes before another one.
        precedences: The keys of these.
        node_at: Templates of what has become of a node; the first that is filled is so.
        thread_at: The same of what a thread does that runs no node.
        countdown: The same of what a node waits for, and has.
        crossing_facts: Names of facts, which are whole sentences of `crossings`.
        stages: Of nodes; the first is that of one that was not reached.
        families: Of operations, and leaves.
        purposes: Of memory, in the order in which they are stacked.
        unknown_purposes: Those of which nothing is known.
        segment_kinds: Of segments.
        critical_task: The place of the pass that `Segments` and `Costs` are of, or -1.
        warnings: Missing parts of the trace, a sentence each, to be shown.
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
    passes: tuple[PagePart, ...]
    threads: tuple[PageThread, ...]
    queues: tuple[PageQueue, ...]
    kinds: tuple[str, ...]
    event_sentences: tuple[tuple[str, ...], ...]
    pushes: tuple[str, ...] = tuple(map(label, Push))
    statuses: tuple[str, ...] = STATUSES
    explanation: tuple[Template, ...] = EXPLANATION
    reasons: dict[str, str] = msgspec.field(default_factory=lambda: dict(REASONS))
    precedences: tuple[str, ...] = PRECEDENCES
    node_at: tuple[str, ...] = NODE_AT
    thread_at: tuple[str, ...] = THREAD_AT
    countdown: tuple[str, ...] = COUNTDOWN
    crossing_facts: tuple[str, ...] = RPC_EDGE_FACTS
    stages: tuple[str, ...] = STAGES
    families: tuple[str, ...] = FAMILIES
    purposes: tuple[str, ...] = ("total", *(CALLED[one] for one in STACKED))
    unknown_purposes: tuple[str, ...]
    segment_kinds: tuple[str, ...]
    critical_task: int
    warnings: tuple[str, ...]


class PageDocument(NamedTuple):
    """All contents of a page."""

    header: PageHeader
    texts: tuple[str, ...]
    nodes: NodeTable
    edges: EdgeTable
    events: EventTable
    endings: EndingTable
    runs: RunTable
    stays: StayTable
    overtakings: OvertakingTable
    gradients: GradientTable
    sleeps: SleepTable
    stream_waits: StreamWaitTable
    crossings: RpcEdgeTable
    hooks: HookTable
    kernels: KernelTable
    kernel_waits: KernelWaitTable
    blocked: BlockedTable
    memory: MemoryTable
    segments: SegmentTable
    costs: CostTable
    drawings: Drawings


@gc_paused()
def build_page(
    trace: Trace, tasks: Sequence[int], held: Holdings | None = None
) -> PageDocument:
    """Return the page of these passes and of those nested in them.

    Args:
        trace: The trace.
        tasks: The passes.
        held: The `holdings` of the trace, for callers that make several pages of it.
    """
    window = window_on(trace, tasks)
    tasks = window.tasks
    extract = Extract(trace, tasks, window.last_seq)
    nodes = narrowed(node_table(extract))
    warnings = [
        *trace.losses.in_words(),
        *trace.header.scope.in_words(),
        *window.left_out,
    ]
    memory = MemoryTable(*np.empty((3, 0), np.int64))
    unknown = tuple(CALLED[one] for one in PURPOSES[: HoldingKind.UNCLAIMED])
    if missing := sorted(set(NEEDED).intersection(trace.header.scope.left_out)):
        warnings.append(f"without events {', '.join(missing)} memory is not known")
    else:
        known = build_memory(trace, tasks, held=held, has_savings=False)
        memory = memory_table(extract, known)
        unknown = unknown_purposes(known.peak.use)
        warnings += unknown_memory(known)
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
    warnings += left_out(extract.executions.task, numbers)
    ran_on_streams = kernels_meanwhile(extract)
    waits = stream_waits(trace, ran_on_streams)
    kernels = kernel_table(extract, ran_on_streams)
    sleeps = sleep_table(extract)
    stages, endings = stage_tables(extract)
    stays, overtakings = stay_tables(extract)
    stays = narrowed(stays)
    runs = narrowed(run_table(extract))
    events = narrowed(extract.events(stages))
    end_ns = max(extract.end_ns - extract.origin_ns, *kernels.end_ns.tolist(), 0)
    header = PageHeader(
        file="" if trace.path is None else _clean(trace.path.name),
        argv=_arguments(trace),
        host=_clean(trace.header.host),
        wall_ns=extract.wall_ns(),
        gradviz=_clean(trace.header.gradviz),
        duration_ns=end_ns,
        num_events=window.num_events,
        is_cut=window.last_seq is not None,
        passes=_parts(trace, tasks, extract.origin_ns),
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
        event_sentences=tuple(EVENT_SENTENCES.get(kind, ()) for kind in extract.kinds),
        unknown_purposes=unknown,
        segment_kinds=_SEGMENT_KINDS,
        critical_task=0 if len(segments.kind) else -1,
        warnings=tuple(map(_clean, warnings)),
    )
    return PageDocument(
        header=header,
        nodes=nodes,
        edges=narrowed(edge_table(extract)),
        events=events,
        endings=endings,
        runs=runs,
        stays=stays,
        overtakings=overtakings,
        gradients=narrowed(gradient_table(extract)),
        sleeps=sleeps,
        stream_waits=stream_wait_table(extract),
        crossings=rpc_edge_table(extract),
        hooks=hook_table(extract),
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


def _arguments(trace: Trace) -> tuple[str, ...]:
    argv = tuple(map(_clean, trace.header.argv))
    return () if argv and is_notebook(argv[0]) else argv


def _parts(trace: Trace, tasks: Sequence[int], origin_ns: int) -> tuple[PagePart, ...]:
    """The parts of passes; times are counted from `origin_ns`."""
    wholes = {one.task: one for one in passes(trace, limit=None, tasks=tasks)}

    def since(t_ns: int | None) -> int | None:
        return None if t_ns is None else t_ns - origin_ns

    return tuple(
        PagePart(
            **{
                **msgspec.structs.asdict(one),
                "begin_ns": one.begin_ns - origin_ns,
                "end_ns": since(one.end_ns),
                "error": _clean(one.error),
                "location": _clean(one.location),
            },
            pass_begin_ns=wholes[one.whole].begin_ns - origin_ns,
            pass_end_ns=since(wholes[one.whole].end_ns),
        )
        for one in pass_parts(trace, tasks=tasks)
    )


def _clean(text: str) -> str:
    return clean(shortened(text, MAX_TEXT))


def _page_thread(number: int, name: str) -> PageThread:
    owner = owner_of(name)
    return PageThread(number, _clean(name), _clean(owner), _clean(name_at(owner, name)))
