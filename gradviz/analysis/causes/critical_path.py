"""The critical path of a backward pass: the spans that made its duration.

From the end of the pass back to its start: what a thread did, then what it had waited
for. If a node was ready before its thread was done with another one, that one is the
cause; otherwise it is who made it ready, at the moment when it did. So the pieces lie
end to end and make up the duration of the pass exactly. See
Note [Moments and what they wait for].
"""

from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence
from typing import TYPE_CHECKING, Any, Final, Literal, NamedTuple, TypeAlias, get_args

import msgspec
import numpy as np

from gradviz.analysis.causes.causal_graph import Causes, find_causes
from gradviz.analysis.causes.node_runs import NodeRuns, node_runs
from gradviz.analysis.causes.thread_lanes import Act
from gradviz.analysis.causes.what_if import durations_without, find_stops, tails
from gradviz.analysis.tables.executions import MAX_TEXT, NodeNumbers, definition
from gradviz.analysis.tables.passes import Status, the_pass
from gradviz.analysis.tables.worker_parts import whole_of
from gradviz.trace.format.model import Trace
from gradviz.trace.format.strings import shortened
from gradviz.trace.format.table import Column, different

if TYPE_CHECKING:
    from gradviz.analysis.tables.hook_calls import HookStretch
    from gradviz.analysis.training.pass_shapes import Usual

SCHEMA: Final = "gradviz.critical"
VERSION: Final = 1

#: Of more passes than this that are asked for the first are looked at.
MAX_TASKS: Final = 200

#: Maximum number of segments told; those in the middle of a longer path become one.
MAX_SEGMENTS: Final = 20_000

#: Maximum number of nodes told, those that hold up the pass most first.
MAX_NODES: Final = 20_000

#: Kinds of segments of the path: a node ran and let the next one start; a node ran, and
#: the next one, which was ready, had to wait for its thread; a hook of a node ran, or
#: several of which it is only known how long they took together; the engine between two
#: nodes; the start of a pass; its final callbacks; a thread that slept had to wake up;
#: a kernel that a thread waited for; the time between a launch, a kernel and a thread
#: that goes on; a message on its way to another worker; a collective of ranks that the
#: last one has begun; time that the trace does not explain; segments not told one by
#: one.
SegmentKind: TypeAlias = Literal[
    "running",
    "occupied",
    "hook",
    "engine",
    "set-up",
    "callback",
    "waking up",
    "kernel",
    "stream",
    "message",
    "collective",
    "unknown",
    "omitted",
]
_KINDS: Final[tuple[SegmentKind, ...]] = get_args(SegmentKind)
_OF_ACTS: Final[dict[Act, SegmentKind]] = {
    Act.UNKNOWN: "unknown",
    Act.RUNNING: "running",
    Act.ENGINE: "engine",
    Act.SETTING_UP: "set-up",
    Act.CALLBACK: "callback",
    Act.WAKING: "waking up",
    Act.KERNEL: "kernel",
    Act.STREAM: "stream",
    Act.MESSAGE: "message",
    Act.COLLECTIVE: "collective",
}
_OMITTED: Final = _KINDS.index("omitted")
_OCCUPIED: Final = _KINDS.index("occupied")
_WAKING: Final = _KINDS.index("waking up")
_RUNNING: Final = _KINDS.index("running")
_HOOK: Final = _KINDS.index("hook")


#: Of fewer passes of a shape nothing is usual.
_SEVERAL: Final = 2


class Segment(msgspec.Struct, frozen=True, kw_only=True, gc=False):
    """A piece of the path. Times are counted from the start of the pass.

    Attributes:
        kind: Kind of the piece.
        begin_ns: Time of its start.
        end_ns: Time of its end, and of the next one's start.
        thread: Its thread, -1 on a stream.
        stream: Its stream, empty on a thread.
        task: The pass of the node that ran, -1 if none did; of a kernel that of the
            node which launched it.
        node: That node, -1 for none.
        name: The node's.
        index: Its place in the execution order of its pass; None if it has none.
        hook: The function of the hook, or of several; empty if none ran.
    """

    kind: SegmentKind
    begin_ns: int
    end_ns: int
    thread: int
    stream: str
    task: int
    node: int
    name: str
    index: int | None = None
    hook: str = ""

    @property
    def took_ns(self) -> int:
        """Duration."""
        return self.end_ns - self.begin_ns


