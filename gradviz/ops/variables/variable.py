"""The array that remembers its origin, for all ops.

Here is the graph side of a tensor. Arithmetic, printing and the rest of what a user
sees are in `gradviz.tensors`, whose Tensor is the class that ops return.
"""

import enum
import sys
import warnings
import weakref
from collections.abc import Callable
from typing import Any, Final, Protocol, TypeAlias, TypeVar

import numpy as np
from numpy import generic, ndarray  # in one step: each op asks

from gradviz.backends.base import Array
from gradviz.backends.device import CPU, Device
from gradviz.engine.graph import basic_nodes
from gradviz.engine.graph.anomaly import SWITCHED_ON
from gradviz.engine.graph.grad_mode import grad_enabled
from gradviz.engine.graph.input_buffer import fits, is_writeable, owns_its_memory
from gradviz.engine.graph.node import (
    Edge,
    InputMetadata,
    Node,
    NodeHooks,
    TensorHooks,
    checked_hooks,
    metadata_for,
)
from gradviz.engine.graph.protocols import Gradient
from gradviz.locks import SafeLock
from gradviz.ops.conventions.memory_layout import is_dense, is_laid_out_as
from gradviz.ops.variables import inference
from gradviz.ops.variables.grad_rules import check_grad, check_grad_dtype
from gradviz.ops.variables.inference import INFERENCE_BLOCKS
from gradviz.ops.variables.version import INFERENCE, Version

#: Arguments and results of ops: an array, a `Variable`, sometimes a number. From arrays
#: comes an array; if a variable is among them, a variable.
Value: TypeAlias = Any

#: The edge of what needs no gradient.
NOWHERE: Final = Edge(None)


class _AsElements(enum.Enum):
    """The one value says that gradients have the dtype of the elements."""

    AS_ELEMENTS = enum.auto()


AS_ELEMENTS: Final = _AsElements.AS_ELEMENTS


class ViewOf(Protocol):
    """A variable's reference to the one whose memory it views.

    See `gradviz.ops.variables.view`.

    Attributes:
        base: The variable that has the memory; itself no view.
    """

    base: "Variable"

    def refresh(self, view: "Variable") -> None:
        """Update the place of `view` in the graph, if its base was changed."""


