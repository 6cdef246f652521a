"""The Tensor: the users' array, with PyTorch's names and behavior."""

from collections.abc import Iterator
from typing import Any

import numpy as np

from gradviz.backends.base import Array, copy_to
from gradviz.backends.device import CPU, Device
from gradviz.ops.conventions.promotion import DTypeLike, get_default_dtype
from gradviz.ops.dispatch.public import Home
from gradviz.ops.table import publish
from gradviz.ops.variables.variable import (
    Variable,
    device_of,
    result_class,
    variable,
)
from gradviz.tensors.methods.assignment import Assignment
from gradviz.tensors.methods.copies import Copies
from gradviz.tensors.methods.description import Description
from gradviz.tensors.methods.draws import Draws
from gradviz.tensors.methods.graph import GraphPlace
from gradviz.tensors.methods.likewise import Likewise, constructed
from gradviz.tensors.methods.numpy_protocol import NumpyProtocol
from gradviz.tensors.methods.operators import Operators
from gradviz.tensors.methods.placement import Placement
from gradviz.tensors.methods.shapes import Shapes
from gradviz.tensors.methods.variants import Variants
from gradviz.tensors.printing import format_tensor


class _OldConstructor(type):
    """Lets ``gv.Tensor(...)`` make tensors, though ops make them without arguments."""

    def __call__(cls, *args: Any, **kwargs: Any) -> Any:  # noqa: ANN401 - see `new`
        if any("__new__" in vars(base) for base in _written(cls)):
            return super().__call__(*args, **kwargs)  # a subclass that knows better
        has_init = any("__init__" in vars(base) for base in _written(cls))
        device = None if has_init else kwargs.pop("device", None)
        if kwargs and not has_init:
            raise TypeError(
                f"new() received an invalid combination of arguments - got "
                f"{', '.join(kwargs)}, but expected lengths, or elements, and device"
            )
        place = CPU if device is None else Device(device)
        made = constructed(args, get_default_dtype(), place)
        if cls is not Tensor:
            made.__class__ = cls
            if has_init:
                made.__init__(*args, **kwargs)
        return made


def _written(cls: type) -> Iterator[type]:
    """Its bases that may have a constructor: those of a compiled class say nothing."""
    return (base for base in cls.__mro__ if base not in (Variable, object))


@result_class
class Tensor(
    NumpyProtocol,
    Assignment,
    Copies,
    Description,
    Draws,
    GraphPlace,
    Likewise,
    Operators,
    Placement,
    Shapes,
    Variants,
    metaclass=_OldConstructor,
):
    """An array that records the ops on it, if it requires gradients.

    Make one with `gradviz.tensor`, `gradviz.zeros` and their like. PyTorch's old
    constructor is there too: `Tensor` takes what `Tensor.new` does, and makes floats.
    Source: torch/_tensor.py.
    """

    __slots__ = ("__dict__",)

    def __repr__(self) -> str:
        return format_tensor(self)


publish(Home.TENSOR, Tensor)


def make(
    array: Array,
    dtype: DTypeLike = None,
    device: Device | str | None = None,
    *,
    requires_grad: bool = False,
) -> Tensor:
    """A leaf.

    Args:
        array: The elements, in host memory or on a device; not copied unless moved.
        dtype: Their type, if another.
        device: Their device, if another.
        requires_grad: True if gradients are wanted.

    Raises:
        RuntimeError: Gradients are wanted of other than floats.
        RuntimeError: There is no such device.
    """
    if dtype is not None:
        array = array.astype(np.dtype(dtype), copy=False)
    place = device_of(array) if device is None else Device(device)
    if place is not device_of(array):
        array = copy_to(array, place)
    if requires_grad and array.dtype.kind not in "fc":
        raise RuntimeError(
            "Only Tensors of floating point and complex dtype can require gradients"
        )
    result: Tensor = variable(array)
    result.needs_grad = requires_grad
    return result
