"""The graph below some of PyTorch's tensors, read once, before its nodes run.

Nothing here keeps a node of PyTorch's alive: what is read are numbers and texts.
"""

import math
import re
from collections.abc import Iterable, Iterator, Sequence
from typing import Any, Final, NamedTuple, TypeAlias

import msgspec

from gradviz.ids import next_node_id
from gradviz.pytorch.forward import ForwardPlaces, Models
from gradviz.trace.events import MAX_SEQUENCE_NR

#: A node of PyTorch's, of a class of its own for each operation.
TorchNode: TypeAlias = Any

#: A tensor of PyTorch's into whose ``.grad`` gradients go.
TorchLeaf: TypeAlias = Any

#: Under which name a node keeps its id, from pass to pass, in its ``metadata``.
ID_KEY: Final = "gradviz.id"

#: What a node's name begins with if it is one of the engine's own.
_NAMESPACE: Final = "torch::autograd::"

#: A line of a traceback, as anomaly mode keeps it.
_LINE: Final = re.compile(r'File "(.+)", line (\d+)')

#: The root of a pass that begins at several nodes, as the profiler calls it.
GRAPH_ROOT: Final = f"{_NAMESPACE}GraphRoot"


class SeenInput(msgspec.Struct, frozen=True, gc=False):
    """What an input of a node expects; see `trace.probe.MetadataLike`."""

    shape: tuple[int, ...]
    dtype: str
    device: str
    size_bytes: int


# Graphs have many of these two, and no cycles: the collector need not look at them.


class SeenEdge(msgspec.Struct, eq=False, gc=False):
    """See `trace.probe.EdgeLike`."""

    node: "SeenNode | None"
    input_nr: int


class SeenNode(msgspec.Struct, eq=False, gc=False):
    """A node of PyTorch's as it was read for one pass; see `trace.probe.NodeLike`.

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


def _new_node(id_: int, raw_name: str, sequence_nr: int) -> SeenNode:
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


def read_graph(
    roots: Sequence[tuple[TorchNode, int]],
    outputs: Iterable[tuple[TorchNode | TorchLeaf, int]],
    places: ForwardPlaces,
    models: Models,
    root_sequence_nr: int,
) -> SeenGraph:
    """Read what a pass from `roots` may run.

    Args:
        roots: Nodes, and which output of each; if they are several, the engine puts
            a GraphRoot before them.
        outputs: Those that the pass was asked for: nodes or leaves, and which input.
        places: Where this thread's nodes were made.
        models: What leaves are called.
        root_sequence_nr: The number that a GraphRoot will get.
    """
    reader = _Reader(places, models)
    edges = [SeenEdge(reader.node(function), nr) for function, nr in roots]
    if len(edges) == 1:
        root = edges[0].node
        assert root is not None
    else:
        root = _new_node(next_node_id(), GRAPH_ROOT, root_sequence_nr)
        root.next_edges = tuple(edges)
        for edge in edges:
            assert edge.node is not None
            edge.node.num_edges += 1
    nodes = [*([root] if len(edges) > 1 else []), *reader.all_nodes()]
    _number_topologically(nodes, in_order=reader.is_in_order)
    wanted = [SeenEdge(reader.known_as(output), nr) for output, nr in outputs]
    return SeenGraph(root, nodes, wanted, reader.made_at)


class _Reader:
    """Reads nodes, each once; keeps PyTorch's alive as long as it lives itself."""

    def __init__(self, places: ForwardPlaces, models: Models) -> None:
        self._known: dict[TorchNode, SeenNode] = {}
        self._of_leaves: dict[int, SeenNode] = {}
        self.made_at: dict[int, str] = {}
        #: Whether no edge led back to a node that had been read before.
        self.is_in_order = True
        self._pending: list[tuple[TorchNode, SeenNode]] = []
        self._places = places
        self._models = models
        self._inputs: dict[object, SeenInput] = {}

    def known_as(self, output: TorchNode | TorchLeaf) -> SeenNode | None:
        """The node of a function, or of a leaf, if one was read."""
        return self._of_leaves.get(id(output)) or self._known.get(output)

    def node(self, function: TorchNode) -> SeenNode:
        """The node of a function, which is read by and by."""
        node = self._known.get(function)
        if node is None:
            metadata = function.metadata
            number = metadata.get(ID_KEY)
            if number is None:
                number = metadata[ID_KEY] = next_node_id()
            if "traceback_" in metadata:
                self.made_at[number] = _line_of(metadata["traceback_"])
            node = _new_node(number, function.name(), function._sequence_nr())
            self._known[function] = node
            self._pending.append((function, node))
        return node

    def all_nodes(self) -> Iterator[SeenNode]:
        """All that can be reached."""
        node_of = self.node
        for function, node in self._pending:  # grows while it is walked
            edges = []
            for after, input_nr in function.next_functions:
                consumer = None
                if after is not None:
                    consumer = node_of(after)
                    consumer.num_edges += 1
                    if consumer.next_edges:
                        self.is_in_order = False
                edges.append(SeenEdge(consumer, input_nr))
            node.next_edges = tuple(edges)
            self._describe(function, node)
            yield node

    def _describe(self, function: TorchNode, node: SeenNode) -> None:
        if node.seen_nr >= 0:
            node.module_path, line = self._places.of(node.sequence_nr)
            if line:
                self.made_at.setdefault(node.id, line)
        elif (variable := getattr(function, "variable", None)) is not None:
            self._of_leaves[id(variable)] = node
            node.leaf = self._models.names_of(variable)
        inputs = []
        try:
            for metadata in function._input_metadata:
                one = self._input(metadata)
                inputs.append(one)
                if one is not None and one.device != "cpu" and node.runs_on == "cpu":
                    node.runs_on = one.device
        except (RuntimeError, AttributeError, TypeError):
            return  # a nested tensor has no shape
        node.input_metadata = tuple(inputs)

    def _input(self, metadata: Any) -> SeenInput | None:  # noqa: ANN401 - PyTorch's
        shape, dtype, device = tuple(metadata.shape), metadata.dtype, metadata.device
        key = shape, dtype, device
        found = self._inputs.get(key)
        if found is None:
            if not all(type(one) is int for one in shape):  # symbolic ones
                return None
            size_bytes = math.prod(shape) * dtype.itemsize
            text = str(dtype).removeprefix("torch.")
            found = SeenInput(shape, text, str(device), size_bytes)
            self._inputs[key] = found
        return found


