"""Parts: each worker's share of one backward pass of a distributed program.

Note [One pass, several workers]
~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~
Each worker runs its part of a distributed pass as a GraphTask of its own. The pass is
what all of them did for it, in every view, document and export:

* its number is that of the part that the program called for, by `backward`;
* it begins with the earliest of its parts and ends when the last of them is done;
* it has failed if one of them has, and is unfinished if one of them is;
* its nodes are those of all parts, in the order in which they started.

Gradients between workers say which pass they are of, by a number that is the same on
all of them. A part that sent any is a part of that pass, and so is one that such
gradients began. Numbers begin anew when a program starts its workers anew.
"""

import weakref
from collections import defaultdict
from collections.abc import Mapping, Sequence
from typing import Final, NamedTuple

import numpy as np

from gradviz.analysis.tables.spans import following
from gradviz.trace.format.model import Trace
from gradviz.trace.format.table import Column

#: The parts of traces that somebody holds.
_found: Final[weakref.WeakKeyDictionary[Trace, "_Parts"]] = weakref.WeakKeyDictionary()

_found_members: Final[weakref.WeakKeyDictionary[Trace, Mapping[int, Sequence[int]]]] = (
    weakref.WeakKeyDictionary()
)

#: A pass has no more parts, as many as a large cluster has workers: a damaged trace may
#: name very many. Each of the others is a pass of its own.
MAX_PARTS: Final = 250


class WorkerPart(NamedTuple):
    """A part of a distributed pass.

    Attributes:
        whole: The number of the pass.
        worker: Worker that ran the part.
    """

    whole: int
    worker: int


def worker_parts(trace: Trace) -> Mapping[int, WorkerPart]:
    """The parts of distributed passes, by the ids of their GraphTasks.

    A pass that sent no gradients to other workers is not among them.
    """
    return _parts(trace).by_task


def num_parts_apart(trace: Trace) -> int:
    """Count the parts that stand alone, as their pass has `MAX_PARTS` already."""
    return _parts(trace).num_apart


def whole_of(trace: Trace, task: int) -> int:
    """The number of the pass that a GraphTask is a part of; its own if it is all."""
    part = worker_parts(trace).get(task)
    return task if part is None else part.whole


def wholes_of(trace: Trace, tasks: Column) -> Column:
    """The number of the pass that each of some GraphTasks is a part of."""
    parts = worker_parts(trace)
    if not parts:
        return tasks
    different, place = np.unique(tasks, return_inverse=True)
    wholes = [whole_of(trace, task) for task in different.tolist()]
    return np.array(wholes, np.int64)[place]


def numbers_of(trace: Trace, tasks: Sequence[int]) -> tuple[int, ...]:
    """The numbers of the passes that some GraphTasks are parts of, each once."""
    parts = worker_parts(trace)
    return tuple(
        dict.fromkeys(parts[one].whole if one in parts else one for one in tasks)
    )


def with_parts(trace: Trace, tasks: Sequence[int]) -> set[int]:
    """`tasks`, and all other parts of the passes that they are parts of."""
    parts = worker_parts(trace)
    if not parts:
        return {*tasks}
    wanted = {parts[task].whole if task in parts else task for task in tasks}
    others = _members(trace)
    return wanted.union(*(others.get(whole, ()) for whole in wanted))


def _members(trace: Trace) -> Mapping[int, Sequence[int]]:
    """The parts of each distributed pass, by its number."""
    if trace not in _found_members:
        members: dict[int, list[int]] = defaultdict(list)
        for task, part in worker_parts(trace).items():
            members[part.whole].append(task)
        _found_members[trace] = members
    return _found_members[trace]


class _Parts(NamedTuple):
    """Each part that belongs to a pass, and the number of those beyond `MAX_PARTS`."""

    by_task: Mapping[int, WorkerPart]
    num_apart: int


def _parts(trace: Trace) -> _Parts:
    if trace not in _found:
        _found[trace] = _find_parts(trace)
    return _found[trace]


def _find_parts(trace: Trace) -> _Parts:
    found = _mentions(trace)
    begun = trace.columns["task_begun"]
    in_order = np.argsort(begun["task"], kind="stable")
    known = begun["task"][in_order]
    at = np.searchsorted(known, found.task, side="right") - 1
    is_known = np.flatnonzero(known[at] == found.task) if len(known) else at[:0]
    if not len(is_known):
        return _Parts({}, 0)
    found, at = _Mentions(*(one[is_known] for one in found)), at[is_known]
    began = begun["seq"][in_order][at]

    # A part belongs to the first pass that mentions it.
    order = np.lexsort((found.came, found.worker, found.task, *found[2::-1]))
    tasks, first, part = np.unique(found.task[order], True, True)
    first = order[first]
    came = np.where(found.came < 0, np.iinfo(np.int64).max, found.came)[order]
    first_came = np.full(len(tasks), np.iinfo(np.int64).max)
    np.minimum.at(first_came, part, came)

    # The part that the program called for is first: no gradients began it.
    is_answer = first_came < began[first]
    keys = [one[first] for one in found[2::-1]]
    order = np.lexsort((began[first], is_answer, *keys))
    is_new = np.append(True, np.zeros(len(order) - 1, np.bool_))
    for key in keys:
        is_new[1:] |= key[order][1:] != key[order][:-1]
    begins = np.flatnonzero(is_new)
    own = np.cumsum(is_new) - 1
    kept = np.arange(len(order)) - begins[own] < MAX_PARTS
    tasks, workers = tasks[order], found.worker[first][order]
    rows = zip(
        tasks[kept].tolist(),
        tasks[begins][own][kept].tolist(),
        workers[kept].tolist(),
        strict=True,
    )
    by_task = {task: WorkerPart(whole, worker) for task, whole, worker in rows}
    return _Parts(by_task, int(np.count_nonzero(~kept)))


class _Mentions(NamedTuple):
    """Each part that sent gradients or got them, as columns.

    Attributes:
        start: Start of the workers, by number: this and the next two tell passes apart.
        context: The context.
        pass_id: The number that the pass has on all workers.
        task: The part.
        worker: Worker that ran it.
        came: The `seq` with which gradients came to it, -1 where it sent them.
    """

    start: Column
    context: Column
    pass_id: Column
    task: Column
    worker: Column
    came: Column


def _mentions(trace: Trace) -> _Mentions:
    sent, came = (
        table.at(table.narrow("pass_id") >= 0)
        for table in (
            trace.columns["message_sent"],
            trace.columns["message_received"],
        )
    )
    if not sent.num_rows and not came.num_rows:
        return _Mentions(*np.empty((6, 0), np.int64))
    starts = _starts(trace)
    pushed = trace.columns["task_pushed"]
    if not pushed.num_rows:  # the recording left them out
        pushed = trace.columns["node_started"]
    place = following(came, pushed, ("node",))
    came = came.at(place >= 0)
    begun = pushed["task"][place[place >= 0]]
    both = [
        (
            np.searchsorted(starts, table["seq"]),
            table["context"],
            table["pass_id"],
            tasks,
            table["worker"],
            table["seq"] if table is came else np.full(table.num_rows, -1),
        )
        for table, tasks in ((sent, sent["task"]), (came, begun))
    ]
    return _Mentions(*map(np.concatenate, zip(*both, strict=True)))


def _starts(trace: Trace) -> list[int]:
    """The `seq` of each start of the workers after the first, in order."""
    starts, ranks = [], set[int]()
    for seq, rank in trace.columns["worker_began"].rows("seq", "worker"):
        if rank in ranks:
            starts.append(seq)
            ranks.clear()
        ranks.add(rank)
    return starts
