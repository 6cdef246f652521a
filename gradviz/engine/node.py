"""The backward graph: nodes, the edges between them, and what an input expects.

A node takes one gradient for each output of the operation that it stands for, and
returns one for each of that operation's inputs; edge number *i* says which input of
which node the *i*-th of them goes to. Nodes know nothing of threads or queues.
"""

import itertools
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextvars import ContextVar
from typing import Any, ClassVar, Final

from gradviz.backends.current_streams import stream_for
from gradviz.backends.device import CPU, Device
from gradviz.backends.stream import Stream
from gradviz.engine import anomaly
from gradviz.engine.anomaly import SWITCHED_ON
from gradviz.engine.protocols import Gradient, name_of
from gradviz.engine.removable_handle import RemovableHandle, append, named_like
from gradviz.engine.sync import ThreadLocal
from gradviz.ids import NODE_IDS
from gradviz.trace import probe
from gradviz.trace.graph import NUM_BEFORE_EDGES
from gradviz.trace.probe import LISTENERS

#: The sequence_nr of every AccumulateGrad: before everything else that is ready.
#: Source: torch/csrc/autograd/functions/accumulate_grad.cpp (Q4).
MAX_SEQUENCE_NR: Final = 2**64 - 1

#: Which part of a model is running, such as ``Model.encoder.0.linear``; empty outside
#: of all models. Set by whoever runs models.
MODULE_PATH: Final = ContextVar("gradviz.module_path", default="")
#: Asks it, found in one step: each node that is made does.
module_path: Final = MODULE_PATH.get

#: id of a module -> its path, for all modules of the model that runs; None outside.
MODULE_PATHS: Final[ContextVar[Mapping[int, str] | None]] = ContextVar(
    "gradviz.module_paths", default=None
)


class _Sequence(ThreadLocal):
    """Counts the nodes that this thread has made (Q8).

    Attributes:
        numbers: Those that are still to come.
    """

    def __init__(self) -> None:
        self.numbers = itertools.count()


SEQUENCE: Final = _Sequence()


def next_sequence_nr() -> int:
    """Number a node that this thread makes (Q8)."""
    return next(SEQUENCE.numbers)


class Edge:
    """Where one gradient goes: an input of a node, or nowhere.

    A value: two that lead to the same place are equal, and none is ever changed. It can
    be taken apart as the pair that it is in PyTorch.

    Attributes:
        node: The node that receives the gradient, None where none is wanted.
        input_nr: Which of that node's inputs.
    """

    __slots__ = ("input_nr", "node")

    def __init__(self, node: "Node | None", input_nr: int = 0) -> None:
        self.node = node
        self.input_nr = input_nr

    @property
    def is_valid(self) -> bool:
        """Whether a gradient flows here at all."""
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
        return hash((self.node, self.input_nr))

    def __repr__(self) -> str:
        return f"Edge(node={self.node!r}, input_nr={self.input_nr})"


def edge_to(node: "Node | None", input_nr: int) -> Edge:
    """An edge: what `Edge` makes, in half the time where this is compiled."""
    edge = Edge.__new__(Edge)
    edge.node = node
    edge.input_nr = input_nr
    return edge


class InputMetadata:
    """What a node expects at one of its inputs. A value, as `Edge` is.

    Attributes:
        shape: Shape of the gradient.
        dtype: The array library's dtype; the engine only compares and passes it on.
            None accepts any (PyTorch: ``grad_dtype``).
        device: Where the gradient must be.
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
        return hash(self.key())

    def __repr__(self) -> str:
        return (
            f"InputMetadata(shape={self.shape}, dtype={self.dtype}, "
            f"device={self.device})"
        )

    def key(self) -> tuple[tuple[int, ...], Any, Device]:
        """All that it says, as a tuple."""
        return self.shape, self.dtype, self.device


def metadata_for(shape: tuple[int, ...], dtype: Any, device: Device) -> InputMetadata:  # noqa: ANN401 - as above
    """What `InputMetadata` makes, as fast as `edge_to`."""
    metadata = InputMetadata.__new__(InputMetadata)
    metadata.shape = shape
    metadata.dtype = dtype
    metadata.device = device
    return metadata


def checked_edges(
    edges: Iterable[Edge | tuple["Node | None", int]], what: str
) -> tuple[Edge, ...]:
    """`edges` as edges, each of which leads to an input that exists, or nowhere.

    Raises:
        TypeError: One leads to something that is no node.
        IndexError: One leads to an input that its node does not have.
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
#: Takes the gradient, returns another in its place or None.
TensorHook = Callable[[Gradient], Gradient | None]


