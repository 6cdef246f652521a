"""Holdings: memory held for backward passes, from one event to another.

Note [What a trace knows of memory]
~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~
Sizes are reported where something is kept; that it was let go is an event only in part.

* *Buffers*, the gradients that a node was given: from `gradient_buffered` (of a root:
  from its push) until `buffer_freed`, or until the node failed or was skipped. Of
  several that come to one input there is the sum, so each takes the place of the last.
* *Saved* tensors: from `tensor_saved` until the node let go of its gradients in a pass
  that does not keep the graph, for the engine releases both together. A derivation,
  and an exact one.
* *Gradients* of leaves: from the first `gradient_accumulated` that put a new one there.
  That the program has cleared ``.grad`` is no event. It is seen when a new one comes,
  and taken to have happened before the pass in which it did. What a pass adds to
  without having made it was there when the pass began. Of PyTorch's leaves it is known
  whether there was one. If there was none nobody saw whether the new one was copied:
  then it is `How.UNKNOWN`. Pass means here the one that was not called from inside
  another: programs clear ``.grad`` between steps.
* *Results* that were captured: until their pass ends. Then they are the caller's.

What a program lets go of by dropping its last reference is not in a trace. So saved
tensors that no pass releases, and the ``.grad`` that no pass adds to again, count as
held until the end of the last pass that had to do with them. Afterwards they are
*unclaimed*: they may be there and may be gone.

One array counts once where the trace can tell: a gradient that was stolen for ``.grad``
or captured is no longer one of its buffer. It cannot tell that one array was saved by
two nodes, or handed to two, and a view counts with all of its elements: then there is
less than is said. What an allocator gave to arrays on devices (`allocations`) is exact,
and is another view of memory, nothing to be added.
"""

import enum
from typing import Final, NamedTuple

import numpy as np

from gradviz.analysis.tables.spans import (
    NEVER,
    Spans,
    ended_with_their_pass,
    following,
    in_order,
    last_events,
    spans,
)
from gradviz.trace.format.model import Trace
from gradviz.trace.format.table import Column, Narrow, Table
from gradviz.trace.probe import How, Push

#: Kinds of events without which the figures would be wrong.
NEEDED: Final = (
    "tensor_saved",
    "task_pushed",
    "node_started",
    "node_completed",
    "gradient_buffered",
    "gradient_accumulated",
    "buffer_freed",
    "capture_taken",
)

#: Maximum number of nodes examined of passes that did not end well.
MAX_NODES: Final = 200_000

_NODE: Final = ("task", "node")


class HoldingKind(enum.IntEnum):
    """Purpose of a holding; see Note [What a trace knows of memory]."""

    BUFFER = 0
    SAVED = 1
    GRADIENT = 2
    RESULT = 3
    UNCLAIMED = 4


class Holdings(NamedTuple):
    """Held memory, as columns.

    Attributes:
        kind: Its purpose: a `HoldingKind`.
        begin: The `seq` of the event from which on it was held.
        end: That of the event from which on it was not; `NEVER` if there is none.
        size_bytes: Its size.
        task: The pass, -1 for none.
        node: The holder; of gradients the AccumulateGrad.
    """

    kind: Narrow
    begin: Column
    end: Column
    size_bytes: Column
    task: Narrow
    node: Narrow

    def at(self, places: Column) -> "Holdings":
        """Some of them."""
        return Holdings(*(column[places] for column in self))


def holdings(trace: Trace) -> Holdings:
    """Return all holdings; see Note [What a trace knows of memory]."""
    last = dict(zip(*(column.tolist() for column in last_events(trace)), strict=True))
    parts = [
        *_buffers(trace, last),
        *_saved(trace, last),
        *_gradients(trace, last),
    ]
    every = Holdings(*map(np.concatenate, zip(*parts, strict=True)))
    return every.at(np.flatnonzero((every.size_bytes > 0) & (every.end > every.begin)))


def allocations(trace: Trace) -> Spans:
    """Return the allocations of device arrays, until the last array was gone."""
    columns = trace.columns
    return spans(columns["memory_allocated"], columns["memory_freed"], ("memory",))


