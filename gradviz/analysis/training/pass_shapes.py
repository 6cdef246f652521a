"""Shapes: passes through graphs of one structure, and their usual times.

A training loop runs the same graph again and again, each time of nodes with new ids.
Here its passes are found again, and their nodes: two nodes of two passes are the same
if they have the same place, in passes with the same key::

    found = shapes(trace)               # or of some passes only
    found.keys[found.row_of(task)]      # equal keys: one structure, in any trace
    found.of(task).node                 # its nodes by place: those of passes of one
                                        # shape correspond row by row
    usual = medians(found, rows)        # by place, of passes of one shape
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
from collections import defaultdict
from collections.abc import Mapping, Sequence
from typing import Final, NamedTuple

import numpy as np
import numpy.typing as npt

from gradviz.analysis.tables.executions import STATUSES, Executions, execution_columns
from gradviz.trace.format.model import EdgeColumns, Trace
from gradviz.trace.format.table import Column, Narrow, joined, narrow

#: Maximum number of nodes and edges compared; passes after them are left out.
MAX_COMPARED: Final = 4_000_000

#: Instead of a consumer: the edge leads nowhere, or to a node that did not run.
_NOWHERE: Final = -1
_NOT_RUN: Final = -2

#: Passes are looked at together until they have so many nodes. What is made of them
#: on the way takes far more memory than what is kept.
_TOGETHER: Final = 1 << 15


class ShapedNodes(NamedTuple):
    """Nodes of passes, pass by pass, within each by place, as columns.

    Attributes:
        node: The node.
        took_ns: Time from its start to its end; 0 if that is not known.
        thread_time_ns: Time of it that its thread was running; -1 if unknown.
        status: Outcome of its evaluation: a place in `STATUSES`.
    """

    node: Narrow
    took_ns: Narrow
    thread_time_ns: Narrow
    status: Narrow


class PassShapes(NamedTuple):
    """The nodes of some passes, aligned for passes of one shape.

    Attributes:
        tasks: The passes in which a node ran, in the order in which they were given.
        keys: Of each pass what tells its shape, the same for the same one everywhere.
        begins: Of each pass the first row of its nodes in `runs`, and at last their
            number.
        runs: The nodes, in as few bytes as they fit into.
        omitted: Number of passes beyond these.
    """

    tasks: Column
    keys: tuple[bytes, ...]
    begins: Column
    runs: ShapedNodes
    omitted: int

    def row_of(self, task: int) -> int:
        """Return the row of a pass in `tasks` and `keys`, -1 if it is not there."""
        found = np.flatnonzero(self.tasks == task)
        return int(found[0]) if len(found) else -1

    def of(self, task: int) -> ShapedNodes:
        """The nodes of one pass by place, as 64-bit integers; none if it is absent."""
        row = self.row_of(task)
        begin, end = self.begins[row : row + 2].tolist() if row >= 0 else (0, 0)
        return ShapedNodes(*(one[begin:end].astype(np.int64) for one in self.runs))

    def like(self, task: int) -> tuple[int, ...]:
        """The passes of the shape that a pass has, itself among them."""
        row = self.row_of(task)
        key = self.keys[row] if row >= 0 else None
        both = zip(self.tasks.tolist(), self.keys, strict=True)
        return tuple(one for one, other in both if other == key)


class Medians(NamedTuple):
    """Usual times of nodes, by place: medians over the passes of one shape.

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
    tasks = [*dict.fromkeys(trace.tasks if tasks is None else tasks)]
    parts: list[_ShapedPart] = []
    total = num_passes = omitted = 0
    for some in _together(trace, tasks):
        if total > MAX_COMPARED:
            omitted += len(some)
            continue
        part = _part(trace, some, total, num_passes)
        parts.append(part)
        total += part.size
        num_passes += len(part.tasks)
        omitted += part.omitted
    return PassShapes(
        tasks=joined([np.empty(0, np.int64), *(one.tasks for one in parts)]),
        keys=tuple(key for one in parts for key in one.keys),
        begins=np.cumsum(joined([np.zeros(1, np.int64), *(one.many for one in parts)])),
        runs=ShapedNodes(*map(joined, zip(*(one.runs for one in parts), strict=True))),
        omitted=omitted,
    )


def _together(trace: Trace, tasks: Sequence[int]) -> list[Column]:
    """Return passes in their order, in groups of about `_TOGETHER` nodes."""
    wanted = np.array(tasks, np.int64)
    num_nodes = np.zeros(len(wanted), np.int64)
    for kind in ("node_started", "capture_taken"):
        known, many = np.unique(trace.columns[kind].narrow("task"), return_counts=True)
        known = np.append(known, -1)  # of no pass there are no nodes
        many = np.append(many, 0)
        place = np.searchsorted(known[:-1], wanted)
        num_nodes += np.where(known[place] == wanted, many[place], 0)
    group = np.cumsum(num_nodes) // _TOGETHER
    return np.split(wanted, np.flatnonzero(np.diff(group)) + 1)


class _ShapedPart(NamedTuple):
    """Some passes one after the other; see `PassShapes`.

    Attributes:
        tasks: The passes in which a node ran.
        keys: Key of the shape of each.
        many: Of each the number of its nodes.
        runs: The nodes.
        size: Number of nodes and edges, those of omitted passes included.
        omitted: Number of passes beyond `MAX_COMPARED`.
    """

    tasks: Column
    keys: tuple[bytes, ...]
    many: Column
    runs: ShapedNodes
    size: int
    omitted: int


