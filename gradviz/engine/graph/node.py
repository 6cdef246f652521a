"""The backward graph: nodes, edges, and the metadata of a node's inputs.

A node takes one gradient for each output of its forward operation and returns one for
each input; edge number *i* says which input of which node gradient number *i* goes to.
Nodes know nothing of threads or queues.
"""

import itertools
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextvars import ContextVar
from typing import Any, ClassVar, Final

from gradviz.backends.current_streams import stream_for
from gradviz.backends.device import CPU, Device
from gradviz.backends.stream import Stream
from gradviz.engine.graph import anomaly
from gradviz.engine.graph.anomaly import SWITCHED_ON
from gradviz.engine.graph.protocols import Gradient, name_of
from gradviz.engine.graph.removable_handle import RemovableHandle, append, named_like
from gradviz.engine.graph.sync import ThreadLocal
from gradviz.trace import probe
from gradviz.trace.node_like import NUM_BEFORE_EDGES
from gradviz.trace.probe import LISTENERS
from gradviz.trace.reporting.ids import NODE_IDS

#: The sequence_nr of every AccumulateGrad: it runs before everything else that is
#: ready. Source: torch/csrc/autograd/functions/accumulate_grad.cpp (Q4).
MAX_SEQUENCE_NR: Final = 2**64 - 1

#: The running part of a model, such as ``Model.encoder.0.linear``; empty outside of all
#: models. Set by the code that calls modules.
MODULE_PATH: Final = ContextVar("gradviz.module_path", default="")
#: Bound once because every new node calls it.
module_path: Final = MODULE_PATH.get

#: id of a module -> its path, for all modules of the running model; None outside.
MODULE_PATHS: Final[ContextVar[Mapping[int, str] | None]] = ContextVar(
    "gradviz.module_paths", default=None
)


class _Sequence(ThreadLocal):
    """Per-thread count of the nodes made (Q8).

    Attributes:
        numbers: Iterator over the numbers not yet used.
    """

    def __init__(self) -> None:
        self.numbers = itertools.count()


SEQUENCE: Final = _Sequence()


def next_sequence_nr() -> int:
    """Return the next number for a node that this thread makes (Q8)."""
    return next(SEQUENCE.numbers)


#: Under another name it stays a Python call, which checks the recursion depth; when
#: compiled, `hash` itself does not.
_hash: Final = hash


class Edge:
    """Destination of one gradient: an input of a node, or nowhere.

    An immutable value: edges to the same place are equal. It unpacks as a pair, like
    PyTorch's.

    Attributes:
        node: The node that receives the gradient, None if no gradient is wanted.
        input_nr: Index of that node's input.
    """

    __slots__ = ("input_nr", "node")

    def __init__(self, node: "Node | None", input_nr: int = 0) -> None:
        self.node = node
        self.input_nr = input_nr

    @property
    def is_valid(self) -> bool:
        """Return whether a gradient flows along this edge at all."""
        return self.node is not None

    def __iter__(self) -> Iterator[Any]:
        return iter((self.node, self.input_nr))

    def __getitem__(self, index: int) -> Any:  # noqa: ANN401 - either
        return (self.node, self.input_nr)[index]

    def __eq__(self, other: object) -> bool:
        if not isinstance(other, Edge):
            return NotImplemented
        return self.node is other.node and self.input_nr == other.input_nr

    def __hash__(self) -> int:
        return _hash((self.node, self.input_nr))

    def __repr__(self) -> str:
        return f"Edge(node={self.node!r}, input_nr={self.input_nr})"


def edge_to(node: "Node | None", input_nr: int) -> Edge:
    """Return ``Edge(node, input_nr)``, faster."""
    edge = Edge.__new__(Edge)  # when compiled: new
    edge.node = node
    edge.input_nr = input_nr
    return edge


