"""The graph below some of PyTorch's tensors, read once, before its nodes run.

Nothing here keeps a node of PyTorch's alive: what is read are numbers and texts.
"""

import math
import re
from collections.abc import Iterable, Iterator, Sequence
from typing import Any, Final, TypeAlias

from gradviz.ids import next_node_id
from gradviz.pytorch.forward import ForwardPlaces, Models
from gradviz.pytorch.needs import number_topologically
from gradviz.pytorch.seen_node import (
    GRAPH_ROOT,
    SeenEdge,
    SeenGraph,
    SeenInput,
    SeenNode,
    new_node,
)

#: A node of PyTorch's, of a class of its own for each operation.
TorchNode: TypeAlias = Any

#: A tensor of PyTorch's into whose ``.grad`` gradients go.
TorchLeaf: TypeAlias = Any

#: Under which name a node keeps its id, from pass to pass, in its ``metadata``.
ID_KEY: Final = "gradviz.id"

#: A line of a traceback, as anomaly mode keeps it.
_LINE: Final = re.compile(r'File "(.+)", line (\d+)')

#: Devices whose nodes run on the thread that calls.
#: Source: torch/csrc/autograd/engine.cpp, should_run_in_cpu_ready_queue (Q1).
_OF_CALLER: Final = frozenset({"cpu", "meta", "lazy"})


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
        root = new_node(next_node_id(), GRAPH_ROOT, root_sequence_nr)
        root.next_edges = tuple(edges)
        for edge in edges:
            assert edge.node is not None
            edge.node.num_edges += 1
    nodes = [*([root] if len(edges) > 1 else []), *reader.all_nodes()]
    number_topologically(nodes, in_order=reader.is_in_order)
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
            node = new_node(number, function.name(), function._sequence_nr())
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
                if one is not None and node.runs_on == "cpu" and one.has_queue:
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
            has_queue = device.type not in _OF_CALLER
            found = SeenInput(shape, text, str(device), size_bytes, has_queue)
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
