"""Lanes: the events of a period by lane, and the activity between them.

A lane is a thread, or a stream that threads waited for. At the start of a pass a thread
may be in the middle of something else.
"""

import enum
from collections.abc import Iterable, Mapping
from typing import Final, NamedTuple

import numpy as np
import numpy.typing as npt

from gradviz.analysis.causes.kernel_causes import SYNCHRONIZED, KernelCauses
from gradviz.trace.format.table import Column, Table
from gradviz.trace.probe import Push


class EarlierAct(NamedTuple):
    """Something that a thread had begun and not ended.

    Attributes:
        kind: The kind of event that says so: ``node_started`` for a node that runs.
        task: Its pass.
        node: Its node, or -1.
    """

    kind: str
    task: int
    node: int


class Act(enum.IntEnum):
    """Activity of a lane up to a moment."""

    UNKNOWN = 0
    RUNNING = 1
    ENGINE = 2
    SETTING_UP = 3
    CALLBACK = 4
    WAKING = 5
    KERNEL = 6
    STREAM = 7
    MESSAGE = 8
    COLLECTIVE = 9


#: Events by which a thread begins something, or goes on with it.
_BEGINS: Final = (
    *("task_begun", "dependencies_counted", "reentrant_entered"),
    *("task_popped", "node_started", "gradient_buffered", "task_pushed"),
    *("callback_run", "collective_began"),
)
#: Events after which it is not known to do anything.
_ENDS: Final = (
    *("node_completed", "node_failed", "node_skipped", "message_received"),
    *("task_completed", "task_failed", "thread_exited", "collective_ended"),
)
_LEFT: Final = "reentrant_left"

#: A thread whose last event is so much earlier, in rows of a kind, did nothing lately.
_FIRST_LOOK: Final = 1 << 10

_KEEPS: Final = -1

#: Of the events that are moments: what their thread does from then on.
ACTS: Final[Mapping[str, int]] = {
    "task_begun": Act.SETTING_UP,
    "dependencies_counted": Act.SETTING_UP,
    "reentrant_entered": Act.SETTING_UP,
    "task_pushed": Act.ENGINE,  # or running, if a node did it
    "task_popped": Act.ENGINE,
    "node_started": Act.RUNNING,
    "gradient_buffered": Act.RUNNING,
    "node_completed": Act.ENGINE,
    "node_failed": Act.ENGINE,
    "node_skipped": Act.ENGINE,
    "callback_run": Act.CALLBACK,
    "task_completed": Act.ENGINE,
    "task_failed": _KEEPS,
    "reentrant_left": Act.UNKNOWN,  # what it did when it called for that pass
    "thread_exited": Act.UNKNOWN,
    "kernel_launched": _KEEPS,
    "message_sent": _KEEPS,
    "message_received": Act.ENGINE,
    "collective_began": Act.COLLECTIVE,
    "collective_ended": Act.ENGINE,
    **dict.fromkeys(SYNCHRONIZED, _KEEPS),
}
_CODES: Final = {kind: code for code, kind in enumerate(ACTS)}
_CODES["kernel_began"] = len(ACTS)
_CODES["kernel_ended"] = len(ACTS) + 1


class LaneMoments(NamedTuple):
    """The moments before their dependencies are known; see `Causes`.

    Attributes:
        t_ns: Time of each.
        lane: Its thread or stream.
        kind: Its kind.
        task: Its pass.
        node: Its node.
        by: The node that pushed what was pushed, or gave what was given; or -1.
        what: Kind of task that was pushed: a `Push`.
        before: The moment before it on its lane, 0 for the first of each lane.
        is_first: True if it is the first of its lane.
        in_lanes: All moments lane by lane.
        seqs: The `seq` of all that are events, sorted.
        places: Moment of each of these events.
        launched: Of each kernel the moment of its launch,
        began: that of its start,
        ended: and of its end; -1 where they are no moments.
        streams: Places in the trace's strings.
    """

    t_ns: Column
    lane: Column
    kind: Column
    task: Column
    node: Column
    by: Column
    what: Column
    before: Column
    is_first: npt.NDArray[np.bool_]
    in_lanes: Column
    seqs: Column
    places: Column
    launched: Column
    began: Column
    ended: Column
    streams: tuple[int, ...]

    def is_kind(self, *kinds: str) -> npt.NDArray[np.bool_]:
        """Return which are events of these kinds, or `kernel_began`, `kernel_ended`."""
        return is_kind(self.kind, kinds)

    def at(self, seqs: Column) -> Column:
        """The moments of some events, -1 for those that are none."""
        if not len(self.seqs):
            return np.full(len(seqs), -1)
        place = np.minimum(np.searchsorted(self.seqs, seqs), len(self.seqs) - 1)
        return np.where(self.seqs[place] == seqs, self.places[place], -1)


