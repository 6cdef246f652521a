"""Nodes and graphs of PyTorch's as they were read for one pass: numbers and texts."""

from typing import Final, NamedTuple

import msgspec

from gradviz.trace.events import MAX_SEQUENCE_NR

#: What a node's name begins with if it is one of the engine's own.
_NAMESPACE: Final = "torch::autograd::"

#: The root of a pass that begins at several nodes, as the profiler calls it.
GRAPH_ROOT: Final = f"{_NAMESPACE}GraphRoot"


class SeenInput(msgspec.Struct, frozen=True, gc=False):
    """What an input of a node expects; see `trace.node_like.MetadataLike`.

    Attributes:
        has_queue: Whether its device has a thread and a queue of its own.
    """

    shape: tuple[int, ...]
    dtype: str
    device: str
    size_bytes: int
    has_queue: bool = False


# Graphs have many of these two, and no cycles: the collector need not look at them.


class SeenEdge(msgspec.Struct, eq=False, gc=False):
    """See `trace.node_like.EdgeLike`."""

    node: "SeenNode | None"
    input_nr: int


class SeenNode(msgspec.Struct, eq=False, gc=False):
    """A node of PyTorch's as it was read for one pass; see `trace.node_like.NodeLike`.

    Attributes:
        id: Unique in the process.
        raw_name: As PyTorch and its profiler call it.
        sequence_nr: Its sequence number.
        text: Its name without that of a namespace.
        seen_nr: The number by which the profiler calls it: -1 for a leaf's.
        num_edges: How many edges of the pass lead to it.
        waiting: For how many gradients it waits, as the pass goes on.
        leaf: What the leaf of an AccumulateGrad is called.
    """

    id: int
    raw_name: str
    sequence_nr: int
    text: str
    seen_nr: int
    topological_nr: int = 0
    next_edges: tuple[SeenEdge, ...] = ()
    input_metadata: tuple[SeenInput | None, ...] = ()
    runs_on: str = "cpu"
    module_path: str = ""
    leaf: tuple[str, ...] = ()
    num_edges: int = 0
    waiting: int = 0

    def name(self) -> str:
        """Such as ``MulBackward0``."""
        return self.text

    def leaf_names(self) -> tuple[str, ...]:
        """What the leaf of an AccumulateGrad is called."""
        return self.leaf


def new_node(id_: int, raw_name: str, sequence_nr: int) -> SeenNode:
    """What is known of a node at first."""
    text = raw_name.removeprefix(_NAMESPACE)
    seen_nr = -1 if sequence_nr == MAX_SEQUENCE_NR else sequence_nr
    return SeenNode(id_, raw_name, sequence_nr, text, seen_nr)


class SeenGraph(NamedTuple):
    """What a pass may run.

    Attributes:
        root: Where it begins.
        nodes: All of them, `root` first.
        outputs: Of each output that was asked for its node, and which input.
        made_at: The lines that made nodes, by id, as far as they are known.
    """

    root: SeenNode
    nodes: list[SeenNode]
    outputs: list[SeenEdge]
    made_at: dict[int, str]
