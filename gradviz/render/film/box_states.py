"""The state of each box of a film at each of its frames."""

from collections.abc import Sequence
from typing import Final, NamedTuple, TypeAlias

import numpy as np
import numpy.typing as npt

from gradviz.analysis.moments.node_stages import (
    OVER,
    STAGES,
    NodeStage,
    StageChanges,
    passes_over,
    stage_changes,
)
from gradviz.analysis.tables.spans import NEVER
from gradviz.render.film.filmed_graph import FilmedBox, FilmedGraph
from gradviz.trace.format.model import Trace
from gradviz.trace.format.table import Column

#: The stages that say most of a box of several nodes, the first that one of them has.
_FIRST_SEEN: Final[tuple[NodeStage, ...]] = (
    "failed",
    "running",
    "popped",
    "queued",
    "waiting",
    "left over",
    "skipped",
)

_Counts: TypeAlias = npt.NDArray[np.int64]


class BoxState(NamedTuple):
    """The state of a box at some moment.

    Attributes:
        stage: That of its node; of several, of the one that is furthest in its way
            through the engine, and ``completed`` once all are over. Until then, if
            nothing else is to be said, ``waiting`` once one is over.
        num_over: Number of its nodes that are over.
        num_nodes: Number of its nodes.
        has: Number of gradients that it has, if it is a single node that waits for
            more, else 0.
        remaining: Number of further gradients that it waits for.
    """

    stage: NodeStage
    num_over: int
    num_nodes: int
    has: int = 0
    remaining: int = 0


def box_states(
    trace: Trace, filmed: FilmedGraph, seqs: Sequence[int]
) -> list[list[BoxState]]:
    """Find what has become of each box right after some events.

    Args:
        trace: The trace.
        filmed: The boxes.
        seqs: The events, in their order.

    Returns:
        For each box its states.
    """
    frames = np.array(seqs, np.int64)
    over = passes_over(trace)
    states: list[list[BoxState]] = [[] for _ in filmed.boxes]
    for group, tasks in enumerate(filmed.groups):
        own = [at for at, box in enumerate(filmed.boxes) if box.group == group]
        changes = stage_changes(trace, tasks)
        ends = np.array([over.get(task, NEVER) for task in tasks], np.int64)
        every = _with_left_over(changes, np.array(tasks, np.int64), ends)
        boxes = [filmed.boxes[at] for at in own]
        for at, found in zip(own, _of_boxes(boxes, every, frames), strict=True):
            states[at] = found
    return states


def _with_left_over(changes: StageChanges, tasks: Column, ends: Column) -> StageChanges:
    """The changes, and those of nodes that are not over when their pass is."""
    if not len(changes.node):
        return changes
    is_last = np.append(changes.node[1:] != changes.node[:-1], True)
    is_over = np.isin(changes.stage, [STAGES.index(one) for one in OVER])
    end = ends[np.searchsorted(tasks, changes.task)]
    left = np.flatnonzero(is_last & ~is_over & (end < NEVER))
    more = changes.at(left)._replace(
        seq=end[left], stage=np.full(len(left), STAGES.index("left over"))
    )
    joined = StageChanges(*map(np.concatenate, zip(changes, more, strict=True)))
    return joined.at(np.lexsort((joined.seq, joined.node)))


def _of_boxes(
    boxes: Sequence[FilmedBox], changes: StageChanges, frames: Column
) -> list[list[BoxState]]:
    counts = _counts(boxes, changes, frames)
    found = []
    for at, box in enumerate(boxes):
        own = [_state(row, len(box.nodes)) for row in counts[at].tolist()]
        if len(box.nodes) == 1 and not box.is_chip:
            own = _with_gradients(own, changes, box.nodes[0], frames)
        found.append(own)
    return found


def _counts(
    boxes: Sequence[FilmedBox], changes: StageChanges, frames: Column
) -> _Counts:
    """Count the nodes of each box at each stage, frame by frame."""
    sizes = [len(box.nodes) for box in boxes]
    delta = np.zeros((len(boxes), len(frames) + 1, len(STAGES)), np.int64)
    delta[:, 0, STAGES.index("not reached")] = sizes
    before = np.zeros(len(changes.node), np.int64)
    is_next = changes.node[1:] == changes.node[:-1]
    before[1:][is_next] = changes.stage[:-1][is_next]
    # Each change counts for each box that its node is in.
    member = np.array([node for box in boxes for node in box.nodes], np.int64)
    order = np.argsort(member, kind="stable")
    member, home = member[order], np.repeat(np.arange(len(boxes)), sizes)[order]
    first = np.searchsorted(member, changes.node, "left")
    num = np.searchsorted(member, changes.node, "right") - first
    which = np.repeat(np.arange(len(num)), num)
    nth = np.arange(len(which)) - np.repeat(np.cumsum(num) - num, num)
    box = home[first[which] + nth]
    frame = np.searchsorted(frames, changes.seq[which], "left")
    np.add.at(delta, (box, frame, changes.stage[which]), 1)
    np.subtract.at(delta, (box, frame, before[which]), 1)
    counts: _Counts = np.cumsum(delta, axis=1)[:, :-1]
    return counts


def _state(counts: Sequence[int], num_nodes: int) -> BoxState:
    by_stage = dict(zip(STAGES, counts, strict=True))
    reached = num_nodes - by_stage["not reached"]
    num_over = sum(by_stage[one] for one in OVER if one != "not reached")
    stage: NodeStage = "not reached"
    if found := [one for one in _FIRST_SEEN if by_stage[one]]:
        stage = found[0]
    elif num_nodes and num_over == num_nodes:
        stage = "captured" if by_stage["captured"] == num_nodes else "completed"
    elif reached:
        stage = "waiting"
    return BoxState(stage, num_over, num_nodes)


def _with_gradients(
    states: Sequence[BoxState], changes: StageChanges, node: int, frames: Column
) -> list[BoxState]:
    """The states of a single node, with how many gradients it has while it waits."""
    begin, end = np.searchsorted(changes.node, (node, node + 1))
    mine = changes.at(slice(int(begin), int(end)))
    given = np.flatnonzero(mine.stage == STAGES.index("waiting"))
    until = np.searchsorted(mine.seq[given], frames, "right").tolist()
    remaining = mine.remaining[given].tolist()
    return [
        state._replace(has=num, remaining=remaining[num - 1])
        if state.stage == "waiting" and num
        else state
        for state, num in zip(states, until, strict=True)
    ]
