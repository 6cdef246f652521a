"""The graph below some of PyTorch's tensors, read before its nodes run.

Note [What nodes keep]
~~~~~~~~~~~~~~~~~~~~~~
Each node is read once. What was read stays in the node's ``metadata``, a dict that
PyTorch keeps as long as the node. Later passes find it there and read only nodes that
are new, so a pass costs the same however long the history below it is. Nothing else
may keep PyTorch's nodes alive, so `SeenNode` has numbers and texts only.

Beside it lies the tuple that ``next_functions`` returned. It prevents a crash. To read
a node makes a Python object of each node after it, and from then on the two live and
die together. PyTorch frees a long chain of nodes in a loop, but not nodes with such
objects: the end of each object ends the next node inside of its own, and a chain of
some ten thousand overflows the stack. The tuple holds the objects of the next nodes
until the dict dies, and of nested dicts and tuples CPython ends only a bounded number
inside of each other (its "trashcan"). The tuple keeps nothing alive that the node's own
edges do not.
Source: c10/util/intrusive_ptr.h, Note [PyObject preservation for Tensor and Storages];
torch/csrc/autograd/function.cpp, Node::release_resources.

Note [Below a node]
~~~~~~~~~~~~~~~~~~~
PyTorch follows only nodes from which an output can be reached, which it knows from
their ``topological_nr``. Python cannot ask for that number, and sequence numbers of
several threads do not replace it. So all nodes below a root have to be read, the first
time. `needs.graph_towards` then leaves out what cannot lead to an output.
"""

import functools
import math
import os
import re
import sys
import weakref
from collections import OrderedDict
from collections.abc import Iterable, Iterator, Mapping, MutableMapping, Sequence
from pathlib import Path
from typing import Any, Final, TypeAlias

from gradviz.pytorch.nodes.module_calls import Models
from gradviz.pytorch.nodes.needs import graph_towards, number_topologically
from gradviz.pytorch.nodes.places import ForwardPlaces, place
from gradviz.pytorch.nodes.saved_tensors import SavedBytes, SavedStorages
from gradviz.pytorch.nodes.seen_node import (
    GRAPH_ROOT,
    HookDict,
    Listeners,
    SeenEdge,
    SeenGraph,
    SeenInput,
    SeenNode,
    new_node,
)
from gradviz.trace.format.strings import CALLED_BY
from gradviz.trace.probe import Hook
from gradviz.trace.reporting.ids import next_node_id
from gradviz.trace.reporting.location import is_of_program

#: A node of PyTorch's, of a class of its own for each operation.
TorchNode: TypeAlias = Any

#: A tensor of PyTorch's into whose ``.grad`` gradients go.
TorchLeaf: TypeAlias = Any

#: The ``metadata`` of a node of PyTorch's.
_Metadata: TypeAlias = MutableMapping[str, Any]

#: Under these names its metadata has a node's id, its `SeenNode`, and what its
#: ``next_functions`` were; see Note [What nodes keep].
ID_KEY: Final = "gradviz.id"
_NODE_KEY: Final = "gradviz.node"
_NEXT_KEY: Final = "gradviz.next"

#: And under this one, that a pass began there.
ROOT_KEY: Final = "gradviz.root"

#: Graphs of so many passes, or so many results that no pass ran, pile up.
MIN_KEPT: Final = 5

#: Under this one it has where hooks of the node are.
_HOOKS_KEY: Final = "gradviz.hooks"

#: Under this one PyTorch keeps the stack of a node that was made in anomaly mode, or a
#: `KeptLine`.
TRACEBACK_KEY: Final = "traceback_"

#: A line of a traceback, as anomaly mode keeps it.
_LINE: Final = re.compile(r'File "(.+)", line (\d+)')

#: Devices whose nodes run on the thread that calls.
#: Source: torch/csrc/autograd/engine.cpp, should_run_in_cpu_ready_queue (Q1).
_OF_CALLER: Final = frozenset({"cpu", "meta", "lazy"})


class KeptLine(list[str]):
    """The line that made a node, in the place of a stack.

    PyTorch's compiler copies it and joins its entries, so it is a list, and empty as
    where no stack is kept. It has no method in Python, for Dynamo would see its frame.
    See Note [Lines by anomaly mode] in `forward_lines`.

    Attributes:
        text: ``path:line``, or two where the innermost is a library's; see Note [Two
            lines] in `location`.
        stack: All lines that led to it, with `` < `` between them; empty if they are
            not kept.
    """

    __slots__ = ("stack", "text")

    text: str
    stack: str


