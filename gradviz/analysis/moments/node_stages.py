"""The stage that a node has reached at a moment, and the nodes around it."""

from collections.abc import Sequence
from typing import Final, Literal, NamedTuple, TypeAlias, get_args

import msgspec
import numpy as np
import numpy.typing as npt

from gradviz.analysis.nodes.addresses import nodes_of
from gradviz.analysis.tables.executions import definition
from gradviz.analysis.tables.spans import NEVER, last_events
from gradviz.trace.format.model import Trace
from gradviz.trace.format.table import Column, Narrow, different

#: `left over` is what was given something and did not run before its pass was over.
NodeStage: TypeAlias = Literal[
    "not reached",
    "waiting",
    "queued",
    "popped",
    "running",
    "completed",
    "captured",
    "failed",
    "skipped",
    "left over",
]

#: All stages, each known by its place in here, in columns and on the page.
STAGES: Final[tuple[NodeStage, ...]] = get_args(NodeStage)

#: Maximum number of neighbors told on each side; all are counted.
MAX_NEIGHBORS: Final = 64

#: Kinds of events that change what has become of a node, and what it is then.
_STAGES: Final[dict[str, NodeStage]] = {
    "gradient_buffered": "waiting",
    "task_pushed": "queued",
    "task_popped": "popped",
    "capture_taken": "captured",
    "node_started": "running",
    "buffer_freed": "running",
    "node_completed": "completed",
    "node_failed": "failed",
    "node_skipped": "skipped",
}
_KINDS: Final = tuple(_STAGES)

#: Of a node in them nothing more comes.
OVER: Final[frozenset[NodeStage]] = frozenset(
    {"not reached", "completed", "captured", "failed", "skipped"}
)


class StageChanges(NamedTuple):
    """The changes of stage of all nodes, sorted by node, then pass, then event.

    Attributes:
        task: The pass.
        node: The node.
        seq: The event.
        t_ns: Time of the event, on the trace's clock.
        thread: Thread on which it happened.
        stage: Stage of the node from then on: a place in `STAGES`.
        remaining: Number of gradients that it waits for from then on.
    """

    task: Column
    node: Column
    seq: Column
    t_ns: Column
    thread: Column
    stage: Column
    remaining: Column

    def at(self, places: "Column | slice") -> "StageChanges":
        """Some of them."""
        return StageChanges(*(column[places] for column in self))


class NodeAt(msgspec.Struct, frozen=True, kw_only=True):
    """A node at a moment.

    Attributes:
        task: The pass.
        node: The node.
        stage: Stage that it has reached.
        since_ns: Time at which it got there, on the trace's clock; None before its
            first event.
        thread: Thread on which that happened, -1 before its first event.
        remaining: Number of gradients that it waits for; 0 if for none, or if it has
            none.
    """

    task: int
    node: int
    stage: NodeStage
    since_ns: int | None
    thread: int
    remaining: int


class Neighborhood(msgspec.Struct, frozen=True, kw_only=True):
    """A node of a pass, from which it gets gradients, and to which it gives some.

    Attributes:
        node: The node.
        givers: Nodes of the pass with an edge to it, the first of `num_givers`.
        receivers: Nodes that it has an edge to, the first of `num_receivers`.
    """

    node: NodeAt
    givers: tuple[NodeAt, ...]
    receivers: tuple[NodeAt, ...]
    num_givers: int
    num_receivers: int


def stage_changes(trace: Trace, tasks: Sequence[int] | None = None) -> StageChanges:
    """Find each change of stage of each node in each pass.

    Args:
        trace: The trace.
        tasks: The passes wanted, None for all.
    """
    tables = [trace.columns[kind] for kind in _KINDS]
    if tasks is not None:
        wanted = np.array(tasks, np.int64)
        tables = [one.at(np.isin(one.narrow("task"), wanted)) for one in tables]
    sizes = [one.num_rows for one in tables]

    def joined(name: str) -> Narrow:
        return np.concatenate([one.narrow(name) for one in tables])

    def ordered(name: str) -> Column:
        return joined(name)[order].astype(np.int64)

    order = np.lexsort((joined("seq"), joined("task"), joined("node")))
    order = order[joined("node")[order] >= 0]  # a wake-up has no node
    kind = np.repeat(np.arange(len(_KINDS), dtype=np.int8), sizes)[order]
    task, node = joined("task")[order], joined("node")[order]
    stage = np.array([STAGES.index(one) for one in _STAGES.values()])[kind]
    first = np.ones(len(order), np.bool_)
    first[1:] = (task[1:] != task[:-1]) | (node[1:] != node[:-1])
    captured, completed, running = map(
        STAGES.index, ("captured", "completed", "running")
    )
    # A node that ran has freed its gradients.
    was_freed = _seen_before(kind == _KINDS.index("buffer_freed"), first)
    was_captured = _seen_before(stage == captured, first)
    has_run = _seen_before(stage == running, first)
    goes_on = np.isin(stage, (captured, running)) & has_run
    stage[(stage == completed) & was_captured & ~was_freed] = captured
    if goes_on.any():
        order, stage = order[~goes_on], stage[~goes_on]
    remaining = np.zeros(sum(sizes), np.int64)
    remaining[: sizes[0]] = tables[0].narrow("remaining")
    return StageChanges(
        task=ordered("task"),
        node=ordered("node"),
        seq=ordered("seq"),
        t_ns=ordered("t_ns"),
        thread=ordered("thread"),
        stage=stage,
        remaining=remaining[order],
    )


