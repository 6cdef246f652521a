"""Shapes: passes through graphs of one structure, and their usual times.

A training loop runs the same graph again and again, each time of nodes with new ids.
Here its passes are found again, and their nodes: two nodes of two passes are the same
if they have the same place, in passes with the same key::

    found = shapes(trace)               # or of some passes only
    found.keys[found.row_of(task)]      # equal keys: one structure, in any trace
    found.of(task).node                 # its nodes by place: those of passes of one
                                        # shape correspond row by row
    usual = medians(found)              # row by row of `found.runs`
    medians_like(trace, task)           # node -> what is usual for it, of one pass

Note [What makes a shape]
~~~~~~~~~~~~~~~~~~~~~~~~~
The nodes that ran in a pass with their names and devices, and which gradient went to
which input of which of them. Ids, lines, modules and the sizes of tensors are no part
of it. A pass that failed, or was recorded in part, did not run all of its nodes: it has
a shape of its own. So has a pass of which definitions are lost.

Nodes are put in the order in which they were made, the latest first; those that have no
such order (each AccumulateGrad, what several threads made) by the first edge that leads
to them, then by id. The order is only a proposal: a key says all of the structure, so
nodes that correspond are never different ones. But of two passes that made the same
nodes in another order the keys may differ.
"""

import hashlib
import weakref
from collections.abc import Mapping, Sequence
from typing import Final, NamedTuple

import numpy as np

from gradviz.analysis.tables.executions import STATUSES, Executions, execution_columns
from gradviz.trace.format.model import EdgeColumns, Trace
from gradviz.trace.format.table import Column

#: Maximum number of nodes and edges compared; passes after them are left out.
MAX_COMPARED: Final = 4_000_000

#: Instead of a consumer: the edge leads nowhere, or to a node that did not run.
_NOWHERE: Final = -1
_NOT_RUN: Final = -2


class PassShapes(NamedTuple):
    """The nodes of some passes, aligned for passes of one shape.

    Attributes:
        tasks: The passes in which a node ran, in the order in which they were given.
        keys: Of each pass what tells its shape, the same for the same one everywhere.
        begins: Of each pass the first row of its nodes in `runs`, and at last their
            number.
        runs: The nodes, pass by pass, within each by place.
        omitted: Number of passes beyond these.
    """

    tasks: Column
    keys: tuple[bytes, ...]
    begins: Column
    runs: Executions
    omitted: int

    @property
    def places(self) -> Column:
        """Of each of `runs` its place in its pass, from 0."""
        sizes = np.diff(self.begins)
        return np.arange(len(self.runs.node)) - np.repeat(self.begins[:-1], sizes)

    def row_of(self, task: int) -> int:
        """Return the row of a pass in `tasks` and `keys`, -1 if it is not there."""
        found = np.flatnonzero(self.tasks == task)
        return int(found[0]) if len(found) else -1

    def of(self, task: int) -> Executions:
        """The nodes of one pass by place; none if it is not there."""
        row = self.row_of(task)
        if row < 0:
            return self.runs.at(slice(0))
        return self.runs.at(slice(int(self.begins[row]), int(self.begins[row + 1])))

    def like(self, task: int) -> tuple[int, ...]:
        """The passes of the shape that a pass has, itself among them."""
        row = self.row_of(task)
        key = self.keys[row] if row >= 0 else None
        both = zip(self.tasks.tolist(), self.keys, strict=True)
        return tuple(one for one, other in both if other == key)


class Medians(NamedTuple):
    """Usual times of nodes: medians over the passes of one shape, as columns.

    Attributes:
        passes: Number of passes of the shape in which the node completed.
        took_ns: Time from its start to its end; 0 if it completed in none.
        thread_time_ns: Running time of its thread meanwhile; -1 if that is not known
            for each of them.
    """

    passes: Column
    took_ns: Column
    thread_time_ns: Column


class Usual(NamedTuple):
    """Usual times of one node; see `Medians`."""

    passes: int
    took_ns: int
    thread_time_ns: int


