"""Passes by the book: those of which columns say that every node went its usual way.

The state machine of `lifecycle` takes some microseconds an event, which for a trace of
millions is half a minute. Almost all of them belong to passes in which each node was
pushed, popped, started and completed, once and in this order, and got its gradients
before and its other events in between; and whose starts and ends match like parentheses
on every thread. A few operations on columns find these passes, and the machine needs to
see the nodes of the others alone.

What is by the book here breaks no rule there; the reverse need not be.
"""

from collections.abc import Mapping
from typing import Final, NamedTuple

import numpy as np

from gradviz.trace.events import kind_name
from gradviz.trace.format.table import Column, Narrow, Table, different
from gradviz.trace.probe import Push
from gradviz.trace.rules import RULES, NodeState, Transition

#: Of a node by the book there is one of each, in this order.
STAGES: Final = ("task_pushed", "task_popped", "node_started", "node_completed")

#: Happens between the start of a node and its end.
DURING: Final = tuple(
    kind_name(kind)
    for kind, rule in RULES.items()
    if rule.node == Transition(frozenset({NodeState.RUNNING}))
)

#: Happens to a node before it is pushed.
BEFORE: Final = "gradient_buffered"

#: No pass with one of these is by the book.
ELSE: Final = (
    "task_failed",
    *(
        name
        for name in (kind_name(kind) for kind, rule in RULES.items() if rule.node)
        if name not in (*STAGES, *DURING, BEFORE)
    ),
)

#: Events that open something on a thread.
_OPENING: Final = tuple(kind for kind, rule in RULES.items() if rule.opens)

#: Events that begin something on a thread, and that end it: the step inwards, and of
#: what (a number that leaves room for the role of a thread).
_BRACKETS: Final[Mapping[str, tuple[int, int]]] = {
    kind_name(kind): (1 if rule.opens else -1, 8 * _OPENING.index(rule.ends or kind))
    for kind, rule in RULES.items()
    if rule.opens or rule.ends
}

#: Pairs of columns become one number, if they fit.
_MAX_KEY: Final = 2**62


class _Rows(NamedTuple):
    """Rows of one kind that belong to nodes of candidates.

    Attributes:
        task: Index of the candidate.
        key: The task and the node as one number.
        seq: Place in the trace.
        row: Place in the table.
    """

    task: Column
    key: Column
    seq: Column
    row: Column


def by_the_book(columns: Mapping[str, Table]) -> Column:
    """The passes of a trace in which every node went its usual way, sorted."""
    return _Book(columns).passes()


