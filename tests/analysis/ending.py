"""The end of a trace and the order in its queues, event by event.

The fixture of `tests.conftest` compares every trace that a test records with it.
"""

import bisect
import heapq
from collections import Counter, defaultdict, deque
from collections.abc import Callable, Iterator
from typing import NamedTuple

from gradviz.analysis.moments.engine_state import History
from gradviz.trace.format.model import Trace
from gradviz.trace.probe import Push


def contradictions(trace: Trace, *, order: bool = True) -> Iterator[str]:
    """Yield where the last moment of a whole trace contradicts its events.

    Args:
        trace: With no losses.
        order: Whether its engine ran what PyTorch's would; see `out_of_order`.
    """
    if trace.num_events == 0:
        return
    history = History(trace)
    state = history.at(trace.num_events - 1)
    counted = _counted(trace)
    looked_up = {
        "queues": Counter(
            (queue, one.task, one.node)
            for queue, tasks in state.queues.items()
            for one in tasks
        ),
        "running": Counter(
            (worker.thread, one.task, one.node)
            for worker in state.workers
            for one in worker.running
        ),
        "waiting": Counter((one.task, one.node) for one in state.countdowns),
    }
    for what, there in looked_up.items():
        if there != counted[what]:
            yield f"in the end {what} are {there}, by the events {counted[what]}"
    if order:
        yield from out_of_order(trace)


def _counted(trace: Trace) -> dict[str, Counter[tuple[int, ...]]]:
    """Count things begun and not ended, except those left by passes that are over."""
    columns = trace.columns
    over = {
        task
        for kind in ("task_completed", "task_failed")
        for task in columns[kind]["task"].tolist()
    }

    def count(kind: str, *names: str) -> Counter[tuple[int, ...]]:
        return Counter(
            row[1:] for row in columns[kind].rows("task", *names) if row[0] not in over
        )

    node, task = ("thread", "task", "node"), ("queue", "task", "node")
    ended = count("node_completed", *node) + count("node_failed", *node)
    been = {*count("node_started", "task", "node"), *count("node_skipped", *node[1:])}
    waiting = count("gradient_buffered", "task", "node")
    return {
        "queues": count("task_pushed", *task) - count("task_popped", *task),
        "running": count("node_started", *node) - ended,
        "waiting": Counter(one for one in waiting if one not in been),
    }


class Queued(NamedTuple):
    """A task in a queue; the one that goes first is the smallest."""

    rank: tuple[int, int, int]
    pushed: int
    known_from: int
    task: int
    node: int


def out_of_order(trace: Trace) -> Iterator[str]:
    """Tasks that were popped while one that goes first certainly lay in their queue.

    Certainly there is what its consumer has pushed itself, and what another thread
    pushed that had gone on to something else before the consumer came to pop. Q2-Q4.
    """
    columns = trace.columns
    failed = set(columns["task_failed"]["task"].tolist())
    neighbor = _neighbors(trace)
    pushes = columns["task_pushed"].rows(
        *("seq", "queue", "task", "node", "thread"),
        *("what", "reentrant_depth", "sequence_nr"),
    )
    pops = columns["task_popped"].rows("seq", "queue", "task", "node", "thread")
    unseen, seen = defaultdict(list), defaultdict(list)
    there, gone = defaultdict(deque), set()
    for seq, queue, task, node, thread, *what in sorted([*pushes, *pops]):
        if what:
            kind, depth, sequence_nr = what
            rank = 0, -depth, -(sequence_nr % 2**64)
            if kind == Push.WAKE_UP:  # of which none goes first
                rank = -1, 0, 0
            one = Queued(rank, seq, neighbor(thread, seq, 1), task, node)
            there[queue, task, node].append(one)
            if task not in failed:  # of which a queue may be cleared without a word
                unseen[queue].append((thread, one))
            continue
        since = neighbor(thread, seq, -1)
        for by, one in unseen[queue]:
            if by == thread or one.known_from < since:
                heapq.heappush(seen[queue], one)
        unseen[queue] = [
            (by, one)
            for by, one in unseen[queue]
            if by != thread and one.known_from >= since
        ]
        popped = there[queue, task, node].popleft()
        gone.add(popped.pushed)
        while seen[queue] and seen[queue][0].pushed in gone:
            heapq.heappop(seen[queue])
        if seen[queue] and seen[queue][0].rank < popped.rank:
            yield f"event {seq} takes {popped} while {seen[queue][0]} lies there"


def _neighbors(trace: Trace) -> Callable[[int, int, int], int]:
    """Of a thread the event before or after another one of its own."""
    seqs = defaultdict(list)
    for table in trace.columns.values():
        for thread, seq in table.rows("thread", "seq"):
            seqs[thread].append(seq)
    for one in seqs.values():
        one.sort()

    def neighbor(thread: int, seq: int, step: int) -> int:
        own = seqs[thread]
        place = bisect.bisect_left(own, seq) + step
        return own[place] if 0 <= place < len(own) else step * 2**62

    return neighbor