class NodeCost(msgspec.Struct, frozen=True, kw_only=True, gc=False):
    """Cost of a node to a pass.

    Attributes:
        task: Its pass: the selected one, or one nested in it.
        node: The node.
        name: Its class.
        thread: The thread that ran it.
        own_ns: Self time, with its hooks: without passes that it called for, and
            without waiting for a stream.
        on_path_ns: Its share of the path, kernels that it launched included.
        slack_ns: Time that it could have run longer without making the pass longer;
            None if nothing waited for it.
        if_free_ns: Duration of the pass if it and its kernels took no time; None if
            that was not computed.
        usual_ns: Its median duration in the passes of the same shape, from its start to
            its end; None where this is the only one, and for nodes of nested passes.
        index: Its index in the execution order of its pass.
    """

    task: int
    node: int
    name: str
    thread: int
    own_ns: int
    on_path_ns: int
    slack_ns: int | None
    if_free_ns: int | None
    usual_ns: int | None
    index: int | None = None


class CriticalPath(msgspec.Struct, frozen=True, kw_only=True):
    """Critical path of one pass.

    Attributes:
        task: The pass.
        status: Its ending.
        is_whole: True if nothing of the trace is lost; else all this describes the
            rest.
        origin_ns: Its start, on the trace's clock.
        duration_ns: Time to its end, or to its last event in the trace.
        totals: Time of each kind of segment.
        segments: From the start to the end, each where the one before it ended.
        num_segments: Number of segments, omitted ones included.
        nodes: Runs of nodes, those whose removal saves most first, then those with the
            least slack; `num_runs` all.
        num_runs: Number of runs of nodes, in nested passes too.
        num_nodes: Different nodes among them.
        num_alike: Number of passes of its shape, itself included.
        num_recomputed: Number of nodes without which the duration was computed. For
            those that are not on the path it is that of the pass.
        threads: The names of the threads, by number.
        workers: For a pass of several workers, the time of the path on each; empty
            if there is only one.
    """

    task: int
    status: Status
    is_whole: bool
    origin_ns: int
    duration_ns: int
    totals: dict[SegmentKind, int]
    segments: tuple[Segment, ...]
    num_segments: int
    nodes: tuple[NodeCost, ...]
    num_runs: int
    num_nodes: int
    num_alike: int
    num_recomputed: int
    threads: dict[int, str]
    workers: dict[int, int] = {}