class TensorHooks:
    """The hooks of the tensors whose gradients a node is given.

    They are an object of their own, for those of a leaf belong to the leaf: every node
    that it has, one after the other, shows them.

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
    """The hooks of one node, each list in order of registration.

    Most nodes have none, so a node makes this object at its first hook. Lists are
    replaced, never changed in place: a batch that is running keeps what it started
    with (E3), and no lock is needed to read one.

    Args:
        of_tensors: Hooks of its tensors that are there already.

    Attributes:
        of_tensors: The hooks of its tensors; all others are its own.
        retains_grad: input_nr -> hook; run after `tensor_pre`, at most one an input.
        pre: Called with all gradients, may replace them.
        post: Called with what the node returned and what it was given.
    """

    __slots__ = ("__weakref__", "of_tensors", "post", "pre", "retains_grad")

    def __init__(self, of_tensors: TensorHooks | None = None) -> None:
        self.of_tensors = of_tensors or TensorHooks()
        self.retains_grad: dict[int, TensorHook] = {}
        self.pre: tuple[PreHook, ...] = ()
        self.post: tuple[PostHook, ...] = ()

    @property
    def tensor_pre(self) -> tuple[tuple[int, TensorHook], ...]:
        """``(input_nr, hook)``; run first, for undefined gradients too."""
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

            def apply(self, grad):
                return (2 * self.x * grad,)

    A node may take part in any number of backward passes, at the same time too.

    Args:
        next_edges: One edge for each gradient that `apply` returns.
        input_metadata: What each input expects, None for anything; its length is the
            number of inputs.
        device: Where the node runs: on the device's thread, or on the caller's if it
            is the CPU.

    Attributes:
        id: Unique in this process; what traces call the node by.
        sequence_nr: How many nodes this thread had made before; later nodes run first.
        topological_nr: Length of the longest path to a leaf.
        next_edges: Where the gradients go.
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
        """The gradients of the operation's inputs, given those of its outputs.

        Called by the engine on the thread of the node's device, with gradient mode
        set to the pass's ``create_graph``. Must be safe to call from several threads
        at once.

        Args:
            *grads: One for each input; None where no gradient arrived.

        Returns:
            One for each of `next_edges`; None where there is none.
        """
        raise NotImplementedError(f"{type(self).__name__} does not define apply()")

    def call(self, inputs: list[Gradient]) -> Sequence[Gradient]:
        """What the engine calls; `inputs` is the buffer's own list.

        A subclass overrides this instead of `apply` if it wants to know whether the
        engine holds the last reference to a gradient.
        """
        return self.apply(*inputs)

    def call_restricted(
        self, inputs: list[Gradient], wanted: Sequence[bool]
    ) -> Sequence[Gradient]:
        """What the engine calls in a pass that does not want all gradients (I8).

        Args:
            inputs: As for a plain call.
            wanted: For each of `next_edges`, whether its gradient goes anywhere. What
                is returned for the others is not looked at; a subclass may save itself
                the work.

        Source: torch/csrc/autograd/function.h, Node::task_should_compute_output.
        """
        del wanted
        return self.call(inputs)

    @property
    def device(self) -> Device:
        """Where the node runs."""
        return self.runs_on

    @property
    def module(self) -> str:
        """The part of a model that ran when the node was made."""
        return self.module_path

    def name(self) -> str:
        """How traces and messages call this node: its class's name."""
        return type(self).__name__

    @property
    def next_functions(self) -> tuple[Edge, ...]:
        """PyTorch's name of `next_edges`."""
        return self.next_edges

    @property
    def num_inputs(self) -> int:
        """How many gradients the node takes."""
        return len(self.input_metadata)

    def register_hook(self, fn: PostHook) -> RemovableHandle:
        """Call `fn` after the node, with what it returned and what it was given.

        What `fn` returns, a tuple or None, takes the place of what the node returned.
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
        """Call `fn` before the node, with what it is given.

        What `fn` returns, a tuple or None, takes the place of what the node is given.
        """
        shown, taken = type(self).shown, type(self).taken

        def call(inputs: Sequence[Gradient]) -> Sequence[Gradient] | None:
            return _taken(taken, fn(tuple(map(shown, inputs))))

        return append(self.hooks_to_add_to(), "pre", named_like(call, fn))

    def hooks_to_add_to(self) -> NodeHooks:
        """The node's hooks, made if it has none."""
        if self.hooks is None:
            self.hooks = NodeHooks()
        return self.hooks

    @staticmethod
    def shown(gradient: Gradient) -> Gradient:
        """A gradient as registered hooks see it; a subclass may dress it up."""
        return gradient

    @staticmethod
    def taken(gradient: Gradient) -> Gradient:
        """What a registered hook returned, as the engine wants it."""
        return gradient

    @property
    def metadata(self) -> dict[str, Any]:
        """Whatever anybody wants to remember of this node; as long-lived as it is."""
        if getattr(self, "_metadata", None) is None:  # most nodes never have any
            self._metadata = {}
        return self._metadata

    @property
    def _input_metadata(self) -> tuple[InputMetadata | None, ...]:
        """PyTorch's name of `input_metadata`."""
        return tuple(self.input_metadata)

    def _sequence_nr(self) -> int:
        """PyTorch's name of `sequence_nr`."""
        return self.sequence_nr

    def _set_sequence_nr(self, value: int) -> None:
        """Let the node run as if it had been made as the `value`-th."""
        self.sequence_nr = value

    def trace_definition(self, chunk: list[Any]) -> None:
        """Add what a trace says of the node: as `gradviz.trace.graph.definition_of`.

        Read here, where it is known where the fields are, it takes a sixth of the time.
        """
        if len(self.next_edges) != 1:
            self._add_definition(chunk, "")
            return
        # Nearly all have one: told at once, without a list, it takes half as long.
        edge = self.next_edges[0]
        after = edge.node
        # Compiled, so many as here are added one by one, without making a tuple first.
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
        """Let go of saved tensors; called after a pass that does not keep the graph."""

    def __repr__(self) -> str:
        return f"<{name_of(self)} #{self.id}>"


