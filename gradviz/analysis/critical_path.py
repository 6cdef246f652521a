"""The critical path of a backward pass: what took its time, piece after piece.

From the end of the pass back to its begin: what a thread did, then what it had waited
for. If a node was ready before its thread was done with another one, that one is the
cause; otherwise it is who made it ready, at the moment when it did. So the pieces lie
end to end and make up the duration of the pass exactly. See
Note [Moments and what they wait for].
"""

from collections.abc import Mapping
from typing import Any, Final, Literal, NamedTuple, TypeAlias, get_args

import msgspec
import numpy as np

from gradviz.analysis.causes import Causes, find_causes
from gradviz.analysis.executions import MAX_TEXT, definition
from gradviz.analysis.lanes import Act
from gradviz.analysis.node_runs import NodeRuns, node_runs
from gradviz.analysis.passes import Status
from gradviz.analysis.shapes import Usual, medians_like
from gradviz.analysis.what_if import durations_without, find_stops, tails
from gradviz.trace.model import Trace
from gradviz.trace.strings import shortened
from gradviz.trace.table import Column

SCHEMA: Final = "gradviz.critical"
VERSION: Final = 1

#: Of more passes than this that are asked for the first are looked at.
MAX_TASKS: Final = 200

#: So many segments are told; those in the middle of a longer path are told as one.
MAX_SEGMENTS: Final = 20_000

#: So many nodes are told, those that hold up the pass most first.
MAX_NODES: Final = 20_000

#: What a segment of the path is: a node ran and let the next one start; a node ran, and
#: the next one, which was ready, had to wait for its thread; the engine between two
#: nodes; the begin of a pass; its final callbacks; a thread that slept had to wake up;
#: a kernel that a thread waited for; what lies between a launch, a kernel and a thread
#: that goes on; a message on its way to another worker; what the trace does not tell;
#: segments that are not told one by one.
SegmentKind: TypeAlias = Literal[
    "running",
    "occupied",
    "engine",
    "set-up",
    "callback",
    "waking up",
    "kernel",
    "stream",
    "message",
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
}
_OMITTED: Final = _KINDS.index("omitted")
_OCCUPIED: Final = _KINDS.index("occupied")
_WAKING: Final = _KINDS.index("waking up")


#: Of fewer passes of a shape nothing is usual.
_SEVERAL: Final = 2


class Segment(msgspec.Struct, frozen=True, kw_only=True, gc=False):
    """A piece of the path. Times are counted from the begin of the pass.

    Attributes:
        kind: What it was.
        begin_ns: When it began.
        end_ns: When it ended, and the next one began.
        thread: Where, -1 on a stream.
        stream: Where, empty on a thread.
        task: The pass of the node that ran, -1 if none did; of a kernel that of the
            node which launched it.
        node: That node, -1 for none.
        name: The node's.
    """

    kind: SegmentKind
    begin_ns: int
    end_ns: int
    thread: int
    stream: str
    task: int
    node: int
    name: str

    @property
    def took_ns(self) -> int:
        """How long it is."""
        return self.end_ns - self.begin_ns


class NodeCost(msgspec.Struct, frozen=True, kw_only=True, gc=False):
    """What a node costs a pass.

    Attributes:
        task: Its pass: the one asked for, or one that was called from inside it.
        node: The node.
        name: Its class.
        thread: Where it ran.
        own_ns: How long it ran itself: without passes that it called for, and without
            waiting for a stream.
        on_path_ns: How much of the path is its own, kernels that it launched included.
        slack_ns: How much longer it could have run without making the pass longer; None
            if nothing waited for it.
        if_free_ns: How long the pass would take if it ran, and its kernels, in no time;
            None if that was not computed.
        usual_ns: How long it takes in the passes of the same shape, as median, from its
            start to its end; None where this is the only one, and of nodes of passes
            that were called from inside.
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


class CriticalPath(msgspec.Struct, frozen=True, kw_only=True):
    """What took the time of one pass.

    Attributes:
        task: The pass.
        status: How it ended.
        is_whole: Whether nothing of the trace is lost; else all this is of what is
            left of it.
        origin_ns: When it began, on the trace's clock.
        duration_ns: To its end, or to the last event of it that the trace has.
        totals: How much of that each kind of segment is.
        segments: From the begin to the end, each where the one before it ended.
        num_segments: How many there are, those that are omitted included.
        nodes: Those that it would be worth most to make free first, then those with the
            least slack; `num_nodes` all.
        num_nodes: How many nodes have run.
        num_alike: How many passes of its shape there are, itself among them.
        num_recomputed: For how many of them the duration without them was computed. For
            those that are not on the path it is that of the pass.
        threads: The names of the threads, by number.
        workers: Of a pass of several workers, how much of the path is on each; empty
            if there is but one.
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
    num_nodes: int
    num_alike: int
    num_recomputed: int
    threads: dict[int, str]
    workers: dict[int, int] = {}