def find_critical_path(trace: Trace, task: int) -> CriticalPath:
    """Return the critical path of a pass, and the cost of each of its nodes.

    Raises:
        UserError: The pass has too many events.
    """
    causes = find_causes(trace, task)
    about = the_pass(trace, task)
    path = path_of(causes)
    nodes = node_runs(causes)
    on_path = nodes.sums(causes, path)
    stops = find_stops(causes)
    candidates = np.argsort(-on_path, kind="stable")[: np.count_nonzero(on_path)]
    if_free = np.where(on_path > 0, -1, causes.duration_ns)
    found = durations_without(causes, stops, nodes.owner, candidates)
    if_free[candidates[: len(found)]] = found
    slack = _slack(causes, tails(causes, stops), nodes)
    hooks = _hooks(trace, causes)
    pieces = _merged(_with_hooks(_pieces(causes, path), hooks))
    told = _shortened(pieces)
    numbers = NodeNumbers(trace, different(causes.act_task).tolist())
    segments = _segments(trace, causes, told, numbers, hooks)
    gain = np.where(if_free < 0, 0, causes.duration_ns - if_free)
    unknown = np.where(slack < 0, np.iinfo(np.int64).max, slack)
    order = np.lexsort((nodes.end, unknown, -gain))[:MAX_NODES]
    names, which = trace.nodes.names(causes.of_node[nodes.end[order]])
    told_names = [shortened(name, MAX_TEXT) for name in names]
    # Of a single pass nothing is usual, and to look for it takes long.
    is_one = trace.columns["task_begun"].num_rows == 1
    usual = {} if is_one else _usual(trace, about.parts)
    num_alike = max(
        (one.passes for nodes in usual.values() for one in nodes.values()),
        default=int(is_one),
    )
    return CriticalPath(
        task=causes.task,
        status=causes.status,
        is_whole=trace.losses.is_complete,
        origin_ns=int(causes.t_ns[0]),
        duration_ns=causes.duration_ns,
        totals=_totals(pieces),
        segments=segments,
        num_segments=len(pieces.kind),
        nodes=tuple(
            NodeCost(
                task=whole_of(trace, int(causes.of_task[nodes.end[at]])),
                node=int(causes.of_node[nodes.end[at]]),
                name=told_names[name],
                thread=int(causes.lane[nodes.end[at]]),
                own_ns=int(nodes.own_ns[at]),
                on_path_ns=int(on_path[at]),
                slack_ns=None if slack[at] < 0 else int(slack[at]),
                if_free_ns=None if if_free[at] < 0 else int(if_free[at]),
                usual_ns=_usual_ns(causes, int(nodes.end[at]), usual),
                index=numbers.of(
                    int(causes.of_task[nodes.end[at]]),
                    int(causes.of_node[nodes.end[at]]),
                ),
            )
            for at, name in zip(order.tolist(), which.tolist(), strict=True)
        ),
        num_runs=len(nodes.end),
        num_nodes=len(different(causes.of_node[nodes.end])),
        num_alike=num_alike,
        num_recomputed=len(found),
        threads={
            number: shortened(one.name, MAX_TEXT)
            for number, one in trace.threads.items()
            if number in {segment.thread for segment in segments}
        },
        workers=_workers(causes, pieces),
    )


def document_of(path: CriticalPath) -> dict[str, Any]:
    """Return the output of ``gradviz show critical --json``."""
    document = msgspec.to_builtins(path, str_keys=True)
    return {"schema": SCHEMA, "version": VERSION, **document}


def path_of(causes: Causes) -> Column:
    """Return the moments of the path, in order, without the start of the pass.

    A thread's own moments are found at once, back to where it had waited for another.
    """
    in_lanes = np.argsort(causes.lane, kind="stable")
    lane, cause = causes.lane[in_lanes], causes.cause[in_lanes]
    stops_here = cause >= 0
    stops_here[0] = True
    stops_here[1:] |= lane[1:] != lane[:-1]
    back = np.maximum.accumulate(np.where(stops_here, np.arange(len(lane)), 0))
    place = np.empty(len(lane), np.int64)
    place[in_lanes] = np.arange(len(lane))
    parts = []
    moment = len(lane) - 1
    while moment > 0:
        first = int(back[place[moment]])
        parts.append(in_lanes[first : place[moment] + 1])
        moment = int(cause[first])  # -1 for the first of a lane, which was always there
    path = np.concatenate(parts[::-1] or [in_lanes[:0]])
    return path[path > 0]


def _slack(causes: Causes, tail_ns: Column, nodes: NodeRuns) -> Column:
    """Return the slack of each node; -1 where nothing waited for it."""
    begin = nodes.last_begin
    tail = tail_ns[begin]
    slack = causes.duration_ns - (causes.t_ns[begin] - causes.t_ns[0]) - tail
    return np.where(tail < 0, -1, slack)


def _usual(trace: Trace, parts: Iterable[int]) -> Mapping[int, Mapping[int, "Usual"]]:
    """Return the usual times in passes like each of some parts, by node."""
    # Loaded where there are several passes.
    from gradviz.analysis.training.pass_shapes import medians_like  # noqa: PLC0415

    return {one: medians_like(trace, one) for one in parts}