def arranged(tables: Mapping[str, Table], kernels: KernelCauses) -> LaneMoments:
    """The events of some tables, and the kernels, in the order of time.

    The first event comes first and the last one last, whatever kernels do.
    """

    def column(name: str, other: Mapping[str, str]) -> Column:
        parts = [
            tables[kind][other.get(kind, name)]
            if other.get(kind, name) in tables[kind]
            else np.full(tables[kind].num_rows, -1)
            for kind in ACTS
        ]
        return np.concatenate(parts)

    seq = column("seq", {})
    t_ns, task, node = (column(name, {}) for name in ("t_ns", "task", "node"))
    thread = column("thread", {})
    by = column("pushed_by", {"gradient_buffered": "producer"})
    what = column("what", {})
    kind = np.repeat(np.arange(len(ACTS)), [tables[one].num_rows for one in ACTS])
    order = np.argsort(seq)
    begin, end = int(t_ns[order[0]]), int(t_ns[order[-1]])
    streams, lanes = np.unique(kernels.stream, return_inverse=True)
    began = np.flatnonzero((kernels.began_ns > begin) & (kernels.ended_ns <= end))
    ended = np.flatnonzero((kernels.ended_ns > begin) & (kernels.ended_ns <= end))
    num_events, nothing = len(seq), np.full(len(began) + len(ended), -1)
    both = np.concatenate((began, ended))
    t_ns = np.concatenate((t_ns, kernels.began_ns[began], kernels.ended_ns[ended]))
    # At one time kernels end before a thread goes on, and begin after it.
    rank = np.repeat([1, 2, 0], [num_events, len(began), len(ended)])
    order = np.lexsort((np.concatenate((seq, both)), rank, t_ns))
    where = np.empty(len(order), np.int64)
    where[order] = np.arange(len(order))
    lane = np.concatenate((thread, -1 - lanes[both]))[order]
    in_lanes = np.argsort(lane, kind="stable")
    is_first = np.ones(len(order), np.bool_)
    is_first[in_lanes[1:]] = lane[in_lanes[1:]] != lane[in_lanes[:-1]]
    before = np.zeros(len(order), np.int64)
    before[in_lanes[1:]] = in_lanes[:-1]
    before[is_first] = 0
    by_seq = np.argsort(seq)
    codes = np.repeat(
        [_CODES["kernel_began"], _CODES["kernel_ended"]], [len(began), len(ended)]
    )
    rows = LaneMoments(
        t_ns=t_ns[order],
        lane=lane,
        kind=np.concatenate((kind, codes))[order],
        task=np.concatenate((task, nothing))[order],
        node=np.concatenate((node, nothing))[order],
        by=np.concatenate((by, nothing))[order],
        what=np.concatenate((what, nothing))[order],
        before=before,
        is_first=is_first,
        in_lanes=in_lanes,
        seqs=seq[by_seq],
        places=where[:num_events][by_seq],
        launched=np.full(len(kernels.launch), -1),
        began=np.full(len(kernels.launch), -1),
        ended=np.full(len(kernels.launch), -1),
        streams=tuple(streams.tolist()),
    )
    rows.launched[:] = rows.at(kernels.launch)
    rows.began[began] = where[num_events : num_events + len(began)]
    rows.ended[ended] = where[num_events + len(began) :]
    return rows


