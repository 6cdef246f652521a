"""The array that remembers where it comes from: what ops take, return and save.

Here is the graph side of a tensor. Arithmetic, printing and the rest of what a user
sees are in `gradviz.tensors`, whose Tensor is the class that ops return.
"""

import threading
import warnings
import weakref
from collections.abc import Callable
from typing import Any, Final, TypeAlias, TypeVar

import numpy as np

from gradviz.backends.base import Array
from gradviz.backends.device import CPU, Device
from gradviz.engine import basic_nodes
from gradviz.engine.node import Edge, InputMetadata, Node
from gradviz.engine.protocols import Gradient

#: What ops take and return: an array, a `Variable`, sometimes a number. From arrays
#: comes an array; if a variable is among them, a variable.
Value: TypeAlias = Any

#: The edge of what needs no gradient.
NOWHERE: Final = Edge(None)


class Variable:
    """An array and its place in the graph.

    A leaf was made by the user: it has no `edge`, and a `grad` if it needs one. What an
    op made has the edge to the node that the op recorded, if it recorded one.

    Attributes:
        array: The elements, an array of some backend.
        needs_grad: Whether gradients flow here; `requires_grad` without its checks.
        edge: Where the gradient of an op's result goes; None for a leaf.
    """

    __slots__ = ("__weakref__", "_accumulator", "_grad", "array", "edge", "needs_grad")

    array: Array
    needs_grad: bool
    edge: Edge | None
    _grad: "Variable | None"
    _accumulator: "Callable[[], AccumulateGrad | None] | None"

    @property
    def device(self) -> Device:
        """Where the array is."""
        return device_of(self.array)

    @property
    def grad_fn(self) -> Node | None:
        """The node of the op that made this, None for a leaf."""
        return None if self.edge is None else self.edge.node

    @property
    def output_nr(self) -> int:
        """Which output of `grad_fn` this is."""
        return 0 if self.edge is None else self.edge.input_nr

    @property
    def is_leaf(self) -> bool:
        """Whether no recorded op made this."""
        return self.edge is None

    @property
    def retains_grad(self) -> bool:
        """Whether `retain_grad` was called on what an op made."""
        node = self.grad_fn
        return (
            node is not None
            and node.hooks is not None
            and self.output_nr in node.hooks.retains_grad
        )

    @property
    def requires_grad(self) -> bool:
        """Whether gradients flow here.

        Raises:
            RuntimeError: When set on what an op made, or on other than floats.
        """
        return self.needs_grad

    @requires_grad.setter
    def requires_grad(self, requires_grad: bool) -> None:
        if self.edge is not None:
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
        self.needs_grad = requires_grad

    @property
    def grad(self) -> Value:
        """The sum of the gradients so far, None before the first.

        Raises:
            TypeError: Set to something else than a tensor or None.
            RuntimeError: Set to a tensor of another shape, dtype or device.
        """
        if self._grad is None and self.edge is not None and not self.retains_grad:
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
    def grad(self, grad: "Variable | None") -> None:
        if grad is not None:
            self._check_grad(grad)
        self._grad = grad

    def _check_grad(self, grad: object) -> None:
        if not isinstance(grad, Variable):
            raise TypeError(
                f"assigned grad expected to be a Tensor or None but got grad of type "
                f"{type(grad).__name__}"
            )
        if grad.array.dtype != self.array.dtype:
            raise RuntimeError(
                f"attempting to assign a gradient with dtype '{grad.array.dtype}' to a "
                f"tensor with dtype '{self.array.dtype}'"
            )
        if grad.device is not self.device:
            raise RuntimeError(
                f"attempting to assign a gradient located on device '{grad.device}' to "
                f"a tensor located on device '{self.device}'"
            )
        if grad.array.shape != self.array.shape:
            raise RuntimeError(
                f"attempting to assign a gradient of size '{list(grad.array.shape)}' "
                f"to a tensor of size '{list(self.array.shape)}'. Please ensure that "
                f"the gradient and the tensor are the same size"
            )

    def accumulator(self, *, keep: bool = False) -> "AccumulateGrad":
        """The node that adds to this leaf's `grad`: the same as long as it is in use.

        Args:
            keep: Let it live as long as the leaf, because it has hooks.
        """
        node = self._accumulator and self._accumulator()
        if node is None:
            node = AccumulateGrad(self, metadata_of(self.array), self.device)
            reference: Callable[[], AccumulateGrad | None] = weakref.ref(node)
            with _publishing:  # two threads may be here: both take the first one's
                known = self._accumulator and self._accumulator()
                if known is None:
                    self._accumulator = reference
                else:
                    node = known
        if keep:
            kept = node
            self._accumulator = lambda: kept
        return node


V = TypeVar("V", bound=Variable)

_publishing: Final = threading.Lock()

_result_class: type[Variable] = Variable


def result_class(cls: type[V]) -> type[V]:
    """Make `cls` the class of what ops return; a class decorator."""
    global _result_class
    _result_class = cls
    return cls


def variable(array: Array, edge: Edge | None = None) -> Value:
    """A variable of the class that ops return; it needs a gradient if it has an edge.

    Args:
        array: An array, or a NumPy scalar, which becomes an array.
        edge: Where its gradient goes.
    """
    cls = _result_class
    new = cls.__new__(cls)
    new.array = np.asarray(array) if isinstance(array, np.generic) else array
    new.needs_grad = edge is not None
    new.edge = edge
    new._grad = None
    new._accumulator = None
    return new


def raw(value: Value) -> Value:
    """The array of a variable; anything else as it is."""
    return value.array if isinstance(value, Variable) else value


def gradient_edge(value: object) -> Edge:
    """Where the gradient of an op's argument goes; `NOWHERE` if none is wanted."""
    if isinstance(value, Variable):
        if value.edge is not None:
            return value.edge
        if value.needs_grad:
            return Edge(value.accumulator(), 0)
    return NOWHERE


def device_of(array: Array) -> Device:
    """Where an array is, for the arrays that a variable may hold."""
    return CPU if type(array) is np.ndarray else array.device


def metadata_of(array: Array) -> InputMetadata:
    """What a gradient of `array` must look like."""
    return InputMetadata(array.shape, array.dtype, device_of(array))


class AccumulateGrad(basic_nodes.AccumulateGrad):
    """Puts the gradient of a variable into its `grad`, as a variable."""

    __slots__ = ()

    def wrapped(self, gradient: Gradient) -> Gradient:
        """A raw gradient as a variable; with ``create_graph`` it is one already."""
        return gradient if isinstance(gradient, Variable) else variable(gradient)