#: The AccumulateGrad of each leaf that was read last, by the leaf's `id`. A leaf takes
#: its entry with it. Any thread; changed by single calls into C.
_of_leaves: Final[dict[int, SeenNode]] = {}

#: Shapes, types and devices that inputs of nodes expect: the steps of a training have
#: the same. Any thread; changed by single calls into C.
_inputs: Final[dict[object, tuple[SeenInput]]] = {}

#: Maximum number remembered.
_MAX_INPUTS: Final = 1 << 12


def read_graph(
    roots: Sequence[tuple[TorchNode, int]],
    outputs: Iterable[tuple[TorchNode | TorchLeaf, int]],
    places: ForwardPlaces,
    models: Models,
    root_sequence_nr: int,
    *,
    accumulate: bool,
    listeners: Listeners = (),
) -> SeenGraph:
    """Read the nodes that a pass from `roots` may run.

    Args:
        roots: Nodes, and which output of each; if they are several, the engine puts
            a GraphRoot before them.
        outputs: Those that the pass was asked for: nodes or leaves, and which input.
        places: Places at which nodes were made, if their thread is the one supposed.
        models: Models, for the names of leaves.
        root_sequence_nr: The number that a GraphRoot will get.
        accumulate: True if gradients go into ``.grad``.
        listeners: Listeners that are told of nodes. Nodes that were read for others, as
            by an earlier recording, are counted once more; see `SeenGraph.untold`.
    """
    reader = _Reader(listeners)
    edges = [SeenEdge(reader.node(function), nr) for function, nr in roots]
    reader.read()
    if len(edges) == 1:
        root = edges[0].node
        assert root is not None
    else:
        root = new_node(next_node_id(), GRAPH_ROOT, root_sequence_nr)
        root.next_edges = tuple(edges)
        number_topologically([root], in_order=True)
    wanted = [SeenEdge(seen_as(output), nr) for output, nr in outputs]
    graph = graph_towards(root, wanted, accumulate=accumulate)
    for node in graph.nodes:
        _complete(node, places, models)
        if node.line:
            graph.made_at[node.id] = node.line
    if listeners:
        reader.count(models)  # after the models of all leaves have been found
    return graph._replace(untold=reader.saved)


def seen_as(output: TorchNode | TorchLeaf) -> SeenNode | None:
    """Return the record of a node, or of a leaf's; None if it was not read."""
    node = _of_leaves.get(id(output))
    if node is not None and node.variable is not None and node.variable() is output:
        return node
    if hasattr(type(output), "next_functions"):
        found: SeenNode | None = output.metadata.get(_NODE_KEY)
        return found
    return None


def line_of_node(function: TorchNode) -> str:
    """Return the line that made a node, whether it has been read or not."""
    metadata = function.metadata
    kept, node = metadata.get(TRACEBACK_KEY), metadata.get(_NODE_KEY)
    if type(kept) is KeptLine:
        return kept.text.partition(" < ")[0]
    return "" if node is None else str(node.line)


def add_hooks(owner: TorchNode | TorchLeaf, hooks: HookDict) -> None:
    """Note where hooks of a node, or of a leaf that has been read, are."""
    metadata = owner.metadata if hasattr(type(owner), "next_functions") else None
    node = seen_as(owner)
    if node is not None:
        node.hooks = _with(node.hooks, hooks)
    if metadata is not None:
        metadata[_HOOKS_KEY] = _with(metadata.get(_HOOKS_KEY, ()), hooks)


def functions_below(roots: Iterable[TorchNode]) -> Iterator[TorchNode]:
    """Yield the nodes of a graph that has been read."""
    found = dict.fromkeys(roots)
    waiting = list(found)
    for function in waiting:  # grows while it is walked
        yield function
        for after, _ in function.metadata.get(_NEXT_KEY, ()):
            if after is not None and after not in found:
                found[after] = None
                waiting.append(after)


def _with(some: tuple[HookDict, ...], one: HookDict) -> tuple[HookDict, ...]:
    entries = one.entries()
    return some if any(it.entries() is entries for it in some) else (*some, one)