#: How much a trace reads of a node that has one edge.
_SIZE_WITH_ONE_EDGE: Final = NUM_BEFORE_EDGES + 2

#: How all nodes are called whose class says nothing else.
_CLASS_NAME: Final = Node.name


def begin(
    node: Node,
    next_edges: tuple[Edge, ...],
    input_metadata: Sequence[InputMetadata | None],
    device: Device,
    sequence_nr: int,
) -> None:
    """Give a new node what all nodes have; for subclasses with edges that are checked.

    Args:
        node: The node.
        next_edges: As that of `Node`.
        input_metadata: As that of `Node`.
        device: As that of `Node`.
        sequence_nr: As that of `Node`.
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
    """As `begin`, and tell nobody yet."""
    node.id = next(NODE_IDS)
    node.sequence_nr = sequence_nr
    node.next_edges = next_edges
    node.input_metadata = input_metadata
    node.runs_on = device
    node.forward_stream = None if device is CPU else stream_for(device)
    node.module_path = module_path()
    node.hooks = None
    topological_nr = 0
    for edge in next_edges:
        after = edge.node
        if after is not None and after.topological_nr >= topological_nr:
            topological_nr = after.topological_nr + 1
    node.topological_nr = topological_nr


def announce(node: Node, saved_bytes: int = -1) -> None:
    """Tell a listener and anomaly mode of a node that was made.

    Args:
        node: The node.
        saved_bytes: What it saved, if that is known already and anything.
    """
    if LISTENERS and (listener := probe.current) is not None:
        reports = listener.for_this_thread()
        if saved_bytes < 0:
            reports.node_created(node)
        else:
            reports.node_recorded(node, saved_bytes)
    if SWITCHED_ON:
        anomaly.remember(node)


def _taken(
    taken: Callable[[Gradient], Gradient], result: object
) -> tuple[Gradient, ...] | None:
    if result is None:
        return None
    if not isinstance(result, tuple):
        raise TypeError(f"expected tuple, but hook returned '{type(result).__name__}'")
    return tuple(map(taken, result))
