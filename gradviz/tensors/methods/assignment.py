"""Methods that write to the elements of the tensor."""

from collections.abc import Callable
from typing import Any, Self

import numpy as np

from gradviz.backends.base import Array
from gradviz.backends.device import CPU
from gradviz.ops.conventions.dtype_names import cpp_name
from gradviz.ops.conventions.promotion import Operand
from gradviz.ops.dispatch.differentiable import differentiable
from gradviz.ops.dispatch.in_place import (
    check_changeable,
    count_change,
    rebase,
    write,
)
from gradviz.ops.shapes import assignment
from gradviz.ops.shapes.index_arrays import Subscript
from gradviz.ops.variables.variable import (
    Value,
    Variable,
    device_of,
    gradient_edge,
    variable,
)


class Assignment(Variable):
    """Assignment to all elements, or to some."""

    __slots__ = ()

    def set_(self, source: Variable | None = None) -> Self:
        """Give the tensor the memory of `source`, or none at all.

        Backward cannot go through here, which it says if it comes to that.

        Raises:
            TypeError: `source` is not a tensor.
            RuntimeError: The tensor is a leaf that requires gradients, or `source` has
                another dtype or is elsewhere.
        """
        if not isinstance(source, Variable | None):
            raise TypeError(
                f"set_(): argument 'source' (position 1) must be Tensor, not "
                f"{type(source).__name__}"
            )
        array = self.array.reshape(-1)[:0] if source is None else source.array
        check_changeable(self, (), {"source": source})
        _check_alike(self, array)
        edge = gradient_edge(self) if self.requires_grad else None
        result = _elements_of(source, variable(self.array, edge), array)
        self.forget_accumulator()
        self.array = array
        count_change(self)
        if result.edge is not None:
            rebase(self, result)
        return self

    def apply_(self, callable: Callable[[Any], Any]) -> Self:  # noqa: A002 - PyTorch's
        """Apply `callable` to each element in place; slow, and on the CPU only.

        Raises:
            RuntimeError: The tensor requires gradients.
            TypeError: It is elsewhere.
        """
        return self._filled("apply_", callable)

    def map_(self, tensor: Variable, callable: Callable[[Any, Any], Any]) -> Self:  # noqa: A002 - PyTorch's
        """Set each element to a function of it and of the one of `tensor`."""
        return self._filled("map_", callable, tensor)

    def _filled(
        self, name: str, function: Callable[..., Any], *others: Variable
    ) -> Self:
        every: tuple[Variable, ...] = (self, *others)
        if any(one.requires_grad for one in every):
            raise RuntimeError(
                f"Can't call {name}() on Variable that requires grad. Use "
                f"var.detach().{name}() instead."
            )
        if any(one.device is not CPU for one in every):
            raise TypeError(f"{name} is only implemented on CPU tensors")
        arrays = np.broadcast_arrays(*[one.array for one in every])
        elements = map(function, *[one.reshape(-1).tolist() for one in arrays])
        write(self, np.array(list(elements), self.array.dtype).reshape(arrays[0].shape))
        return self

    def __setitem__(self, index: Subscript, value: Operand) -> None:
        assignment.setitem(self, index, value)


def _no_derivative(grad: Value) -> Value:
    del grad
    raise RuntimeError("derivative for set_ is not implemented")


@differentiable("NotImplemented", source=_no_derivative, x=_no_derivative)
def _elements_of(source: Array | None, x: Array, array: Array) -> Array:
    """Return the memory for `set_`: `array`, which is that of `source` if given."""
    del source, x
    return array


def _check_alike(x: Variable, array: Array) -> None:
    """Raise PyTorch's error if `x` cannot have this memory."""
    if array.dtype != x.array.dtype:
        raise RuntimeError(
            f"Could not set tensor of type {cpp_name(array.dtype)} to a tensor of type "
            f"{cpp_name(x.array.dtype)}"
        )
    if device_of(array) is not x.device:
        raise RuntimeError(
            f'Attempted to set the storage of a tensor on device "{x.device}" to a '
            f'storage on different device "{device_of(array)}".  This is no longer '
            f"allowed; the devices must match."
        )
