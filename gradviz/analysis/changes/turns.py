"""Turns: in which order queues let nodes go, and which of it they chose.

Note [What timing alone explains]
~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~
Two runs of one program differ in when gradients come from another thread, and so in
what lies in a queue when its thread takes the next node. Nodes of different queues have
no order at all. Of two nodes of one queue, the one that left it first was *chosen* only
if the other one lay there too. So their order has changed if both runs had that choice
and chose differently. If the other node was not there yet in one of the runs, that run
did not choose, and its order says nothing.

What the thread that takes nodes has pushed itself lies in the queue at its next pop.
What another thread pushes may come while a pop is under way. It surely lay there if
that thread had gone on to something else, and after that the one that takes nodes had
done something before its pop.

Nodes of equal priority leave a queue as its heap has them, which depends on all that
lay there with them. Where other threads push, too, that is a matter of timing as well.
"""

from collections import defaultdict
from collections.abc import Mapping, Sequence
from typing import NamedTuple

import numpy as np

from gradviz.analysis.changes.matching import longest_common_order
from gradviz.analysis.tables.queue_waits import queue_waits
from gradviz.analysis.tables.spans import NEVER
from gradviz.trace.format.model import Trace
from gradviz.trace.format.table import Column, Table, different


class Turns(NamedTuple):
    """Times that the nodes of a pass waited in their queues, as columns.

    Attributes:
        queue: Queue to which each was pushed; -1 if it never left a queue.
        ready: The `seq` of the event after which it surely lay there.
        popped: The `seq` of its pop.
        depth: Nesting depth of its pass.
        sequence_nr: Sequence number of its creation; with the depth its priority.
        is_shared: 1 if other threads than the one that takes them push to its queue.
    """

    queue: Column
    ready: Column
    popped: Column
    depth: Column
    sequence_nr: Column
    is_shared: Column

    def at(self, places: Column) -> "Turns":
        """Some of them."""
        return Turns(*(column[places] for column in self))


def turns_of(trace: Trace, tasks: Sequence[int], nodes: Sequence[int]) -> Turns | None:
    """The turns of the nodes of a pass; None if the trace has no pushes or no pops.

    Args:
        trace: The trace.
        tasks: The parts of the pass.
        nodes: The nodes, in the order of their ids.
    """
    waits = queue_waits(trace).of_passes(tasks)
    waits = waits.at(np.flatnonzero(np.isin(waits.pushes["node"], nodes)))
    if not len(waits.pushed) or not trace.columns["task_popped"].num_rows:
        return None
    waits = waits.at(np.flatnonzero(waits.popped != NEVER))
    pushed, popped_by = waits.pushes, waits.popped_by
    is_foreign = pushed["thread"] != popped_by
    queue = pushed["queue"]
    columns = (
        queue,
        np.where(is_foreign, _seen(trace, pushed, popped_by), waits.pushed),
        waits.popped,
        pushed["reentrant_depth"],
        pushed["sequence_nr"],
        np.isin(queue, queue[is_foreign]),
    )
    found = np.full((len(columns), len(nodes)), -1)
    found[:, np.searchsorted(nodes, pushed["node"])] = np.stack(columns)
    return Turns(*found)


def moved(one: Turns, other: Turns) -> list[int]:
    """Return the places of nodes whose turn another choice has changed.

    Of a queue that chose differently somewhere, those that are not in the longest order
    that both runs have in common; see Note [What timing alone explains].

    Args:
        one: Nodes.
        other: Their partners, one by one.
    """
    by_queues: Mapping[tuple[int, int], list[int]] = defaultdict(list)
    for place, queues in enumerate(
        zip(one.queue.tolist(), other.queue.tolist(), strict=True)
    ):
        if min(queues) >= 0:
            by_queues[queues].append(place)
    found = []
    for some in by_queues.values():
        places = np.array(some)[np.argsort(one.popped[some])]
        mine, theirs = one.at(places), other.at(places)
        kept = longest_common_order(theirs.popped.tolist())
        changed = [number for number in range(len(places)) if number not in kept]
        if any(_chose_differently(mine, theirs, number) for number in changed):
            found += places[changed].tolist()
    return found


def _chose_differently(one: Turns, other: Turns, number: int) -> bool:
    """Tell if a node and another one of its queue were chosen the other way round."""
    here, there = (_chosen_before(turns, number) for turns in (one, other))
    mine, theirs = (_chosen_after(turns, number) for turns in (one, other))
    is_known = ~(_is_chance(one, number) | _is_chance(other, number))
    return bool(((here & theirs | mine & there) & is_known).any())


def _chosen_before(turns: Turns, number: int) -> Column:
    """Nodes that waited in the queue when this one left it."""
    popped = turns.popped[number]
    found: Column = (turns.ready < popped) & (popped < turns.popped)
    return found


def _chosen_after(turns: Turns, number: int) -> Column:
    """Nodes that left the queue while this one waited there."""
    found: Column = (turns.ready[number] < turns.popped) & (
        turns.popped < turns.popped[number]
    )
    return found


def _is_chance(turns: Turns, number: int) -> Column:
    """Return which nodes the heap chose by the arrival order of other threads."""
    found: Column = (
        (turns.is_shared[number] != 0)
        & (turns.depth == turns.depth[number])
        & (turns.sequence_nr == turns.sequence_nr[number])
    )
    return found


def _seen(trace: Trace, pushed: Table, takers: Column) -> Column:
    """The `seq` of the first thing that who takes each did when it surely lay there.

    A push is reported before it is done, so it is when its thread has gone on to
    something else.
    """
    tables = [one for one in trace.columns.values() if one.num_rows]
    threads = np.concatenate([one.narrow("thread") for one in tables])
    seqs = np.concatenate([one["seq"] for one in tables])
    found = pushed["seq"].copy()
    for actors in (pushed["thread"], takers):
        for thread in different(actors).tolist():
            mine = actors == thread
            did = np.append(np.sort(seqs[threads == thread]), NEVER)
            at = np.searchsorted(did[:-1], found[mine], side="right")
            found[mine] = did[at]
    return found