def shapes(trace: Trace, tasks: Sequence[int] | None = None) -> PassShapes:
    """The shapes of passes, and their nodes by place.

    Args:
        trace: The trace.
        tasks: The passes, None for all; of too many the first ones are compared.
    """
    tasks = trace.tasks if tasks is None else tasks
    wanted = np.array(tasks, np.int64)
    runs = execution_columns(trace, tasks)
    nodes, which = np.unique(runs.node, return_inverse=True)
    edges = trace.nodes.edges(nodes)
    row = _rows(runs, wanted)
    sizes = 1 + np.diff(edges.ends, prepend=0)[which]
    total = np.cumsum(np.bincount(row, sizes, len(wanted)))
    kept = np.flatnonzero(total[row] <= MAX_COMPARED)
    # In the order in which they were made, unsigned, the latest first.
    made = trace.nodes.sequence_nrs(nodes)[which].view(np.uint64)
    kept = kept[np.lexsort((runs.node[kept], ~made[kept], row[kept]))]
    first_to = _handed(nodes, edges, which[kept], row[kept]).first_to(len(kept))
    kept = kept[np.lexsort((first_to, ~made[kept], row[kept]))]
    runs, which, row = runs.at(kept), which[kept], row[kept]
    begins = np.append(np.flatnonzero(np.diff(row, prepend=-1)), len(row))
    return PassShapes(
        tasks=runs.task[begins[:-1]],
        keys=_keys(trace, nodes, which, _handed(nodes, edges, which, row), begins),
        begins=begins,
        runs=runs,
        omitted=int((total > MAX_COMPARED).sum()),
    )


def medians(found: PassShapes) -> Medians:
    """Return the usual times of each of the nodes, row by row of ``found.runs``."""
    ids: dict[bytes, int] = {}
    shape = np.array([ids.setdefault(key, len(ids)) for key in found.keys], np.int64)
    shape = np.repeat(shape, np.diff(found.begins))
    longest = int(np.diff(found.begins).max(initial=0))
    same = shape * longest + found.places
    is_done = found.runs.status == STATUSES.index("completed")
    groups, group = np.unique(same, return_inverse=True)
    passes = np.bincount(group[is_done], minlength=len(groups))
    ran_ns = found.runs.thread_time_ns
    took, ran = (
        _middles(group[is_done], numbers[is_done], passes)
        for numbers in (found.runs.took_ns, ran_ns)
    )
    ran[passes == 0] = -1
    ran[group[is_done & (ran_ns < 0)]] = -1
    return Medians(passes[group], took[group], ran[group])


def medians_like(trace: Trace, task: int) -> Mapping[int, Usual]:
    """Return the usual times of each node of a pass, by its id.

    The result for the passes with as many nodes is kept for callers that ask about the
    next one of them.
    """
    known, many = np.unique(
        trace.columns["node_started"].narrow("task"), return_counts=True
    )
    # The others cannot have its shape.
    alike = tuple(known[many == many[known == task].max(initial=0)].tolist())
    kept = _usual.get(trace)
    if kept is None or kept.asked != alike or task not in alike:
        kept = _usual_of(trace, alike if task in alike else (task,))
        if kept.is_whole:
            _usual[trace] = kept
        else:
            kept = _usual_of(trace, (task, *(one for one in alike if one != task)))
    row = np.flatnonzero(kept.tasks == task)[:1]
    begin, end = kept.begins[row].sum(), kept.begins[row + 1].sum()
    columns = (column[begin:end].tolist() for column in kept.medians)
    rows = map(Usual, *columns)
    return dict(zip(kept.node[begin:end].tolist(), rows, strict=True))


class _UsualOfMany(NamedTuple):
    """Usual times of the nodes of some passes.

    Attributes:
        asked: The passes.
        is_whole: True if there were few enough of them.
        tasks: The passes in the result.
        begins: For each the first of its nodes, and at last their number.
        node: The nodes.
        medians: The usual times of each.
    """

    asked: tuple[int, ...]
    is_whole: bool
    tasks: Column
    begins: Column
    node: Column
    medians: Medians


#: Of traces that somebody holds what was found last.
_usual: Final[weakref.WeakKeyDictionary[Trace, _UsualOfMany]] = (
    weakref.WeakKeyDictionary()
)


def _usual_of(trace: Trace, tasks: tuple[int, ...]) -> _UsualOfMany:
    found = shapes(trace, tasks)
    return _UsualOfMany(
        tasks,
        not found.omitted,
        found.tasks,
        found.begins,
        found.runs.node,
        medians(found),
    )