class InputMetadata:
    """Expected shape, dtype and device of a node's input. An immutable value.

    Attributes:
        shape: Shape of the gradient.
        dtype: The array library's dtype; the engine only compares and passes it on.
            None accepts any (PyTorch: ``grad_dtype``).
        device: The device that the gradient must be on.
    """

    __slots__ = ("device", "dtype", "shape")

    def __init__(
        self,
        shape: tuple[int, ...],
        dtype: Any,  # noqa: ANN401 - of any library
        device: Device = CPU,
    ) -> None:
        self.shape = shape
        self.dtype = dtype
        self.device = device

    def __eq__(self, other: object) -> bool:
        if not isinstance(other, InputMetadata):
            return NotImplemented
        return self.key() == other.key()

    def __hash__(self) -> int:
        return _hash(self.key())

    def __repr__(self) -> str:
        return (
            f"InputMetadata(shape={self.shape}, dtype={self.dtype}, "
            f"device={self.device})"
        )

    def key(self) -> tuple[tuple[int, ...], Any, Device]:
        """All fields as a tuple."""
        return self.shape, self.dtype, self.device


def metadata_for(shape: tuple[int, ...], dtype: Any, device: Device) -> InputMetadata:  # noqa: ANN401 - as above
    """Return ``InputMetadata(shape, dtype, device)``, faster."""
    metadata = InputMetadata.__new__(InputMetadata)  # when compiled: new
    metadata.shape = shape
    metadata.dtype = dtype
    metadata.device = device
    return metadata


def checked_edges(
    edges: Iterable[Edge | tuple["Node | None", int]], what: str
) -> tuple[Edge, ...]:
    """Return `edges` as edges, each of which leads to an existing input or nowhere.

    Raises:
        TypeError: An edge leads to something that is not a node.
        IndexError: An edge leads to an input that its node does not have.
    """
    checked = []
    for index, edge in enumerate(edges):
        node, input_nr = edge  # compiled, an edge is made of nothing but a node
        if node is not None and not isinstance(node, Node):
            raise TypeError(
                f"{what}[{index}] leads to {type(node).__name__}: expected a Node"
            )
        if node is not None and not 0 <= input_nr < node.num_inputs:
            raise IndexError(
                f"{what}[{index}] leads to input {input_nr} of {node!r}, which has "
                f"{node.num_inputs}"
            )
        checked.append(edge if isinstance(edge, Edge) else Edge(node, input_nr))
    return tuple(checked)


PreHook = Callable[[Sequence[Gradient]], Sequence[Gradient] | None]
PostHook = Callable[[Sequence[Gradient], Sequence[Gradient]], Sequence[Gradient] | None]
#: Takes the gradient; returns a replacement, or None to keep it.
TensorHook = Callable[[Gradient], Gradient | None]


class TensorHooks:
    """Hooks of the tensors whose gradients a node receives.

    They are a separate object because those of a leaf belong to the leaf: every
    AccumulateGrad that the leaf ever has shares them.

    Attributes:
        pre: ``(input_nr, hook)``; see `NodeHooks.tensor_pre`.
        post_accumulate: Called with a leaf after each update of its ``.grad``.

    Source: torch/csrc/autograd/variable.h, AutogradMeta: hooks_, post_acc_grad_hooks_.
    """

    __slots__ = ("__weakref__", "post_accumulate", "pre")

    def __init__(self) -> None:
        self.pre: tuple[tuple[int, TensorHook], ...] = ()
        self.post_accumulate: tuple[Callable[[Any], object], ...] = ()


class NodeHooks:
    """Hooks of one node, each list in order of registration.

    Most nodes have none, so a node makes this object for its first hook. Lists are
    replaced, never changed in place: a running batch keeps the list it started with
    (E3), and reading one needs no lock.

    Args:
        of_tensors: Existing hooks of its tensors.

    Attributes:
        of_tensors: The hooks of its tensors; all others are its own.
        retains_grad: input_nr -> hook; runs after `tensor_pre`, at most one per input.
        pre: Called with all gradients, may replace them.
        post: Called with the gradients that the node returned and received.
    """

    __slots__ = ("__weakref__", "of_tensors", "post", "pre", "retains_grad")

    def __init__(self, of_tensors: TensorHooks | None = None) -> None:
        self.of_tensors = of_tensors or TensorHooks()
        self.retains_grad: dict[int, TensorHook] = {}
        self.pre: tuple[PreHook, ...] = ()
        self.post: tuple[PostHook, ...] = ()

    @property
    def tensor_pre(self) -> tuple[tuple[int, TensorHook], ...]:
        """``(input_nr, hook)`` pairs; they run first, for undefined gradients too."""
        return self.of_tensors.pre

    @tensor_pre.setter
    def tensor_pre(self, hooks: tuple[tuple[int, TensorHook], ...]) -> None:
        self.of_tensors.pre = hooks