class Variable:
    """An array and its place in the graph.

    A leaf was made by the user: it has no `edge`, and a `grad` if it needs one. What an
    op made has the edge to the node that the op recorded, if it recorded one.

    Attributes:
        array: The elements, an array of some backend.
        needs_grad: True if gradients flow here; `requires_grad` without its checks.
        edge: Edge along which the gradient of an op's result goes; None for a leaf.
        version: Counts changes of the memory; None as long as nobody asks.
        viewed: Reference to the variable that it is a view of, None if of nothing. A
            view's `needs_grad` and `edge` may be out of date until `ViewOf.refresh`;
            `gradient_edge` and the properties of this class see to that.
    """

    __slots__ = (
        "__weakref__",
        "_accumulator",
        "_grad",
        "_grad_dtype",
        "_hooks",
        "array",
        "edge",
        "needs_grad",
        "version",
        "viewed",
    )

    array: Array
    needs_grad: bool
    edge: Edge | None
    version: Version | None
    viewed: ViewOf | None
    _grad: "Variable | None"
    _grad_dtype: "np.dtype[Any] | _AsElements | None"
    _accumulator: "AccumulateGrad | None"
    _hooks: TensorHooks | None

    @property
    def device(self) -> Device:
        """Device of the array."""
        return device_of(self.array)

    @property
    def grad_fn(self) -> Node | None:
        """The node of the op that made this, None for a leaf."""
        if self.viewed is not None:
            self.viewed.refresh(self)
        return None if self.edge is None else self.edge.node

    @property
    def output_nr(self) -> int:
        """Index of this among the outputs of `grad_fn`."""
        if self.viewed is not None:
            self.viewed.refresh(self)
        return 0 if self.edge is None else self.edge.input_nr

    @property
    def is_leaf(self) -> bool:
        """True if no recorded op made this."""
        return self.grad_fn is None

    @property
    def retains_grad(self) -> bool:
        """True if `retain_grad` was called on the result of an op."""
        node = self.grad_fn
        return (
            node is not None
            and node.hooks is not None
            and self.output_nr in node.hooks.retains_grad
        )

    @property
    def requires_grad(self) -> bool:
        """True if gradients flow here.

        Raises:
            RuntimeError: It was set on what an op made, or on other than floats.
        """
        if self.viewed is None or self.edge is not None:
            return self.needs_grad
        return self.needs_grad or self.viewed.base.needs_grad

    @requires_grad.setter
    def requires_grad(self, requires_grad: bool) -> None:
        if not isinstance(requires_grad, bool):
            raise RuntimeError("requires_grad must be a bool")
        if not self.is_leaf:
            hint = (
                ""
                if requires_grad
                else (
                    " If you want to use a computed variable in a subgraph that doesn't"
                    " require differentiation use var_no_grad = var.detach()."
                )
            )
            raise RuntimeError(
                f"you can only change requires_grad flags of leaf variables.{hint}"
            )
        if requires_grad and self.array.dtype.kind not in "fc":
            raise RuntimeError(
                "only Tensors of floating point and complex dtype can require gradients"
            )
        if requires_grad and self.version is INFERENCE and not inference.is_on():
            raise RuntimeError(
                "Setting requires_grad=True on inference tensor outside InferenceMode "
                "is not allowed."
            )
        self.needs_grad = requires_grad
        self.edge = None

    @requires_grad.deleter
    def requires_grad(self) -> None:
        raise RuntimeError("requires_grad must be a bool")

    @property
    def grad(self) -> Value | None:
        """The sum of the gradients so far, None before the first.

        Raises:
            TypeError: Set to something else than a tensor or None.
            RuntimeError: Set to a tensor of another shape, dtype or device.
        """
        if self._grad is None and not self.is_leaf and not self.retains_grad:
            warnings.warn(
                "The .grad attribute of a Tensor that is not a leaf Tensor is being "
                "accessed. Its .grad attribute won't be populated during "
                "autograd.backward(). If you indeed want the .grad field to be "
                "populated for a non-leaf Tensor, use .retain_grad() on the non-leaf "
                "Tensor.",
                UserWarning,
                stacklevel=2,
            )
        return self._grad

    @grad.setter
    def grad(self, grad: Value | None) -> None:
        if grad is not None:
            if not isinstance(grad, Variable):
                raise TypeError(
                    f"assigned grad expected to be a Tensor or None but got grad of "
                    f"type {type(grad).__name__}"
                )
            if grad is self:
                raise RuntimeError("can't assign Variable as its own grad")
            dtype = self._gradient_metadata().dtype
            check_grad(grad.array, grad.device, self.array, self.device, dtype)
        self._grad = grad

    @grad.deleter
    def grad(self) -> None:
        self._grad = None

    @property
    def grad_dtype(self) -> np.dtype[Any] | None:
        """The dtype that gradients of this leaf have; None for any (C17).

        Raises:
            RuntimeError: This is not a leaf; or set while there is another gradient.
        """
        if not self.is_leaf:
            raise RuntimeError("grad_dtype can only be accessed on leaf tensors.")
        dtype: np.dtype[Any] | None = self._gradient_metadata().dtype
        return dtype

    @grad_dtype.setter
    def grad_dtype(self, dtype: Any) -> None:  # noqa: ANN401 - all that NumPy takes
        if not self.is_leaf:
            raise RuntimeError("grad_dtype can only be set on leaf tensors.")
        wanted = None if dtype is None else np.dtype(dtype)
        check_grad_dtype(wanted, raw(self._grad))
        self._grad_dtype = wanted
        if self._accumulator is not None:
            self._accumulator.input_metadata = (self._gradient_metadata(),)

    def _gradient_metadata(self) -> InputMetadata:
        """Return the expected metadata of gradients of this leaf."""
        if self._grad_dtype is AS_ELEMENTS:
            return metadata_of(self.array)
        return metadata_for(self.array.shape, self._grad_dtype, self.device)

    def shared_version(self) -> Version:
        """The count of changes, for another variable with the same memory to share."""
        if self.version is None:
            with _publishing:
                if self.version is None:
                    self.version = Version()
        return self.version

    def accumulator(self) -> "AccumulateGrad":
        """The node that adds to this leaf's `grad`: the same as long as it is in use.

        See Note [Leaves and their nodes].
        """
        node = self._accumulator
        if node is not None:
            if (
                node.runs_on is CPU
                and (node.hooks is None or not node.has_own_hooks)
                and not SWITCHED_ON
            ):
                return node
            del node  # or it would count as used
        return self.used_accumulator() or self._new_accumulator()

    @property
    def has_accumulator(self) -> bool:
        """True if an op has led a graph to this leaf."""
        return self._accumulator is not None

    def used_accumulator(self) -> "AccumulateGrad | None":
        """This leaf's node, if a graph leads there."""
        if self._accumulator is None:
            return None
        is_held = _references_to_accumulator(self) > _OWN_REFERENCES
        return self._accumulator if is_held else None

    def _new_accumulator(self) -> "AccumulateGrad":
        node = AccumulateGrad(self, self._gradient_metadata())
        with _publishing:  # two threads may be here: both take the first one's
            used = self.used_accumulator()
            if used is None:
                used = self._accumulator = node
        if self._hooks is not None:
            used.hooks_to_add_to()
        return used

    def forget_accumulator(self) -> None:
        """Have another node from now on; graphs go on leading to the one so far.

        Source: torch/csrc/autograd/variable.cpp, VariableHooks::set_data.
        """
        if self.used_accumulator() is not None:
            self.own_hooks()  # also those that are registered from now on
        self._accumulator = None

    def replace_array(self, array: Array) -> None:
        """Have other elements, of whatever shape.

        A node that no graph leads to expects the old ones. One that is in use stays.
        """
        self.array = array
        if self.used_accumulator() is None:
            self._accumulator = None

    def own_hooks(self) -> TensorHooks:
        """The hooks of this tensor, which every node of a leaf shows."""
        if self._hooks is None:
            self._hooks = TensorHooks()
            if self._accumulator is not None:
                self._accumulator.hooks_to_add_to()
        return self._hooks