def _buffers(trace: Trace, last: dict[int, int]) -> list[Holdings]:
    """Gradients that nodes were given, and those of them that became results."""
    columns = trace.columns
    rows = columns["gradient_buffered"]
    rows = rows.at(rows.narrow("how") != How.UNDEFINED)
    freed, captured = columns["buffer_freed"], columns["capture_taken"]
    accumulated = columns["gradient_accumulated"]
    lets_go = in_order(
        freed,
        captured,
        accumulated.at(accumulated.narrow("how") == How.STOLEN),
        *(columns[kind] for kind in ("node_completed", "node_failed", "node_skipped")),
    )
    end = np.minimum(
        _seq_of(lets_go, following(rows, lets_go, _NODE)),
        _seq_of(rows, following(rows, rows, (*_NODE, "input_nr"))),
    )
    pushed = columns["task_pushed"]
    roots = pushed.at(pushed.narrow("what") == Push.ROOT)
    found = []
    for kept, size_bytes, until in (
        (rows, rows["size_bytes"], end),
        (
            roots,
            _size_of(freed, following(roots, freed, _NODE)),
            _seq_of(lets_go, following(roots, lets_go, _NODE)),
        ),
    ):
        held = ended_with_their_pass(trace, Spans(kept, kept["seq"], until))
        found.append(_held(HoldingKind.BUFFER, held, size_bytes))
        is_result = np.isin(until, captured["seq"])
        task = kept["task"][is_result]
        results = Spans(kept.at(is_result), until[is_result], _ends_of(task, last))
        found.append(_held(HoldingKind.RESULT, results, size_bytes[is_result]))
    return found


def _saved(trace: Trace, last: dict[int, int]) -> list[Holdings]:
    """Saved tensors, and those of which nothing is heard any more."""
    columns = trace.columns
    rows, freed = columns["tensor_saved"], columns["buffer_freed"]
    begun = columns["task_begun"]
    keeps = begun["task"][begun["keep_graph"] != 0]
    releases = freed.at(~np.isin(freed.narrow("task"), keeps))
    end = _seq_of(releases, following(rows, releases, ("node",)))
    left = np.flatnonzero(end == NEVER)
    nodes = rows["node"][left]
    heard = _last_heard_of(trace, nodes, last)
    return _with_unclaimed(
        HoldingKind.SAVED, rows, rows["size_bytes"], end, left, heard
    )


def _gradients(trace: Trace, last: dict[int, int]) -> list[Holdings]:
    """The ``.grad`` of leaves."""
    columns = trace.columns
    rows = columns["gradient_accumulated"]
    rows = rows.at(rows.narrow("how") != How.UNDEFINED)
    leaf = _leaves_of(trace, rows["node"], rows["thread"])
    order = np.lexsort((rows["seq"], leaf))
    rows, leaf = rows.at(order), leaf[order]
    size = rows.num_rows
    seq, how = rows["seq"], rows["how"]
    begun = columns["task_begun"]
    began = dict(zip(begun["task"].tolist(), begun["seq"].tolist(), strict=True))
    outermost = _outermost(begun)
    task = rows["task"].tolist()
    pass_began = np.array(
        [began.get(outermost.get(one, one), 0) for one in task], np.int64
    )
    is_first = np.ones(size, np.bool_)
    np.not_equal(leaf[1:], leaf[:-1], out=is_first[1:])
    is_new = np.isin(how, (How.COPIED, How.STOLEN, How.UNKNOWN))
    begin = np.where(is_new, seq, pass_began)
    first = np.flatnonzero(is_first | is_new)
    final = np.append(first[1:], size) - 1  # what was added to it last
    end = np.full(len(first), NEVER)
    cleared = np.flatnonzero(~is_first[first[1:]])
    after = first[cleared + 1]
    # The pass that made it may be the one that finds it cleared, inside of another.
    was_there = pass_began[after] > seq[final[cleared]]
    end[cleared] = np.where(was_there, pass_began[after], seq[after])
    freed = columns["buffer_freed"]
    held = rows.at(first)
    size_bytes = _size_of(freed, following(held, freed, _NODE))
    left = np.flatnonzero(end == NEVER)
    heard = np.array([last[task[place]] for place in final[left].tolist()], np.int64)
    made = Table({**{name: held.narrow(name) for name in held}, "seq": begin[first]})
    return _with_unclaimed(HoldingKind.GRADIENT, made, size_bytes, end, left, heard)