class Node:
    """One operation of the backward graph: gradients in, gradients out.

    Subclass it and write `apply`::

        class Square(Node):
            def __init__(self, x, next_edges):
                super().__init__(next_edges)
                self.x = x

    A node may take part in any number of backward passes, even at the same time.

    A node may take part in any number of backward passes, at the same time too.

    Args:
        next_edges: One edge for each gradient that `apply` returns.
        input_metadata: Metadata each input expects, None for anything; as many as
            inputs.
        device: Device of the node: it runs on the device's thread, or on the caller's
            if it is the CPU.

    Attributes:
        id: Unique in this process; what traces call the node by.
        sequence_nr: Number of nodes that this thread had made before; later nodes run
            first.
        topological_nr: Length of the longest path to a leaf.
        next_edges: Edges along which the gradients go.
        input_metadata: See above.
        runs_on: The device, see above; `device` for users, who may have that name.
        forward_stream: The stream of that device which was current when the node was
            made, and where it works (E1); None on the CPU.
        module_path: The part of a model that ran when the node was made, such as
            ``Model.encoder.0``; empty outside of all models.
        hooks: None until the first hook is registered.

    Source: torch/csrc/autograd/function.h, struct Node.
    """

    __slots__ = (
        "__weakref__",
        "_metadata",
        "forward_stream",
        "hooks",
        "id",
        "input_metadata",
        "module_path",
        "next_edges",
        "runs_on",
        "sequence_nr",
        "topological_nr",
    )

    cuts_imaginary: ClassVar[bool] = False

    id: int
    sequence_nr: int
    topological_nr: int
    next_edges: tuple[Edge, ...]
    input_metadata: Sequence[InputMetadata | None]
    runs_on: Device
    forward_stream: Stream | None
    module_path: str
    hooks: NodeHooks | None
    _metadata: dict[str, Any]

    def __init__(
        self,
        next_edges: Iterable[Edge | tuple["Node | None", int]] = (),
        input_metadata: Sequence[InputMetadata | None] = (None,),
        device: Device = CPU,
    ) -> None:
        begin(
            self,
            checked_edges(next_edges, "next_edges"),
            input_metadata,
            device,
            next_sequence_nr(),
        )

    def apply(self, *grads: Gradient) -> Sequence[Gradient]:
        """Return the gradients of the operation's inputs, given those of its outputs.

        The engine calls it on the thread of the node's device, with gradient mode set
        to the pass's ``create_graph``. It must be safe to call from several threads at
        once.

        Args:
            *grads: One per input; None where no gradient arrived.

        Returns:
            One per element of `next_edges`; None where there is none.
        """
        raise NotImplementedError(f"{type(self).__name__} does not define apply()")

    def call(self, inputs: list[Gradient]) -> Sequence[Gradient]:
        """Run the node for the engine; `inputs` is the buffer's own list.

        A subclass overrides this instead of `apply` if it needs to know whether the
        engine holds the last reference to a gradient.
        """
        return self.apply(*inputs)

    def call_restricted(
        self, inputs: list[Gradient], wanted: Sequence[bool]
    ) -> Sequence[Gradient]:
        """Run the node in a pass that does not want all gradients (I8).

        Args:
            inputs: As for `call`.
            wanted: For each of `next_edges`, whether its gradient is used. The engine
                ignores the others; a subclass may skip that work.

        Source: torch/csrc/autograd/function.h, Node::task_should_compute_output.
        """
        del wanted
        return self.call(inputs)

    @property
    def device(self) -> Device:
        """The device that the node runs on."""
        return self.runs_on

    @property
    def module(self) -> str:
        """The part of a model that ran when the node was made."""
        return self.module_path

    def name(self) -> str:
        """Return the node's name in traces and messages: its class's name."""
        return type(self).__name__

    @property
    def next_functions(self) -> tuple[Edge, ...]:
        """PyTorch's name for `next_edges`."""
        return self.next_edges

    @property
    def num_inputs(self) -> int:
        """Number of gradients that the node takes."""
        return len(self.input_metadata)

    def register_hook(self, fn: PostHook) -> RemovableHandle:
        """Call `fn` after the node, with the gradients it returned and received.

        If `fn` returns a tuple, it replaces the returned gradients.
        """
        shown, taken = type(self).shown, type(self).taken  # not `self`: no cycle

        def call(
            outputs: Sequence[Gradient], inputs: Sequence[Gradient]
        ) -> Sequence[Gradient] | None:
            return _taken(
                taken, fn(tuple(map(shown, outputs)), tuple(map(shown, inputs)))
            )

        return append(self.hooks_to_add_to(), "post", named_like(call, fn))

    def register_prehook(self, fn: PreHook) -> RemovableHandle:
        """Call `fn` before the node, with the gradients it received.

        If `fn` returns a tuple, it replaces the received gradients.
        """
        shown, taken = type(self).shown, type(self).taken

        def call(inputs: Sequence[Gradient]) -> Sequence[Gradient] | None:
            return _taken(taken, fn(tuple(map(shown, inputs))))

        return append(self.hooks_to_add_to(), "pre", named_like(call, fn))

    def hooks_to_add_to(self) -> NodeHooks:
        """Return the node's hooks; make them if it has none.

        Raises:
            TypeError: They were set to something else.
        """
        if self.hooks is None:
            self.hooks = NodeHooks()
        return checked_hooks(self, self.hooks)

    @staticmethod
    def shown(gradient: Gradient) -> Gradient:
        """Return a gradient as registered hooks see it; a subclass may wrap it."""
        return gradient

    @staticmethod
    def taken(gradient: Gradient) -> Gradient:
        """Return a gradient from a registered hook as the engine wants it."""
        return gradient

    @property
    def metadata(self) -> dict[str, Any]:
        """Anything that users store about this node; it lives as long as the node."""
        if getattr(self, "_metadata", None) is None:  # most nodes never have any
            self._metadata = {}
        return self._metadata

    @property
    def _input_metadata(self) -> tuple[InputMetadata | None, ...]:
        """PyTorch's name for `input_metadata`."""
        return tuple(self.input_metadata)

    def _sequence_nr(self) -> int:
        """PyTorch's name for `sequence_nr`."""
        return self.sequence_nr

    def _set_sequence_nr(self, value: int) -> None:
        """Let the node run as if it were number `value` of its thread."""
        self.sequence_nr = value

    def trace_definition(self, chunk: list[Any]) -> None:
        """Append a chunk that defines the node, as `pending_graph.definition_of` does.

        Reading the fields here, where their places are known, takes a sixth of the
        time.
        """
        if len(self.next_edges) != 1:
            self._add_definition(chunk, "")
            return
        # Nearly all nodes have one edge; reporting it without a list takes half as
        # long.
        edge = self.next_edges[0]
        after = edge.node
        # When compiled, adding this many items one by one is faster than making a
        # tuple.
        chunk.extend(
            (_SIZE_WITH_ONE_EDGE, self.id, self.sequence_nr, self.topological_nr)
        )
        chunk.extend(
            (
                self._traced_name(),
                self.runs_on,
                self.module_path,
                "",
                tuple(self.input_metadata),
                -1 if after is None else after.id,
                edge.input_nr,
            )
        )

    def _add_definition(self, chunk: list[Any], leaf_names: str) -> None:
        edges = []
        for edge in self.next_edges:
            after = edge.node
            edges.append(-1 if after is None else after.id)
            edges.append(edge.input_nr)
        chunk.extend(
            (
                NUM_BEFORE_EDGES + len(edges),
                self.id,
                self.sequence_nr,
                self.topological_nr,
                self._traced_name(),
                self.runs_on,
                self.module_path,
                leaf_names,
                tuple(self.input_metadata),
                *edges,
            )
        )

    def _traced_name(self) -> str:
        cls = type(self)
        return cls.__name__ if cls.name is _CLASS_NAME else str(cls.name(self))

    def release_variables(self) -> None:
        """Release saved tensors, after a pass that does not keep the graph."""

    @property
    def holds_saved(self) -> bool:
        """True if it has saved something that it has not released."""
        return False

    def __repr__(self) -> str:
        return f"<{name_of(self)} #{self.id}>"