class _Handed(NamedTuple):
    """Gradients that nodes hand on, by producer and in the order of its outputs.

    Attributes:
        sizes: Of each node how many.
        consumer: Index among the nodes of the one that each is for.
        input_nr: Number of the input of that node.
    """

    sizes: Column
    consumer: Column
    input_nr: Column

    def first_to(self, size: int) -> Column:
        """Of each of so many nodes the first edge that leads to it."""
        found = np.full(size, len(self.consumer))
        leading = np.flatnonzero(self.consumer >= 0)[::-1]
        found[self.consumer[leading]] = leading  # of several the last one stays
        return found


def _rows(runs: Executions, wanted: Column) -> Column:
    """Of each node where its pass is among those wanted."""
    order = np.argsort(wanted, kind="stable")
    rows: Column = order[np.searchsorted(wanted[order], runs.task)]
    return rows


def _handed(nodes: Column, edges: EdgeColumns, which: Column, row: Column) -> _Handed:
    """The gradients that nodes hand on to others of the same pass.

    Args:
        nodes: Different nodes, sorted.
        edges: Theirs.
        which: Index of each in `nodes`.
        row: Index of the pass in which each ran.
    """
    many = np.diff(edges.ends, prepend=0)
    sizes = many[which]
    moved = (edges.ends - many)[which] - (np.cumsum(sizes) - sizes)
    places = np.repeat(moved, sizes) + np.arange(sizes.sum())
    target = edges.consumer[places]
    numbers = row * len(nodes) + which
    order = np.argsort(numbers, kind="stable")
    ordered = np.append(numbers[order], -1)
    node = np.minimum(np.searchsorted(nodes, target), len(nodes) - 1)
    meant = np.repeat(row, sizes) * len(nodes) + node
    place = np.searchsorted(ordered[:-1], meant)
    ran = (nodes[node] == target) & (ordered[place] == meant)
    consumer = np.where(ran, np.append(order, 0)[place], _NOT_RUN)
    consumer[target < 0] = _NOWHERE
    return _Handed(sizes, consumer, edges.input_nr[places])


def _keys(
    trace: Trace, nodes: Column, which: Column, handed: _Handed, begins: Column
) -> tuple[bytes, ...]:
    """Return a key of each pass's shape; its nodes are in the order of their places."""
    names, name = trace.nodes.names(nodes)
    devices, device = trace.nodes.names(nodes, "device")
    texts = _numbers(names)[name[which]], _numbers(devices)[device[which]]
    about = np.stack((*texts, handed.sizes), axis=1)
    ends = np.append(0, np.cumsum(handed.sizes))[begins]
    own = np.repeat(begins[:-1], np.diff(ends))
    place = np.where(handed.consumer < 0, handed.consumer, handed.consumer - own)
    flow = np.stack((place, handed.input_nr), axis=1)
    is_lost = np.array([one == "?" for one in names], np.bool_)[name[which]]
    lost = np.add.reduceat(np.append(is_lost, False), begins, dtype=np.int64)
    return tuple(
        _digest(
            about[begin:end].tobytes(),
            flow[first:last].tobytes(),
            b"%d %d" % (trace.header.recording, row) if of_it else b"",
        )
        for row, (begin, end, first, last, of_it) in enumerate(
            zip(
                begins[:-1].tolist(),
                begins[1:].tolist(),
                ends[:-1].tolist(),
                ends[1:].tolist(),
                lost[:-1].tolist(),
                strict=True,
            )
        )
    )


def _numbers(texts: Sequence[str]) -> Column:
    """A number for each text, the same in all traces."""
    numbers = (_digest(one.encode("utf-8", "replace"))[:8] for one in texts)
    return np.frombuffer(b"".join(numbers), np.int64)


def _digest(*parts: bytes) -> bytes:
    digest = hashlib.blake2b(digest_size=16)
    for part in parts:
        digest.update(b"%d " % len(part))
        digest.update(part)
    return digest.digest()


def _middles(group: Column, numbers: Column, sizes: Column) -> Column:
    """The median of each group of numbers, of which there are so many; else 0."""
    ordered = numbers[np.lexsort((numbers, group))]
    begins = np.cumsum(sizes) - sizes
    ordered = np.append(ordered, 0)
    low, high = (ordered[begins + half] for half in ((sizes - 1) // 2, sizes // 2))
    return np.where(sizes > 0, (low + high) // 2, 0)