def find_critical_path(trace: Trace, task: int) -> CriticalPath:
    """The critical path of a pass, and what each of its nodes costs it.

    Raises:
        UserError: The pass has too many events.
    """
    causes = find_causes(trace, task)
    path = path_of(causes)
    nodes = node_runs(causes)
    on_path = nodes.sums(causes, path)
    stops = find_stops(causes)
    candidates = np.argsort(-on_path, kind="stable")[: np.count_nonzero(on_path)]
    if_free = np.where(on_path > 0, -1, causes.duration_ns)
    found = durations_without(causes, stops, nodes.owner, candidates)
    if_free[candidates[: len(found)]] = found
    slack = _slack(causes, tails(causes, stops), nodes)
    pieces = _merged(_pieces(causes, path))
    told = _shortened(pieces)
    segments = _segments(trace, causes, told)
    gain = np.where(if_free < 0, 0, causes.duration_ns - if_free)
    unknown = np.where(slack < 0, np.iinfo(np.int64).max, slack)
    order = np.lexsort((nodes.end, unknown, -gain))[:MAX_NODES]
    usual = medians_like(trace, task)
    num_alike = max((one.passes for one in usual.values()), default=0)
    return CriticalPath(
        task=task,
        status=causes.status,
        is_whole=trace.losses.is_complete,
        origin_ns=int(causes.t_ns[0]),
        duration_ns=causes.duration_ns,
        totals=_totals(pieces),
        segments=segments,
        num_segments=len(pieces.kind),
        nodes=tuple(
            NodeCost(
                task=int(causes.of_task[nodes.end[at]]),
                node=int(causes.of_node[nodes.end[at]]),
                name=definition(trace, int(causes.of_node[nodes.end[at]])).name,
                thread=int(causes.lane[nodes.end[at]]),
                own_ns=int(nodes.own_ns[at]),
                on_path_ns=int(on_path[at]),
                slack_ns=None if slack[at] < 0 else int(slack[at]),
                if_free_ns=None if if_free[at] < 0 else int(if_free[at]),
                usual_ns=_usual_ns(causes, int(nodes.end[at]), task, usual),
            )
            for at in order.tolist()
        ),
        num_nodes=len(nodes.end),
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
    """What ``gradviz show critical --json`` prints."""
    document = msgspec.to_builtins(path, str_keys=True)
    return {"schema": SCHEMA, "version": VERSION, **document}


def path_of(causes: Causes) -> Column:
    """The moments of the path, in order, without the begin of the pass.

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
    """How much later each node could have ended; -1 where nothing waited for it."""
    begin = nodes.last_begin
    tail = tail_ns[begin]
    slack = causes.duration_ns - (causes.t_ns[begin] - causes.t_ns[0]) - tail
    return np.where(tail < 0, -1, slack)


def _usual_ns(
    causes: Causes, end: int, task: int, usual: Mapping[int, Usual]
) -> int | None:
    """How long the node takes usually whose end is moment `end`."""
    if int(causes.of_task[end]) != task:
        return None
    found = usual.get(int(causes.of_node[end]))
    return None if found is None or found.passes < _SEVERAL else found.took_ns


class _SegmentColumns(NamedTuple):
    """Segments as columns; see `Segment`."""

    kind: Column
    begin_ns: Column
    end_ns: Column
    lane: Column
    task: Column
    node: Column

    def at(self, places: "slice | Column") -> "_SegmentColumns":
        return _SegmentColumns(*(column[places] for column in self))


def _pieces(causes: Causes, path: Column) -> _SegmentColumns:
    """What lies before each moment of the path, in two where a thread woke up."""
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
    """Which pieces are of a node for whose thread a ready node had to wait."""
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


def _merged(pieces: _SegmentColumns) -> _SegmentColumns:
    """The pieces, those of the same thing that follow each other made one."""
    parts = (pieces.kind, pieces.lane, pieces.task, pieces.node)
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
    """How much of the path is on each worker: on the threads that ran its passes."""
    if not (worker_of := causes.workers):
        return {}
    rows = [*zip(*(one.tolist() for one in pieces), strict=True)]
    of_lane = {lane: worker_of[task] for *_, lane, task, _ in rows if task in worker_of}
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
    told.lane[half] = told.task[half] = told.node[half] = -1
    return told


def _segments(
    trace: Trace, causes: Causes, told: _SegmentColumns
) -> tuple[Segment, ...]:
    names = {
        node: definition(trace, node).name if node >= 0 else ""
        for node in np.unique(told.node).tolist()
    }
    return tuple(
        Segment(
            kind=_KINDS[kind],
            begin_ns=begin_ns,
            end_ns=end_ns,
            thread=lane if lane >= 0 else -1,
            stream=_stream(causes, kind, lane),
            task=task,
            node=node,
            name=names[node],
        )
        for kind, begin_ns, end_ns, lane, task, node in zip(
            *(column.tolist() for column in told), strict=True
        )
    )


def _stream(causes: Causes, kind: int, lane: int) -> str:
    if lane >= 0 or kind == _OMITTED:
        return ""
    return shortened(causes.streams[-1 - lane], MAX_TEXT)