def _hooks_of(leaf: TorchLeaf) -> Iterator[HookDict]:
    """Yield the dicts of hooks that a leaf itself has."""
    for kind, entries in (
        (Hook.TENSOR_PRE, leaf._backward_hooks),
        (Hook.POST_ACCUMULATE_GRAD, leaf._post_accumulate_grad_hooks),
    ):
        if isinstance(entries, OrderedDict):
            yield HookDict(kind, weakref.ref(entries))


def _complete(node: SeenNode, places: ForwardPlaces, models: Models) -> None:
    """Note the probable place of a node, or its leaf's current names in models."""
    if node.seen_nr < 0:
        variable = None if node.variable is None else node.variable()
        if variable is not None:
            # A search for live graphs in a recorded program knows no models.
            node.leaf = models.names_of(variable) or node.leaf
    elif not node.module_path and not node.made_by:
        place(node, places)


class _Reader:
    """Reads nodes that are new; keeps PyTorch's alive as long as it lives itself."""

    def __init__(self, listeners: Listeners) -> None:
        self._listeners = listeners
        #: Bytes saved by nodes that not all listeners know, in the order of the
        #: forward.
        self.saved: dict[SeenNode, SavedBytes] = {}
        #: Those that were met, also if they are not new.
        self._known: dict[TorchNode, SeenNode] = {}
        # Of each new node: PyTorch's, its metadata, ours. Three lists, for a tuple of
        # each node would be one more object for the garbage collector to look at.
        self._new: list[TorchNode] = []
        self._new_metadata: list[_Metadata] = []
        self._new_nodes: list[SeenNode] = []
        #: New ones in the order of the forward, once they have been read.
        self._in_order: list[TorchNode] = []
        #: Those that were read for other listeners, with what they have.
        self._untold: list[tuple[TorchNode, _Metadata, SeenNode]] = []

    def node(self, function: TorchNode) -> SeenNode:
        """The node of a function; if it is new, `read` will read it."""
        node = self._known.get(function)
        return self._meet(function) if node is None else node

    def _meet(self, function: TorchNode) -> SeenNode:
        metadata = function.metadata
        # Another thread may read it at the same time: who is first counts.
        node: SeenNode = metadata.get(_NODE_KEY) or metadata.setdefault(
            _NODE_KEY, new_node(0, function.name(), function._sequence_nr())
        )
        self._known[function] = node
        if node.topological_nr < 0:
            # Or it was interrupted, or another thread is not done with it.
            self._new.append(function)
            self._new_metadata.append(metadata)
            self._new_nodes.append(node)
        elif self._listeners and node.told_to != self._listeners:
            self._untold.append((function, metadata, node))
        return node

    def read(self) -> None:
        """Read all new ones that can be reached."""
        known, meet, describe = self._known, self._meet, self._describe
        made_before: dict[SeenNode, int] = {}  # of a leaf's: its earliest user
        is_in_order = True
        # The lists grow while they are walked.
        new = zip(self._new, self._new_metadata, self._new_nodes, strict=True)
        for function, metadata, node in new:
            following = metadata[_NEXT_KEY] = function.next_functions
            number, edges = node.sequence_nr, []
            for after, input_nr in following:
                consumer = known.get(after)
                if consumer is None and after is not None:
                    consumer = meet(after)
                edges.append(SeenEdge(consumer, input_nr))
                if consumer is None:
                    continue
                if consumer.seen_nr >= node.seen_nr:  # as where several threads made it
                    is_in_order = False
                if consumer.seen_nr < 0:
                    earliest = made_before.get(consumer, number)
                    made_before[consumer] = min(earliest, number)
            node.next_edges = tuple(edges)
            describe(function, metadata, node)
        nodes = self._number(made_before)
        nodes.reverse()
        number_topologically(nodes, in_order=is_in_order)

    def _number(self, made_before: Mapping[SeenNode, int]) -> list[SeenNode]:
        """Give ids to new nodes in the order of the forward, and return them so.

        A leaf's comes just before its first user's. Of nodes that several threads made
        at the same time no order is known: those that were met first come first.
        """
        keys = [
            2 * made_before[node] if node in made_before else 2 * node.sequence_nr + 1
            for node in self._new_nodes
        ]
        order = sorted(range(len(keys)), key=keys.__getitem__)
        for index in order:
            made = self._new_metadata[index].setdefault(ID_KEY, next_node_id())
            self._new_nodes[index].id = made
        self._in_order = [self._new[index] for index in order]
        return [self._new_nodes[index] for index in order]

    def count(self, models: Models) -> None:
        """Count the saved bytes of nodes that some listeners do not know."""
        for _, metadata, _ in self._untold:  # grows while it is walked
            for after, _ in metadata.get(_NEXT_KEY, ()):
                if after is not None:
                    self.node(after)
        self._untold.sort(key=lambda one: one[2].id)
        order = [*(function for function, _, _ in self._untold), *self._in_order]
        leaves = [node.variable() for node in self._known.values() if node.variable]
        storages = SavedStorages(
            (one for one in leaves if one is not None), models.buffers
        )
        saved, known, take = self.saved, self._known, storages.take
        for function in self._told_before(len(order)):
            take(function)
        for function in order:
            saved[known[function]] = take(function)

    def _told_before(self, most: int) -> list[TorchNode]:
        """Return the nodes next to the counted ones, and some below them.

        New nodes often keep what these have counted already. How many are looked at is
        bounded by how many are counted: a pass costs the same however long the history
        is.
        """
        listeners = self._listeners
        found = [
            function
            for function, node in self._known.items()
            if node.told_to == listeners
        ]
        seen = set(found)
        for function in found:  # grows while it is walked
            if len(found) >= most:
                break
            for after, _ in function.metadata.get(_NEXT_KEY, ()):
                if after is not None and after not in seen:
                    seen.add(after)
                    found.append(after)
        return found

    def _describe(
        self, function: TorchNode, metadata: _Metadata, node: SeenNode
    ) -> None:
        kept = metadata.get(TRACEBACK_KEY)
        if kept is not None:
            if type(kept) is KeptLine:
                del metadata[TRACEBACK_KEY]
                node.line, node.stack = kept.text, kept.stack
            else:
                node.line = _line_of(kept)
            node.has_own_line = bool(node.line)
        node.hooks = metadata.get(_HOOKS_KEY, ())
        if node.seen_nr < 0:
            _note_leaf(getattr(function, "variable", None), node)
        try:
            expected = function._input_metadata
            inputs: tuple[SeenInput | None, ...] = (
                _input(expected[0])  # nearly always
                if len(expected) == 1
                else tuple([_input(one)[0] for one in expected])
            )
        except (RuntimeError, AttributeError, TypeError):
            return  # a nested tensor has no shape
        node.input_metadata = inputs
        for one in inputs:
            if one is not None and one.has_queue:
                node.runs_on = one.device
                break