class _Book:
    """The candidates, and of each whether it still is one."""

    def __init__(self, columns: Mapping[str, Table]) -> None:
        self._columns = columns
        once = [
            _once(columns[kind].narrow("task"))
            for kind in ("task_begun", "dependencies_counted", "task_completed")
        ]
        self._tasks = np.intersect1d(np.intersect1d(once[0], once[1]), once[2]).astype(
            np.int64
        )
        self._is_fine = np.ones(len(self._tasks), np.bool_)
        self._nodes = (0, 1)

    def passes(self) -> Column:
        if not len(self._tasks):
            return self._tasks
        nodes = self._columns["node_started"].narrow("node")
        if len(nodes):
            least, largest = int(nodes.min()), int(nodes.max())
            self._nodes = (least, largest - least + 1)
        if len(self._tasks) * self._nodes[1] > _MAX_KEY:
            return self._tasks[:0]
        counted, completed = self._passes_in_time()
        for kind in ELSE:
            self._drop(self._candidates(self._columns[kind])[1])
        self._nesting()
        stages = self._stages()
        push, pop, start, end = map(self._kept, stages)
        for one, other in ((push, pop), (pop, start), (start, end)):
            self._drop(one.task[one.seq >= other.seq])
        self._drop(push.task[push.seq <= counted[push.task]])
        self._drop(end.task[end.seq >= completed[end.task]])
        entered = self._columns["task_pushed"].narrow("queue")[push.row]
        left = self._columns["task_popped"].narrow("queue")[pop.row]
        self._drop(push.task[entered != left])
        for kind in DURING:
            self._during(self._rows(kind), start, end)
        self._gradients(push, counted)
        return self._tasks[self._is_fine]

    def _passes_in_time(self) -> tuple[Column, Column]:
        """Return when each candidate counted its dependencies, and when it ended."""
        begun, counted, completed = (
            self._of_candidates(self._columns[kind])
            for kind in ("task_begun", "dependencies_counted", "task_completed")
        )
        self._is_fine &= (begun < counted) & (counted < completed)
        # The caller has left before it is complete: the machine shall judge.
        place, task = self._candidates(self._columns["reentrant_left"])
        seq = self._columns["reentrant_left"]["seq"][place]
        self._drop(task[seq <= completed[task]])
        exits = self._columns["thread_exited"]
        keys = np.sort((exits["thread"] << 32) + exits["seq"])
        thread = self._of_candidates(self._columns["task_begun"], "thread") << 32
        first, last = (
            np.searchsorted(keys, thread + moment) for moment in (begun, completed)
        )
        self._is_fine &= first == last
        return counted, completed

    def _of_candidates(self, table: Table, name: str = "seq") -> Column:
        """A number of each candidate, from a table that has a row for each."""
        place, task = self._candidates(table)
        found = np.zeros(len(self._tasks), np.int64)
        found[task] = table[name][place]
        return found

    def _candidates(self, table: Table) -> tuple[Column, Column]:
        """Return the rows of a table that belong to candidates, and which."""
        tasks = table.narrow("task")
        task = np.searchsorted(self._tasks, tasks)
        task[task == len(self._tasks)] = 0
        (place,) = np.nonzero(self._tasks[task] == tasks)
        return place, task[place]

    def _rows(self, kind: str) -> _Rows:
        """The rows of a kind that belong to nodes of candidates."""
        table = self._columns[kind]
        place, task = self._candidates(table)
        node = table.narrow("node")[place].astype(np.int64)
        is_one = node >= 0
        place, task, node = place[is_one], task[is_one], node[is_one]
        least, span = self._nodes
        strange = (node < least) | (node >= least + span)  # never started
        self._drop(task[strange])
        place, task, node = place[~strange], task[~strange], node[~strange]
        return _Rows(
            task, task * span + (node - least), table.narrow("seq")[place], place
        )

    def _stages(self) -> list[_Rows]:
        """The four stages, by node; passes where one is missing or doubled go."""
        stages = []
        for kind in STAGES:
            rows = self._rows(kind)
            order = np.argsort(rows.key, kind="stable")
            rows = _Rows(*(one[order] for one in rows))
            self._drop(rows.task[1:][rows.key[1:] == rows.key[:-1]])
            stages.append(rows)
        _, span = self._nodes
        for rows in stages[1:]:
            if not np.array_equal(rows.key, stages[0].key):
                self._drop(np.setxor1d(rows.key, stages[0].key) // span)
        return stages

    def _during(self, rows: _Rows, start: _Rows, end: _Rows) -> None:
        rows, place = self._found(rows, start)
        is_inside = (start.seq[place] < rows.seq) & (rows.seq < end.seq[place])
        self._drop(rows.task[~is_inside])

    def _gradients(self, push: _Rows, counted: Column) -> None:
        """All gradients of a node come before it is pushed, the last one last."""
        table = self._columns[BEFORE]
        rows, place = self._found(self._rows(BEFORE), push)
        is_before = (counted[rows.task] < rows.seq) & (rows.seq < push.seq[place])
        self._drop(rows.task[~is_before])
        awaited = np.full(len(push.key), -1)
        # Rows are in the order of the trace: of several the last one stays.
        awaited[place] = table.narrow("remaining")[rows.row]
        what = self._columns["task_pushed"].narrow("what")[push.row]
        self._drop(push.task[(what == Push.NODE) & (awaited != 0)])

    def _nesting(self) -> None:
        """Starts and ends match on each thread, or its passes go."""
        wrong = _mismatched_threads(self._columns)
        if len(wrong):
            started = self._columns["node_started"]
            place, task = self._candidates(started)
            self._drop(task[np.isin(started.narrow("thread")[place], wrong)])

    def _found(self, rows: _Rows, of: _Rows) -> tuple[_Rows, Column]:
        """Return the rows whose nodes are among others; drop the passes of the rest."""
        if not len(of.key):
            return _Rows(*(one[:0] for one in rows)), np.empty(0, np.int64)
        place = np.searchsorted(of.key, rows.key)
        place[place == len(of.key)] = 0
        is_there = of.key[place] == rows.key
        self._drop(rows.task[~is_there])
        return _Rows(*(one[is_there] for one in rows)), place[is_there]

    def _kept(self, rows: _Rows) -> _Rows:
        """The rows of those that still are candidates."""
        kept = self._is_fine[rows.task]
        return rows if kept.all() else _Rows(*(one[kept] for one in rows))

    def _drop(self, tasks: Column) -> None:
        self._is_fine[tasks] = False


def _once(tasks: Narrow) -> Column:
    """The tasks that occur once."""
    known, times = np.unique(tasks, return_counts=True)
    once: Column = known[times == 1].astype(np.int64)
    return once


def _brackets(table: Table, step: int, what: int) -> tuple[Narrow, ...]:
    """Return thread, seq, step, and the key that pairs a start with its end."""
    role = table.narrow("role") if "role" in table else 0
    return (
        table.narrow("thread"),
        table.narrow("seq"),
        np.full(table.num_rows, step, np.int8),
        np.full(table.num_rows, what, np.int16) + role,
        table.narrow("task"),
        table.narrow("call" if "call" in table else "node"),
    )


def _mismatched_threads(columns: Mapping[str, Table]) -> Column:
    """The threads on which something ends that was not the last to begin."""
    parts = [
        _brackets(columns[kind], *which)
        for kind, which in _BRACKETS.items()
        if columns[kind].num_rows
    ]
    if not parts:
        return np.empty(0, np.int64)
    thread, seq, step, what, task, node = (
        np.concatenate(one) for one in zip(*parts, strict=True)
    )
    order = np.lexsort((seq, thread))
    thread, step = thread[order], step[order]
    depth = np.cumsum(step)
    is_first = np.append(True, thread[1:] != thread[:-1])
    # Of the thread alone: without what the threads before it left open.
    before = (depth - step)[is_first]
    depth -= before[np.cumsum(is_first) - 1]
    level = np.where(step > 0, depth, depth + 1)
    wrong = [thread[level < 1]]
    # On one level of one thread a beginning and its end follow each other.
    places = np.lexsort((np.arange(len(level)), level, thread))
    thread, step, level = thread[places], step[places], level[places]
    ends = np.nonzero(step < 0)[0]
    begins = np.maximum(ends - 1, 0)
    is_pair = (
        (step[begins] > 0)
        & (thread[begins] == thread[ends])
        & (level[begins] == level[ends])
    )
    places = order[places]
    for one in (what, task, node):
        is_pair &= one[places[begins]] == one[places[ends]]
    wrong.append(thread[ends[~is_pair]])
    return different(np.concatenate(wrong))
