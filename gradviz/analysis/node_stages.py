"""What has become of a node at a moment, and of the nodes around it."""

from typing import Final, Literal, TypeAlias

import msgspec
import numpy as np

from gradviz.analysis.addresses import nodes_of
from gradviz.analysis.executions import definition
from gradviz.trace.model import Trace
from gradviz.trace.table import Column, Table, different

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

#: So many neighbours of each side are told; all are counted.
MAX_NEIGHBOURS: Final = 64

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
_OVER: Final = frozenset({"not reached", "completed", "captured", "failed", "skipped"})


class NodeAt(msgspec.Struct, frozen=True, kw_only=True):
    """A node at a moment.

    Attributes:
        task: The pass.
        node: The node.
        stage: What has become of it.
        since_ns: Since when, on the trace's clock; None before its first event.
        thread: On which thread that happened, -1 before its first event.
        remaining: For how many gradients it waits; 0 if for none, or if it has none.
    """

    task: int
    node: int
    stage: NodeStage
    since_ns: int | None
    thread: int
    remaining: int


class Neighbourhood(msgspec.Struct, frozen=True, kw_only=True):
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


class NodeStages:
    """The events of nodes, arranged so that a node's are found at once.

    Args:
        trace: The trace.
    """

    def __init__(self, trace: Trace) -> None:
        self._trace = trace
        self._edges: dict[int, tuple[Column, Column]] = {}
        columns = trace.columns
        tables = [columns[kind] for kind in _KINDS]
        rows = {
            name: np.concatenate([one.narrow(name) for one in tables])
            for name in ("task", "node", "seq", "t_ns", "thread")
        }
        rows["kind"] = np.repeat(
            np.arange(len(_KINDS), dtype=np.int8), [one.num_rows for one in tables]
        )
        rows["remaining"] = np.zeros(len(rows["kind"]), np.int64)
        given = columns["gradient_buffered"]
        rows["remaining"][: given.num_rows] = given["remaining"]
        order = np.lexsort((rows["seq"], rows["node"]))
        self._rows = Table({name: one[order] for name, one in rows.items()})
        self._node = self._rows["node"]
        self._completed = set(columns["task_completed"]["task"].tolist())
        self._over = {
            task: seq
            for kind in ("task_completed", "task_failed")
            for task, seq in columns[kind].rows("task", "seq")
        }

    def at(self, task: int, node: int, seq: int) -> NodeAt:
        """What has become of a node of a pass right after event `seq`."""
        first, end = np.searchsorted(self._node, (node, node + 1))
        rows = self._rows.at(slice(int(first), int(end)))
        rows = rows.at((rows.narrow("task") == task) & (rows.narrow("seq") <= seq))
        stage: NodeStage = "not reached"
        since_ns, thread, remaining = None, -1, 0
        seen: set[NodeStage] = set()
        was_freed = False
        for kind, t_ns, by, left in rows.rows("kind", "t_ns", "thread", "remaining"):
            new = _STAGES[_KINDS[kind]]
            remaining = left
            was_freed |= _KINDS[kind] == "buffer_freed"
            if new == "completed" and "captured" in seen and not was_freed:
                new = "captured"
            elif new in {"captured", "running"} and "running" in seen:
                seen.add(new)
                continue  # it goes on
            seen.add(new)
            stage, since_ns, thread = new, t_ns, by
        if stage not in _OVER and self._over.get(task, seq) < seq:
            stage = "left over"
        return NodeAt(
            task=task,
            node=node,
            stage=stage,
            since_ns=since_ns,
            thread=thread,
            remaining=remaining if stage in {"waiting", "left over"} else 0,
        )

    def around(self, task: int, node: int, seq: int) -> Neighbourhood:
        """A node and its neighbours right after event `seq`."""
        producer, consumer = self._edges_of(task)
        first, end = np.searchsorted(consumer, (node, node + 1))
        givers = list(dict.fromkeys(producer[first:end].tolist()))
        edges = definition(self._trace, node).edges
        receivers = list(dict.fromkeys(to for to, _ in edges if to >= 0))
        return Neighbourhood(
            node=self.at(task, node, seq),
            givers=tuple(self.at(task, one, seq) for one in givers[:MAX_NEIGHBOURS]),
            receivers=tuple(
                self.at(task, one, seq) for one in receivers[:MAX_NEIGHBOURS]
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
        """The nodes of a pass; of one that was completed events tell of all."""
        if task not in self._completed:
            return np.array(nodes_of(self._trace, task), np.int64)
        return different(self._node[self._rows.narrow("task") == task]).astype(np.int64)
