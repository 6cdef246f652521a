"""Methods that write to the elements of the tensor."""

from collections.abc import Callable
from typing import Any, Self

import numpy as np

from gradviz.backends.base import Array
from gradviz.backends.device import CPU
from gradviz.ops.recording.in_place import check_changeable, count_change, write
from gradviz.ops.recording.variable import Value, Variable, metadata_of
from gradviz.ops.shapes import assignment


class Assignment(Variable):
    """Assignment to all elements, or to some.

    Most methods are functions of `gradviz.ops.shapes.assignment`, described there.
    """

    __slots__ = ()

    copy_ = assignment.copy_
    fill_ = assignment.fill_
    zero_ = assignment.zero_

    def set_(self, source: Variable | None = None) -> Self:
        """Give the tensor the memory of `source`, or none at all.

        Raises:
            RuntimeError: The tensor is a leaf that requires gradients, or part of a
                graph, which could not be followed through here.
        """
        check_changeable(self)
        if not self.is_leaf:
            raise RuntimeError(
                f"set_() of a tensor that {self.grad_fn} made is not differentiable: "
                f"call it on a leaf, or on detach()"
            )
        array = self.array.reshape(-1)[:0] if source is None else source.array
        take_over(self, array)
        count_change(self)
        return self

    def apply_(self, callable: Callable[[Any], Any]) -> Self:  # noqa: A002 - PyTorch's
        """Set each element to what `callable` makes of it; slow, and on the CPU only.

        Raises:
            RuntimeError: The tensor requires gradients.
            TypeError: It is elsewhere.
        """
        return self._filled("apply_", callable)

    def map_(self, tensor: Variable, callable: Callable[[Any, Any], Any]) -> Self:  # noqa: A002 - PyTorch's
        """As `apply_`, of two elements: this tensor's and that of `tensor` there."""
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

    def __setitem__(self, index: Value, value: Value) -> None:
        assignment.setitem(self, index, value)


def take_over(x: Variable, array: Array) -> None:
    """Give `x` another array."""
    if metadata_of(x.array) != metadata_of(array):
        x._accumulator = None  # its node expects what the old elements were
    x.array = array