def _references_to_accumulator(leaf: Variable) -> int:
    return sys.getrefcount(leaf._accumulator)


def _own_references() -> int:
    """Return the count with only the leaf holding the node; interpreters differ."""
    leaf = Variable.__new__(Variable)  # when compiled: new
    leaf._accumulator = object()  # type: ignore[assignment]
    return _references_to_accumulator(leaf)


_OWN_REFERENCES: Final = _own_references()

V = TypeVar("V", bound=Variable)

_publishing: Final = SafeLock()

_new_args: tuple[type[Variable]] = (Variable,)
_new_result: Callable[..., Any] = Variable.__new__  # found in one step: each op asks


def result_class(cls: type[V]) -> type[V]:
    """Make `cls` the class of ops' results; a class decorator."""
    global _new_args, _new_result
    _new_args, _new_result = (cls,), cls.__new__
    return cls


def variable(array: Array, edge: Edge | None = None) -> Value:
    """A variable of the class that ops return; it needs a gradient if it has an edge.

    Args:
        array: An array, or a NumPy scalar, which becomes an array.
        edge: Edge along which its gradient goes.
    """
    new = _new_result(*_new_args)
    if type(array) is not ndarray and isinstance(array, generic):
        array = np.asarray(array)
    new.array = array
    new.edge = edge
    new.version = None
    new.viewed = None
    new._grad = None
    new._grad_dtype = AS_ELEMENTS
    new._accumulator = None
    new._hooks = None
    new.needs_grad = edge is not None
    if edge is None and INFERENCE_BLOCKS and inference.is_on():
        new.version = INFERENCE
    return new


def detached(input: Variable) -> Value:
    """The same memory outside the graph; changes of it are counted together."""
    new = variable(input.array)
    new.version = input.version or input.shared_version()
    return new


def zeros_like(x: Value) -> Value:
    """Zeros of the shape, dtype, device and class of `x`, outside the graph."""
    zeros = np.zeros_like(raw(x))
    return variable(zeros) if isinstance(x, Variable) else zeros


def raw(value: Value) -> Value:
    """The array of a variable; anything else as it is."""
    if isinstance(value, Variable):
        tensor = value  # when compiled: typed
        return tensor.array
    return value


def is_inference(variable: Variable) -> bool:
    """Return whether it was made in inference mode."""
    return variable.version is INFERENCE


def as_tensor(gradient: Gradient) -> Gradient:
    """Return a gradient of the engine as a tensor."""
    if gradient is None or isinstance(gradient, Variable):
        return gradient
    return variable(gradient)


def as_flowing(gradient: Gradient) -> Gradient:
    """A tensor, as the engine wants it in the current pass."""
    return gradient if grad_enabled() else raw(gradient)


def gradient_edge(value: object) -> Edge:
    """Return the edge of the gradient of an op's argument; `NOWHERE` if unwanted."""
    if isinstance(value, Variable):
        source = value  # when compiled: typed
        if source.viewed is not None:
            source.viewed.refresh(source)
        if source.edge is not None:
            return source.edge
        if source.needs_grad:
            node = source.accumulator()
            edge = LeafEdge.__new__(LeafEdge)  # when compiled: new
            edge.node = node
            edge.input_nr = 0
            edge.leaf = node._leaf()  # not `value`: it may stand for the leaf
            return edge
    return NOWHERE


class LeafEdge(Edge):
    """The edge to a leaf's node; see Note [Leaves and their nodes].

    Attributes:
        leaf: Kept alive, as the node itself does not.
    """

    __slots__ = ("leaf",)

    leaf: Variable


def device_of(array: Array) -> Device:
    """Return the device of an array of a class that a variable may hold."""
    return CPU if type(array) is ndarray else array.device


def metadata_of(array: Array) -> InputMetadata:
    """Return the expected metadata of a gradient of `array`."""
    device = CPU if type(array) is ndarray else array.device
    return metadata_for(array.shape, array.dtype, device)