def _line_of(traceback: Iterable[str]) -> str:
    """The innermost line of the program among those that anomaly mode has kept."""
    found = ""
    for entry in traceback:
        line = _LINE.search(str(entry))
        if line and not _is_library(line[1]):
            found = f"{line[1]}:{line[2]}"
    return found


def _is_library(path: str) -> bool:
    return "/torch/" in path.replace("\\", "/") or path.startswith("<frozen")


def _number_topologically(nodes: Sequence[SeenNode], *, in_order: bool) -> None:
    """Count for each node the longest path to a leaf.

    Args:
        nodes: All of them.
        in_order: Whether each comes after all that lead to it.
    """
    for node in reversed(nodes if in_order else _from_root_to_leaves(nodes)):
        longest = -1
        for edge in node.next_edges:
            after = edge.node
            if after is not None and after.topological_nr > longest:
                longest = after.topological_nr
        node.topological_nr = longest + 1


def _from_root_to_leaves(nodes: Iterable[SeenNode]) -> list[SeenNode]:
    """The nodes, each after all that lead to it; those of a cycle are left out."""
    order = []
    for node in nodes:
        node.waiting = node.num_edges
        if not node.num_edges:
            order.append(node)
    for node in order:  # grows while it is walked
        for edge in node.next_edges:
            after = edge.node
            if after is not None:
                after.waiting -= 1
                if not after.waiting:
                    order.append(after)
    return order


def nodes_needed(graph: SeenGraph, *, accumulate: bool) -> set[SeenNode] | None:
    """The nodes that run so that the outputs get their gradients; None for all.

    Args:
        graph: Of the pass.
        accumulate: Whether gradients go into ``.grad``, so that the outputs' own nodes
            run as well.

    Source: torch/csrc/autograd/engine.cpp, GraphTask::init_to_execute (I2-I4).
    """
    if not graph.outputs:
        return None
    wanted = {edge.node for edge in graph.outputs if edge.node is not None}
    needed = set(wanted) if accumulate else set()
    for node in graph.nodes:
        node.waiting = node.num_edges
    for node in reversed(_from_root_to_leaves(graph.nodes)):
        for edge in node.next_edges:
            if edge.node in needed or edge.node in wanted:
                needed.add(node)
                break
    return needed