def _part(trace: Trace, wanted: Column, before: int, num_passes: int) -> _ShapedPart:
    """The shapes of some passes.

    Args:
        trace: The trace.
        wanted: The passes.
        before: Number of nodes and edges of the passes before them.
        num_passes: Number of those passes.
    """
    runs = execution_columns(trace, wanted.tolist())
    nodes, which = np.unique(runs.node, return_inverse=True)
    edges = trace.nodes.edges(nodes)
    row = _rows(runs, wanted)
    sizes = 1 + np.diff(edges.ends, prepend=0)[which]
    total = before + np.cumsum(np.bincount(row, sizes, len(wanted)))
    kept = np.flatnonzero(total[row] <= MAX_COMPARED)
    # In the order in which they were made, unsigned, the latest first.
    made = trace.nodes.sequence_nrs(nodes)[which].view(np.uint64)
    kept = kept[np.lexsort((runs.node[kept], ~made[kept], row[kept]))]
    first_to = _handed(nodes, edges, which[kept], row[kept]).first_to(len(kept))
    kept = kept[np.lexsort((first_to, ~made[kept], row[kept]))]
    which, row = which[kept], row[kept]
    begins = np.append(np.flatnonzero(np.diff(row, prepend=-1)), len(row))
    handed = _handed(nodes, edges, which, row)
    columns = runs.node, runs.took_ns, runs.thread_time_ns, runs.status
    return _ShapedPart(
        tasks=runs.task[kept][begins[:-1]],
        keys=_keys(trace, nodes, which, handed, begins, num_passes),
        many=np.diff(begins),
        runs=ShapedNodes(*(narrow(one[kept]) for one in columns)),
        size=int(sizes.sum()),
        omitted=int((total > MAX_COMPARED).sum()),
    )


def medians(found: PassShapes, rows: Sequence[int]) -> Medians:
    """Return the usual times of the nodes of passes of one shape.

    Args:
        found: The passes.
        rows: Those of the shape, by their rows in it.
    """
    begins = found.begins[rows]
    size = int(found.begins[rows[0] + 1] - begins[0])
    result = Medians(*np.empty((3, size), np.int64))
    step = max(_TOGETHER // len(rows), 1)
    for first in range(0, size, step):
        some = slice(first, min(first + step, size))
        places = np.arange(some.start, some.stop)[:, np.newaxis] + begins
        is_done = found.runs.status[places] == STATUSES.index("completed")
        passes = is_done.sum(axis=1)
        ran_ns = found.runs.thread_time_ns[places]
        is_known = (passes > 0) & ~(is_done & (ran_ns < 0)).any(axis=1)
        result.passes[some] = passes
        result.took_ns[some] = _middles(found.runs.took_ns[places], is_done, passes)
        ran = _middles(ran_ns, is_done, passes)
        result.thread_time_ns[some] = np.where(is_known, ran, -1)
    return result


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
        if not kept.found.omitted:
            _usual[trace] = kept
        else:
            kept = _usual_of(trace, (task, *(one for one in alike if one != task)))
    row = kept.found.row_of(task)
    if row < 0:
        return {}
    key = kept.found.keys[row]
    if key not in kept.medians:
        kept.medians[key] = medians(kept.found, kept.rows[key])
    columns = (column.tolist() for column in kept.medians[key])
    nodes = kept.found.of(task).node.tolist()
    return dict(zip(nodes, map(Usual, *columns), strict=True))


class _UsualOfMany(NamedTuple):
    """Usual times of the nodes of some passes.

    Attributes:
        asked: The passes.
        found: Their shapes.
        rows: The rows of each shape in it.
        medians: The usual times of each shape that somebody asked for.
    """

    asked: tuple[int, ...]
    found: PassShapes
    rows: Mapping[bytes, list[int]]
    medians: dict[bytes, Medians]


#: Of traces that somebody holds what was found last.
_usual: Final[weakref.WeakKeyDictionary[Trace, _UsualOfMany]] = (
    weakref.WeakKeyDictionary()
)


def _usual_of(trace: Trace, tasks: tuple[int, ...]) -> _UsualOfMany:
    found = shapes(trace, tasks)
    rows: dict[bytes, list[int]] = defaultdict(list)
    for row, key in enumerate(found.keys):
        rows[key].append(row)
    return _UsualOfMany(tasks, found, rows, {})


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
    trace: Trace,
    nodes: Column,
    which: Column,
    handed: _Handed,
    begins: Column,
    num_passes: int,
) -> tuple[bytes, ...]:
    """Return a key of each pass's shape; its nodes are in the order of their places.

    So many passes come before them: a pass of which definitions are lost is like none.
    """
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
            ),
            num_passes,
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


def _middles(numbers: Narrow, is_meant: npt.NDArray[np.bool_], many: Column) -> Column:
    """The median of those meant in each row, of which there are so many; else 0."""
    ordered = np.where(is_meant, numbers.astype(np.int64), np.iinfo(np.int64).max)
    ordered.sort(axis=1)
    low, high = (
        np.take_along_axis(ordered, half[:, np.newaxis], axis=1)[:, 0]
        for half in (np.maximum(many - 1, 0) // 2, many // 2)
    )
    return np.where(many > 0, (low + high) // 2, 0)