#: Length of the definition of a node with one edge.
_SIZE_WITH_ONE_EDGE: Final = NUM_BEFORE_EDGES + 2

#: `name` of every class that does not override it.
_CLASS_NAME: Final = Node.name


def begin(
    node: Node,
    next_edges: tuple[Edge, ...],
    input_metadata: Sequence[InputMetadata | None],
    device: Device,
    sequence_nr: int,
) -> None:
    """Set the fields of a new node whose edges have been checked; for subclasses.

    Args:
        node: The node.
        next_edges: As for `Node`.
        input_metadata: As for `Node`.
        device: As for `Node`.
        sequence_nr: As for `Node`.
    """
    fill_in(node, next_edges, input_metadata, device, sequence_nr)
    announce(node)


def fill_in(
    node: Node,
    next_edges: tuple[Edge, ...],
    input_metadata: Sequence[InputMetadata | None],
    device: Device,
    sequence_nr: int,
) -> None:
    """Set the fields of a new node, like `begin`, without announcing it."""
    node.id = next(NODE_IDS)
    node.sequence_nr = sequence_nr
    node.next_edges = next_edges
    node.input_metadata = input_metadata
    node.runs_on = device
    node.forward_stream = None if device is CPU else stream_for(device)
    node.module_path = module_path()
    node.hooks = None
    topological_nr = 0
    try:
        for edge in next_edges:
            after = edge.node
            if after is not None and after.topological_nr >= topological_nr:
                topological_nr = after.topological_nr + 1
        if not isinstance(topological_nr, int):  # if it comes from a float, say
            raise TypeError("topological_nr is not an integer")
    except Exception as error:  # noqa: BLE001 - of whatever the field holds
        raise _topological_nr_error(next_edges, error)  # noqa: B904 - it has its cause
    node.topological_nr = topological_nr