def acts_of(
    rows: LaneMoments, earlier: Mapping[int, EarlierAct]
) -> tuple[Column, Column, Column]:
    """Activity of each lane until each moment: an `Act`, its pass and its node.

    Args:
        rows: The moments.
        earlier: Of the first moment of a lane what its thread had begun before.
    """
    codes = np.array([*ACTS.values(), Act.KERNEL, Act.STREAM], np.int64)
    act, task, node = codes[rows.kind], rows.task.copy(), rows.node.copy()
    is_node = rows.is_kind("gradient_buffered")
    is_node |= rows.is_kind("task_pushed") & (rows.what == Push.NODE)
    act[is_node] = np.where(rows.by[is_node] >= 0, Act.RUNNING, _KEEPS)
    node[is_node] = rows.by[is_node]
    keeps = act == _KEEPS
    act[rows.is_first & keeps] = Act.UNKNOWN
    for moment, one in earlier.items():
        if keeps[moment]:
            act[moment], task[moment], node[moment] = ACTS[one.kind], one.task, one.node
    ordered = np.where(act[rows.in_lanes] != _KEEPS, np.arange(len(act)), 0)
    setter = np.empty(len(act), np.int64)
    setter[rows.in_lanes] = rows.in_lanes[np.maximum.accumulate(ordered)]
    begun = {
        (one_lane, one_task): moment
        for moment, one_lane, one_task in listed(rows, "task_begun", rows.lane)
    }
    for moment, one_lane, one_task in listed(rows, "reentrant_left", rows.lane):
        call = begun.get((one_lane, one_task), -1)
        if call in earlier:
            one = earlier[call]
            act[moment], task[moment], node[moment] = ACTS[one.kind], one.task, one.node
        elif call >= 0 and not rows.is_first[call]:
            caller = setter[rows.before[call]]
            act[moment], task[moment] = act[caller], task[caller]
            node[moment] = node[caller]
    known = np.flatnonzero((rows.launched >= 0) & (rows.began >= 0))
    launcher = setter[rows.launched[known]]
    task[rows.began[known]], node[rows.began[known]] = task[launcher], node[launcher]
    until = setter[rows.before]
    found = act[until], task[until], node[until]
    # The setup ends with the first push, whoever is said to have pushed.
    is_pushed = rows.is_kind("task_pushed")[rows.before]
    found[0][is_pushed & (found[0] == Act.SETTING_UP)] = Act.ENGINE
    # The trace lacks the start of what a lane did first, but perhaps not its kind.
    first = np.flatnonzero(rows.is_first)
    is_end = rows.is_kind("node_completed", "node_failed")[first]
    is_end |= is_node[first] & (act[first] == Act.RUNNING)
    found[0][first] = np.where(is_end, Act.RUNNING, Act.UNKNOWN)
    found[1][first], found[2][first] = task[first], node[first]
    for moment, one in earlier.items():
        found[0][moment] = ACTS[one.kind]
        found[1][moment], found[2][moment] = one.task, one.node
    return found


def listed(rows: LaneMoments, kind: str, *columns: Column) -> Iterable[tuple[int, ...]]:
    """The moments of a kind, some numbers of each, and its pass."""
    places = np.flatnonzero(rows.is_kind(kind))
    some = (one[places].tolist() for one in (*columns, rows.task))
    return zip(places.tolist(), *some, strict=True)


def is_kind(kind: Column, kinds: Iterable[str]) -> npt.NDArray[np.bool_]:
    """Return which moments are events of these kinds; see `LaneMoments.is_kind`."""
    return np.isin(kind, [_CODES[one] for one in kinds])


def begun_before(
    tables: Mapping[str, Table], thread: int, seq: int
) -> EarlierAct | None:
    """Return the activity of a thread right before an event.

    Args:
        tables: All events of the trace, by kind.
        thread: The thread.
        seq: The event.
    """
    while True:
        last = {
            kind: place
            for kind in (*_BEGINS, *_ENDS, _LEFT)
            if (place := _last_place(tables[kind], thread, seq)) >= 0
        }
        if not last:
            return None
        kind = max(last, key=lambda one: int(tables[one]["seq"][last[one]]))
        if kind in _ENDS:
            return None
        row = tables[kind].at(slice(last[kind], last[kind] + 1))
        seq, task, node = (int(row[name][0]) for name in ("seq", "task", "node"))
        if kind == _LEFT:  # it went on with what it did when it called for that pass
            call = _begin_of(tables["task_begun"], thread, task, seq)
            if call < 0:
                return None
            seq = call
            continue
        if kind == "gradient_buffered" and (node := int(row["producer"][0])) < 0:
            continue  # somebody else's, which says nothing of the thread
        if kind == "task_pushed":
            by = int(row["pushed_by"][0])
            if by < 0 or row["what"][0] != Push.NODE:
                return EarlierAct("task_popped", task, -1)
            node = by
        if kind in {"gradient_buffered", "task_pushed"}:
            kind = "node_started"
        return EarlierAct(kind, task, node)


def _begin_of(begun: Table, thread: int, task: int, before: int) -> int:
    """Return the `seq` of the start of a thread's pass; -1 for none."""
    is_it = (begun.narrow("task") == task) & (begun.narrow("thread") == thread)
    found = begun["seq"][is_it]
    return int(found[0]) if len(found) and found[0] < before else -1


def _last_place(table: Table, thread: int, seq: int) -> int:
    """The row of the last event of a thread before another event; -1 for none."""
    end = int(np.searchsorted(table.narrow("seq"), seq))
    size = _FIRST_LOOK
    while end:
        begin = max(end - size, 0)
        own = np.flatnonzero(table.narrow("thread")[begin:end] == thread)
        if len(own):
            return begin + int(own[-1])
        end, size = begin, 4 * size
    return -1