def _input(metadata: Any) -> tuple[SeenInput | None]:  # noqa: ANN401 - PyTorch's
    """Return what an input expects, alone in a tuple that equal nodes share."""
    shape, dtype, device = tuple(metadata.shape), metadata.dtype, metadata.device
    key = shape, dtype, device
    found = _inputs.get(key)
    if found is None:
        if not all(type(one) is int for one in shape):  # symbolic ones
            return (None,)
        size_bytes = math.prod(shape) * dtype.itemsize
        text = str(dtype).removeprefix("torch.")
        has_queue = device.type not in _OF_CALLER
        found = (SeenInput(shape, text, str(device), size_bytes, has_queue),)
        if len(_inputs) >= _MAX_INPUTS:
            _inputs.clear()
        _inputs[key] = found
    return found


def _note_leaf(variable: TorchLeaf | None, node: SeenNode) -> None:
    """Note that a node is the AccumulateGrad of a leaf."""
    if variable is not None:
        forget = functools.partial(_of_leaves.pop, id(variable))
        node.variable = weakref.ref(variable, forget)
        node.hooks += tuple(_hooks_of(variable))
        _of_leaves[id(variable)] = node


def _line_of(traceback: Iterable[str]) -> str:
    """The line that made a node, or two, among those that anomaly mode has kept.

    See Note [Two lines] in `location`.
    """
    innermost = own = ""
    for entry in traceback:
        line = _LINE.search(str(entry))
        if line and not line[1].startswith(("<frozen", *_never_shown())):
            innermost = f"{line[1]}:{line[2]}"
            own = innermost if is_of_program(line[1]) else own
    return f"{innermost}{CALLED_BY}{own}" if own not in ("", innermost) else innermost


@functools.cache
def _never_shown() -> tuple[str, ...]:
    """The folders of PyTorch and of gradviz."""
    torchs = Path(sys.modules["torch"].__file__ or "").parent
    ours = Path(__file__).parents[2]
    return f"{torchs}{os.sep}", f"{ours}{os.sep}"