def _hooks(trace: Trace, causes: Causes) -> list["HookStretch"]:
    """Return the hooks' times since the start of the pass, nested passes included."""
    if not trace.columns["hook_called"].num_rows:
        return []
    # Loaded where there are hooks.
    from gradviz.analysis.tables.hook_calls import hook_stretches  # noqa: PLC0415

    return hook_stretches(trace, causes.tasks, int(causes.t_ns[0]))


def _usual_ns(
    causes: Causes, end: int, usual: Mapping[int, Mapping[int, "Usual"]]
) -> int | None:
    """Return the usual duration of the node that ends at moment `end`."""
    found = usual.get(int(causes.of_task[end]), {}).get(int(causes.of_node[end]))
    return None if found is None or found.passes < _SEVERAL else found.took_ns


class _SegmentColumns(NamedTuple):
    """Segments as columns; see `Segment`. `hook` is a place among the hooks, or -1."""

    kind: Column
    begin_ns: Column
    end_ns: Column
    lane: Column
    task: Column
    node: Column
    hook: Column

    def at(self, places: "slice | Column") -> "_SegmentColumns":
        return _SegmentColumns(*(column[places] for column in self))


def _pieces(causes: Causes, path: Column) -> _SegmentColumns:
    """Return the pieces before each moment of the path, two where a thread woke up."""
    kinds = np.array([_KINDS.index(_OF_ACTS[act]) for act in Act])
    kind = kinds[causes.act[path]]
    kind[_occupying(causes, path)] = _OCCUPIED
    end_ns = causes.t_ns[path] - causes.t_ns[0]
    pieces = _SegmentColumns(
        kind=kind,
        begin_ns=np.concatenate(([0], end_ns[:-1])),
        end_ns=end_ns,
        lane=causes.lane[path],
        task=causes.act_task[path],
        node=causes.act_node[path],
        hook=np.full(len(path), -1),
    )
    # Up to when a thread woke up, and from there on.
    woke_ns = causes.woke_ns[path] - causes.t_ns[0]
    is_woken = (woke_ns > pieces.begin_ns) & (pieces.kind == kinds[Act.ENGINE])
    twice = pieces.at(np.repeat(np.arange(len(path)), 1 + is_woken))
    first = np.flatnonzero(is_woken) + np.arange(np.count_nonzero(is_woken))
    twice.kind[first] = _WAKING
    twice.end_ns[first] = twice.begin_ns[first + 1] = woke_ns[is_woken]
    return twice.at(np.flatnonzero(twice.begin_ns < twice.end_ns))


def _occupying(causes: Causes, path: Column) -> Column:
    """Return which pieces belong to a node that kept a ready node waiting."""
    size = len(path)
    is_run = causes.act[path] == Act.RUNNING
    run = np.maximum.accumulate(np.where(is_run, np.arange(size), -1))
    node, task = causes.act_node[path], causes.act_task[path]
    begins = causes.is_kind("task_popped")[path] & (causes.cause[path] < 0)
    begins &= (causes.by[path] >= 0) & (run >= 0)
    begins &= (causes.by[path] != node[run]) | (causes.of_task[path] != task[run])
    # All of its pieces back to where it was popped, or to where it was called from.
    held_up = np.zeros(size, np.bool_)
    held_up[run[begins]] = True
    other = (~is_run) | (np.roll(node, -1) != node) | (np.roll(task, -1) != task)
    group = np.cumsum(other[::-1])[::-1]
    return np.flatnonzero(is_run & np.isin(group, group[held_up & is_run]))