def _leaves_of(trace: Trace, nodes: Column, threads: Column) -> Column:
    """Number the leaf of each AccumulateGrad.

    A graph that is gone takes its AccumulateGrad along, and the next one has another
    for the same parameter, whose ``.grad`` is still there. So names tell leaves apart
    where they have any, on the thread that used each first: in a merged trace workers
    have models of one name, and no thread in common.
    """
    names, place = trace.nodes.names(nodes, "parameter")
    is_named = np.array([bool(name) for name in names], np.bool_)[place]
    _, first, of_node = np.unique(nodes, return_index=True, return_inverse=True)
    both = np.column_stack((place, threads[first][of_node]))
    _, number = np.unique(both, axis=0, return_inverse=True)
    return np.where(is_named, -1 - number.reshape(-1), nodes)


def _outermost(begun: Table) -> dict[int, int]:
    """Of each pass the one that no other has called, inside of which it ran."""
    found: dict[int, int] = {}
    for task, parent in begun.rows("task", "parent"):
        found[task] = found.get(parent, task)
    return found


def _with_unclaimed(
    kind: HoldingKind,
    rows: Table,
    size_bytes: Column,
    end: Column,
    left: Column,
    heard: Column,
) -> list[Holdings]:
    """Return the holdings; one without an end (`left`) lasts until last heard of."""
    begin, until = rows["seq"], end.copy()
    until[left] = np.maximum(heard + 1, begin[left])
    unclaimed = Spans(rows.at(left), until[left], end[left])
    return [
        _held(kind, Spans(rows, begin, until), size_bytes),
        _held(HoldingKind.UNCLAIMED, unclaimed, size_bytes[left]),
    ]


def _last_heard_of(trace: Trace, nodes: Column, last: dict[int, int]) -> Column:
    """Of some nodes the last event of the last pass that ran them, or was about to.

    Of a pass that ended well every node ran. Of the others what could be reached from
    their roots is looked at, the latest pass first. -1 where there is no such pass.
    """
    some, place = np.unique(nodes, return_inverse=True)
    heard = np.full(len(some), -1)
    started = trace.columns["node_started"]
    ran = started.at(np.isin(started.narrow("node"), some))
    ended = _ends_of(ran["task"], last) - 1
    np.maximum.at(heard, np.searchsorted(some, ran["node"]), ended)
    reached = _reached(trace, last)
    is_reached = np.isin(some, list(reached))
    also = [reached[node] for node in some[is_reached].tolist()]
    heard[is_reached] = np.maximum(heard[is_reached], np.array(also, np.int64))
    return heard[place]


def _reached(trace: Trace, last: dict[int, int]) -> dict[int, int]:
    """The last event of the last pass, of those that did not end well, to each node."""
    columns = trace.columns
    pushed = columns["task_pushed"]
    is_left = ~np.isin(pushed.narrow("task"), columns["task_completed"]["task"])
    is_left &= pushed.narrow("what") == Push.ROOT
    roots = list(pushed.at(is_left).rows(*_NODE))
    reached: dict[int, int] = {}
    for task, root in sorted(roots, key=lambda one: -last[one[0]]):
        waiting = [root]
        while waiting and len(reached) < MAX_NODES:
            node = waiting.pop()
            if node in reached:
                continue
            reached[node] = last[task]
            known = trace.nodes.get(node)
            waiting += [to for to, _ in known.edges if to >= 0] if known else []
    return reached


def _held(kind: HoldingKind, some: Spans, size_bytes: Column) -> Holdings:
    rows = some.rows
    return Holdings(
        np.full(rows.num_rows, int(kind), np.int8),
        some.begin,
        some.end,
        size_bytes,
        rows.narrow("task"),
        rows.narrow("node"),
    )


def _seq_of(table: Table, places: Column) -> Column:
    return _at(table["seq"], places, NEVER)


def _size_of(table: Table, places: Column) -> Column:
    return _at(table["size_bytes"], places, 0)


def _at(column: Column, places: Column, otherwise: int) -> Column:
    """The numbers at some places; another one where the place is -1."""
    return np.append(column, otherwise)[places]


def _ends_of(task: Column, last: dict[int, int]) -> Column:
    """After the last event of each pass."""
    tasks, place = np.unique(task, return_inverse=True)
    return np.array([last[one] + 1 for one in tasks.tolist()], np.int64)[place]