def passes_over(trace: Trace) -> dict[int, int]:
    """Return the event from which on each pass is over: the one after its last.

    A pass is not there whose outcome the trace does not have.
    """
    done = {
        task
        for kind in ("task_completed", "task_failed")
        for task in trace.columns[kind]["task"].tolist()
    }
    tasks, last = (one.tolist() for one in last_events(trace))
    return {
        task: seq + 1 for task, seq in zip(tasks, last, strict=True) if task in done
    }


def _seen_before(
    happens: npt.NDArray[np.bool_], first: npt.NDArray[np.bool_]
) -> npt.NDArray[np.bool_]:
    """Tell of each row if something happens in one before it of the same group.

    Args:
        happens: Mask of the rows in which it happens.
        first: Mask of the rows that are the first of their group.
    """
    before: Column = np.cumsum(happens) - happens
    begin = np.maximum.accumulate(np.where(first, np.arange(len(first)), 0))
    return np.asarray(before > before[begin])


class NodeStages:
    """The stages of nodes, arranged so that a node's are found at once.

    What is not over when its pass is, after the last event of that, is left over: as
    in `gradviz.analysis.moments.engine_state`.

    Args:
        trace: The trace.
    """

    def __init__(self, trace: Trace) -> None:
        self._trace = trace
        self._edges: dict[int, tuple[Column, Column]] = {}
        self._changes = stage_changes(trace)
        self._completed = set(trace.columns["task_completed"]["task"].tolist())
        self._over = passes_over(trace)

    def at(self, task: int, node: int, seq: int) -> NodeAt:
        """Return the stage of a node of a pass right after event `seq`."""
        stage: NodeStage = "not reached"
        since_ns, thread, remaining = None, -1, 0
        changes = self._changes_of(task, node)
        num_until = int(np.searchsorted(changes.seq, seq, "right"))
        if num_until:
            _, _, _, since_ns, thread, place, remaining = (
                int(column[num_until - 1]) for column in changes
            )
            stage = STAGES[place]
        if stage not in OVER and self._over.get(task, NEVER) <= seq:
            stage = "left over"
        return NodeAt(
            task=task,
            node=node,
            stage=stage,
            since_ns=since_ns,
            thread=thread,
            remaining=remaining,
        )

    def _changes_of(self, task: int, node: int) -> StageChanges:
        begin, end = np.searchsorted(self._changes.node, (node, node + 1))
        mine = self._changes.at(slice(int(begin), int(end)))
        begin, end = np.searchsorted(mine.task, (task, task + 1))
        return mine.at(slice(int(begin), int(end)))

    def around(self, task: int, node: int, seq: int) -> Neighborhood:
        """A node and its neighbors right after event `seq`."""
        producer, consumer = self._edges_of(task)
        first, end = np.searchsorted(consumer, (node, node + 1))
        givers = list(dict.fromkeys(producer[first:end].tolist()))
        edges = definition(self._trace, node).edges
        receivers = list(dict.fromkeys(to for to, _ in edges if to >= 0))
        return Neighborhood(
            node=self.at(task, node, seq),
            givers=tuple(self.at(task, one, seq) for one in givers[:MAX_NEIGHBORS]),
            receivers=tuple(
                self.at(task, one, seq) for one in receivers[:MAX_NEIGHBORS]
            ),
            num_givers=len(givers),
            num_receivers=len(receivers),
        )

    def _edges_of(self, task: int) -> tuple[Column, Column]:
        """The edges between nodes of a pass, sorted by where they lead."""
        found = self._edges.get(task)
        if found is None:
            nodes = self._nodes_of(task)
            edges = self._trace.nodes.edges(nodes)
            producer = np.repeat(nodes, np.diff(edges.ends, prepend=0))
            order = np.argsort(edges.consumer, kind="stable")
            found = self._edges[task] = producer[order], edges.consumer[order]
        return found

    def _nodes_of(self, task: int) -> Column:
        """Return the nodes of a pass; for a completed one, those with events."""
        if task not in self._completed:
            return np.array(nodes_of(self._trace, task), np.int64)
        return different(self._changes.node[self._changes.task == task])