class AccumulateGrad(basic_nodes.AccumulateGrad):
    """Puts the gradient of a variable into its `grad`, as a variable.

    Note [Leaves and their nodes]
    ~~~~~~~~~~~~~~~~~~~~~~~~~~~~~
    In PyTorch the node owns the leaf, and the leaf knows the node as long as a graph
    leads there; after that another one is made. That takes a microsecond and a half,
    for each parameter in each step. So here the leaf owns its node, the node knows the
    leaf weakly, and the edges to the node keep the leaf alive (`LeafEdge`). A node to
    which no graph leads any more is used again, if nobody can tell it from a new one:
    it has no hooks of its own and no stream, and expects what a new one would.

    Hooks that were registered on the leaf are the leaf's. Its node shows them, and so
    does a node that it had before, if graphs still lead there: a leaf gets another one
    when its elements are replaced by those of another dtype or device (`x.data = ...`)
    or by whatever (`x.set_()`). Hooks that were registered on the node go with it.
    """

    __slots__ = ()

    _leaf: Callable[[], Any]
    input_metadata: tuple[InputMetadata, ...]

    @property
    def leaf(self) -> Any:  # noqa: ANN401 - the engine knows a leaf by protocol
        """The variable; None if it is gone, and so is every graph that led here."""
        return self._leaf()

    @leaf.setter
    def leaf(self, leaf: Any) -> None:  # noqa: ANN401 - as above
        self._leaf = weakref.ref(leaf)

    shown = staticmethod(as_tensor)
    taken = staticmethod(as_flowing)

    def hooks_to_add_to(self) -> NodeHooks:
        """The node's hooks, and with them those of its leaf."""
        if self.hooks is None:
            leaf = self.leaf
            of_leaf = None if leaf is None else leaf.own_hooks()
            if self.hooks is None:  # the leaf may have asked for them
                self.hooks = NodeHooks(of_leaf)
        return checked_hooks(self, self.hooks)

    @property
    def has_own_hooks(self) -> bool:
        """True if it has hooks that a new node of the leaf would not have."""
        if self.hooks is None:
            return False
        hooks = checked_hooks(self, self.hooks)
        return bool(hooks.pre or hooks.post)

    # The engine has checked what comes here, and that this is a leaf.

    def stored(self, leaf: Any) -> Gradient:  # noqa: ANN401 - as `leaf`
        """The leaf's ``.grad``, without the warning that users get."""
        tensor: Variable = leaf
        return tensor._grad

    def store(self, leaf: Any, gradient: Gradient) -> None:  # noqa: ANN401 - as `leaf`
        """Set the leaf's ``.grad``, without the checks that users get."""
        tensor: Variable = leaf
        tensor._grad = gradient

    def wrapped(self, gradient: Gradient) -> Gradient:
        """A raw gradient as a variable; with ``create_graph`` it is one already."""
        return gradient if isinstance(gradient, Variable) else variable(gradient)

    def may_keep(self, leaf: Any, gradient: Gradient) -> bool:  # noqa: ANN401 - as `leaf`
        """Return whether it owns its memory, laid out like that of the leaf."""
        tensor: Variable = leaf
        return owns_its_memory(gradient) and is_laid_out_as(gradient, tensor.array)

    def copied(self, leaf: Any, gradient: Gradient) -> Gradient:  # noqa: ANN401 - as `leaf`
        """A copy, laid out as the leaf; with ``create_graph`` an op makes it.

        Source: torch/csrc/autograd/utils/grad_layout_contract.h, clone_obey_contract.
        """
        array, given, has_gaps = leaf.array, raw(gradient), not is_dense(leaf.array)
        copy: Any = gradient
        if isinstance(gradient, Variable):
            if has_gaps:
                return copy.clone() if given.flags.c_contiguous else copy.contiguous()
        elif has_gaps or (array.flags.c_contiguous and given.shape == array.shape):
            return variable(given.copy())
        copy = variable(np.empty_like(array, dtype=given.dtype))
        return copy.copy_(self.wrapped(gradient))

    def may_increase(self, stored: Gradient, gradient: Gradient) -> bool:
        """Always: ``.grad`` keeps its dtype and shape, whatever the leaf has by now."""
        del stored, gradient
        return True

    def increased(self, stored: Gradient, gradient: Gradient) -> Gradient:
        """The memory of ``.grad`` changes, and that is counted."""
        array = stored.array
        if not (fits(array, gradient) and is_writeable(array)):
            stored += self.wrapped(gradient)  # the op finds the words, if it may not be
            return stored
        np.add(array, gradient, out=array)
        if stored.version is not INFERENCE:
            stored.shared_version().value += 1
        return stored