def _topological_nr_error(next_edges: tuple[Edge, ...], error: Exception) -> Exception:
    """Return an error that names the node that no other node can be numbered after."""
    for edge in next_edges:
        number = getattr(edge.node, "topological_nr", 0)
        if edge.node is not None and not isinstance(number, int):
            found = type(number).__name__
            named = odd_field_error(edge.node, "topological_nr", found, "an integer")
            named.__cause__ = error
            return named
    return error


def announce(node: Node, saved_bytes: int = -1) -> None:
    """Report a new node to the listener and to anomaly mode.

    Args:
        node: The node.
        saved_bytes: Size of its saved values, if already known.
    """
    if LISTENERS and (listener := probe.current) is not None:
        reports = listener.for_this_thread()
        if saved_bytes < 0:
            reports.node_created(node)
        else:
            reports.node_recorded(node, saved_bytes)
    if SWITCHED_ON:
        anomaly.remember(node)


def odd_field_error(node: Node, field: str, found: str, expected: str) -> TypeError:
    """Return the error that says which field of a node cannot be used."""
    number = getattr(node, "id", None)  # which may be odd too
    return TypeError(
        f"the graph cannot be used at node {type(node).__name__} (#{number}): its "
        f"{field} is {found}, expected {expected}; something has changed the node "
        f"since it was made"
    )


def checked_hooks(node: Node, hooks: object) -> NodeHooks:
    """Return the hooks of a node; raise TypeError if they are anything else."""
    if not isinstance(hooks, NodeHooks):
        found = type(hooks).__name__
        raise odd_field_error(node, "hooks", found, "NodeHooks or None")
    return hooks


def _taken(
    taken: Callable[[Gradient], Gradient], result: object
) -> tuple[Gradient, ...] | None:
    if result is None:
        return None
    if not isinstance(result, tuple):
        raise TypeError(f"expected tuple, but hook returned '{type(result).__name__}'")
    return tuple(map(taken, result))