def _with_hooks(
    pieces: _SegmentColumns, hooks: Sequence["HookStretch"]
) -> _SegmentColumns:
    """The pieces, those of nodes cut where a hook of the node begins or ends."""
    if not hooks:
        return pieces
    of_node: dict[tuple[int, int, int], list[int]] = defaultdict(list)
    for place, one in enumerate(hooks):
        of_node[one.thread, one.task, one.node].append(place)
    rows: list[tuple[int, ...]] = []
    for row in zip(*(column.tolist() for column in pieces), strict=True):
        kind, begin, end, lane, task, node, _ = row
        if kind in (_RUNNING, _OCCUPIED):
            for place in of_node.get((lane, task, node), ()):
                start = max(begin, hooks[place].begin_ns)
                stop = min(end, hooks[place].end_ns)
                if start < stop:
                    rows.append((kind, begin, start, lane, task, node, -1))
                    rows.append((_HOOK, start, stop, lane, task, node, place))
                    begin = stop
        rows.append((kind, begin, end, lane, task, node, -1))
    cut = _SegmentColumns(*np.array(rows, np.int64).reshape(-1, 7).T)
    return cut.at(np.flatnonzero(cut.begin_ns < cut.end_ns))


def _merged(pieces: _SegmentColumns) -> _SegmentColumns:
    """The pieces, those of the same thing that follow each other made one."""
    parts = (pieces.kind, pieces.lane, pieces.task, pieces.node, pieces.hook)
    is_new = np.zeros(len(pieces.kind), np.bool_)
    is_new[:1] = True
    for one in parts:
        is_new[1:] |= one[1:] != one[:-1]
    first = np.flatnonzero(is_new)
    last = np.append(first, len(is_new))[1:] - 1
    return pieces.at(first)._replace(end_ns=pieces.end_ns[last])


def _totals(pieces: _SegmentColumns) -> dict[SegmentKind, int]:
    took = pieces.end_ns - pieces.begin_ns
    sums = {
        kind: int(took[pieces.kind == number].sum())
        for number, kind in enumerate(_KINDS)
    }
    return {kind: total for kind, total in sums.items() if total}


def _workers(causes: Causes, pieces: _SegmentColumns) -> dict[int, int]:
    """Return the time of the path on each worker: on the threads of its passes."""
    if not causes.parts:
        return {}
    worker_of = {task: part.worker for task, part in causes.parts.items()}
    rows = [*zip(*(one.tolist() for one in pieces), strict=True)]
    of_lane = {
        lane: worker_of[task] for *_, lane, task, _, _ in rows if task in worker_of
    }
    took: dict[int, int] = {}
    for kind, begin_ns, end_ns, lane, *_ in rows:
        if lane in of_lane and _KINDS[kind] != "message":
            worker = of_lane[lane]
            took[worker] = took.get(worker, 0) + end_ns - begin_ns
    return dict(sorted(took.items()))


def _shortened(pieces: _SegmentColumns) -> _SegmentColumns:
    """At most `MAX_SEGMENTS` of them, those in the middle as one."""
    size, half = len(pieces.kind), MAX_SEGMENTS // 2
    if size <= MAX_SEGMENTS:
        return pieces
    left = np.concatenate((np.arange(half + 1), np.arange(size - half, size)))
    told = pieces.at(left)
    told.kind[half] = _OMITTED
    told.end_ns[half] = told.begin_ns[half + 1]
    told.lane[half] = told.task[half] = told.node[half] = told.hook[half] = -1
    return told


def _segments(
    trace: Trace,
    causes: Causes,
    told: _SegmentColumns,
    numbers: NodeNumbers,
    hooks: Sequence["HookStretch"],
) -> tuple[Segment, ...]:
    names = {
        node: definition(trace, node).name if node >= 0 else ""
        for node in different(told.node).tolist()
    }
    return tuple(
        Segment(
            kind=_KINDS[kind],
            begin_ns=begin_ns,
            end_ns=end_ns,
            thread=lane if lane >= 0 else -1,
            stream=_stream(causes, kind, lane),
            task=whole_of(trace, task),
            node=node,
            name=names[node],
            index=numbers.of(task, node),
            hook=hooks[hook].functions if hook >= 0 else "",
        )
        for kind, begin_ns, end_ns, lane, task, node, hook in zip(
            *(column.tolist() for column in told), strict=True
        )
    )


def _stream(causes: Causes, kind: int, lane: int) -> str:
    if lane >= 0 or kind == _OMITTED:
        return ""
    return shortened(causes.streams[-1 - lane], MAX_TEXT)
