"""Writing to the elements of a tensor: all of them, or those that an index names."""

import numbers
import warnings
from collections.abc import Iterator
from typing import Any

import numpy as np

from gradviz.backends.arrays.wrapped_array import WrappedArray
from gradviz.backends.base import Array, copy_into_pinned, copy_to
from gradviz.backends.device import CPU, Device
from gradviz.ops.conventions.dimensions import Shape
from gradviz.ops.conventions.dtype_names import scalar_type_name
from gradviz.ops.conventions.promotion import Operand
from gradviz.ops.dispatch.calling import by_input
from gradviz.ops.dispatch.differentiable import differentiable
from gradviz.ops.dispatch.in_place import change, check_changeable, may_overlap
from gradviz.ops.dispatch.public import names
from gradviz.ops.shapes.broadcasting import broadcast_to, sum_to
from gradviz.ops.shapes.copying import to_copy
from gradviz.ops.shapes.index_arrays import Indices
from gradviz.ops.shapes.index_put import put
from gradviz.ops.shapes.indexing import getitem, views_and_arrays
from gradviz.ops.shapes.shape import reshape
from gradviz.ops.shapes.unit_dimensions import unsqueeze
from gradviz.ops.variables.variable import (
    Value,
    Variable,
    device_of,
    variable,
    zeros_like,
)


@differentiable(
    "CopyBackwards",
    x=lambda grad: zeros_like(grad),
    source=lambda grad, source_dtype, source_device, source_shape: _returned(
        grad, source_dtype, source_device, source_shape
    ),
)
def _copied(x: Array, source: Array) -> Array:
    """`source` with the shape, dtype and device of `x`."""
    _check_broadcasts(source.shape, x.shape)
    device = device_of(x)
    if device_of(source) is not device:
        source = copy_to(source, device)
    return _put_together(x, source)


@differentiable(
    "CopyBackwards",
    x=lambda grad: zeros_like(grad),
    source=lambda grad, source_dtype, source_device, source_shape: _returned(
        grad, source_dtype, source_device, source_shape
    ),
)
def _copied_without_waiting(x: Array, source: Array) -> Array:
    """Copy like `_copied`, though a device may still use `source` or `x` later.

    Source: aten/src/ATen/native/cuda/Copy.cu, copy_kernel_cuda: it waits for memory
    that is not pinned, is cast on the host, or is not in C order there.
    """
    _check_broadcasts(source.shape, x.shape)
    target, here = device_of(x), device_of(source)
    if target is here:
        return _put_together(x, source)
    if target is CPU:
        data = _put_together(x, source)
        return x if copy_into_pinned(data, x) else copy_to(data, CPU)
    if here is CPU:
        source = _cast(source, x.dtype)
    return _put_together(x, copy_to(source, target, non_blocking=True))


def _put_together(x: Array, source: Array) -> Array:
    return np.broadcast_to(_cast(source, x.dtype), x.shape)


def _cast(source: Array, dtype: np.dtype[Any]) -> Array:
    if source.dtype.kind == "c" != dtype.kind:
        source = source.real
    return source.astype(dtype, copy=False)


def _returned(grad: Value, dtype: np.dtype[Any], device: Device, shape: Shape) -> Value:
    if device_of(grad) is device:
        return grad
    return to_copy(sum_to(grad, shape), dtype, device)


@differentiable("FillBackward2", x=lambda grad: zeros_like(grad))
def _filled(x: Array, value: complex) -> Array:
    return np.full_like(x, value)


@differentiable(
    "FillBackward3",
    x=lambda grad: zeros_like(grad),
    value=lambda grad: grad.sum(),
)
def _filled_with(x: Array, value: Array) -> Array:
    if not isinstance(x, WrappedArray) or device_of(value) is not x.device:
        value = value.item()
    return np.full_like(x, value)


@differentiable("ZeroBackward0", x=lambda grad: zeros_like(grad))
def _zeroed(x: Array) -> Array:
    return np.zeros_like(x)


# One value for all may be written to elements that share a place.
for _op in (_filled, _filled_with, _zeroed):
    may_overlap(_op)


@may_overlap
def _put_in(x: Value, arrays: Indices, value: Value) -> Value:
    return put(x, arrays, value, accumulate=False)


def copy_(self: Variable, other: Variable, non_blocking: bool = False) -> Variable:
    """Set the elements to those of `other`, which is cast, moved and expanded.

    Args:
        self: Tensor to change.
        other: Tensor that the elements come from.
        non_blocking: Return before a copy between pinned memory and a device is done:
            until then, leave the pinned memory alone.

    Raises:
        TypeError: `other` is not a tensor.
        RuntimeError: It does not fit, or the tensor may not be changed.
    """
    if not isinstance(other, Variable):
        raise TypeError(
            f"copy_(): argument 'other' (position 1) must be Tensor, not "
            f"{type(other).__name__}"
        )
    return change(self, _copied_without_waiting if non_blocking else _copied, other)


def fill_(self: Variable, value: Operand) -> Variable:
    """Set all elements to a number, or to the element of a 0-d tensor.

    Raises:
        TypeError: `value` is neither.
        RuntimeError: It has dimensions, or the tensor may not be changed.
    """
    if isinstance(value, Variable):
        if value.array.shape:
            raise RuntimeError(
                f"fill_ only supports 0-dimension value tensor but got tensor with "
                f"{value.array.ndim} dimensions."
            )
        return change(self, _filled_with, value)
    if not isinstance(value, numbers.Number | np.generic):
        raise TypeError(
            f"fill_(): argument 'value' (position 1) must be Tensor or Number, not "
            f"{type(value).__name__}"
        )
    _check_number(self, value)
    return change(self, _filled, value)


def zero_(self: Variable) -> Variable:
    """Set all elements to 0."""
    return change(self, _zeroed)


def setitem(x: Variable, index: Value, value: Operand) -> None:
    """``x[index] = value``.

    Raises:
        IndexError: As `gradviz.ops.shapes.indexing.getitem`.
        TypeError: `value` is not a tensor, array or number.
        RuntimeError: It does not fit, or the tensor may not be changed.

    Source: torch/csrc/autograd/python_variable_indexing.cpp, THPVariable_setitem.
    """
    source = _as_source(x, value)
    if index is False:
        return
    if index is Ellipsis:
        _put(x, source)
    elif index is None or index is True:
        _put(unsqueeze(x, 0), source)
    else:
        check_changeable_by_index(x, source)
        if isinstance(index, int | slice):
            _put(getitem(x, index), source)
            return
        target, arrays = views_and_arrays(x, index)
        if arrays is None:
            _put(target, source)
        else:
            if 0 in target.array.strides:
                _warn_of_overlap(target.array)
            change(target, _put_in, arrays, _without_ones(source))


def check_changeable_by_index(x: Variable, source: Variable) -> None:
    """Raise PyTorch's error if `x` itself may not be changed.

    A view of an inference tensor says nothing of where it was made.
    """
    if not x.needs_grad and not source.needs_grad:
        check_changeable(x)


def _warn_of_overlap(array: Array) -> None:
    if any(
        not step and length > 1
        for step, length in zip(array.strides, array.shape, strict=True)
    ):
        warnings.warn(
            "Use of index_put_ on expanded tensors is deprecated. Please clone() the "
            "tensor before performing this operation. This also applies to advanced "
            "indexing e.g. tensor[indices] = tensor",
            UserWarning,
            stacklevel=4,
        )


def _put(target: Variable, source: Variable) -> None:
    """Source: aten/src/ATen/TensorIndexing.h, copy_to."""
    shape = target.array.shape
    if source.array.shape != shape:
        if not source.array.ndim:
            change(target, _filled_with, source)
            return
        source = _without_ones(source)
        _check_expands(source.array.shape, shape)
        source = broadcast_to(source, shape)
    change(target, _copied, source)


def _as_source(x: Variable, value: Value) -> Variable:
    if isinstance(value, Variable):
        return value
    if isinstance(value, np.ndarray):
        return variable(value)
    if isinstance(value, numbers.Number | np.generic):
        _check_number(x, value)
        number = np.asarray(value)
        if number.dtype.kind == "c" != x.array.dtype.kind:
            number = number.real
        return variable(number.astype(x.array.dtype))
    raise TypeError(
        f"can't assign a {type(value).__name__} to a "
        f"gradviz.{scalar_type_name(x.array.dtype)}Tensor"
    )


def _check_number(x: Variable, value: Value) -> None:
    if isinstance(value, complex) and value.imag and x.array.dtype.kind != "c":
        raise RuntimeError(
            f"value cannot be converted to type "
            f"{scalar_type_name(x.array.dtype).lower()} without overflow"
        )


def _without_ones(source: Variable) -> Variable:
    """`source` without the dimensions of length 1 that it begins with."""
    shape = source.array.shape
    first = next((i for i, size in enumerate(shape) if size != 1), len(shape))
    return reshape(source, shape[first:]) if first else source


def _check_expands(shape: Shape, target: Shape) -> None:
    """Raise PyTorch's error if `shape` cannot be expanded to `target`."""
    if len(shape) > len(target):
        raise RuntimeError(
            f"expand(gradviz.Tensor{{{list(shape)}}}, size={list(target)}): the number "
            f"of sizes provided ({len(target)}) must be greater or equal to the number "
            f"of dimensions in the tensor ({len(shape)})"
        )
    for from_end, size, wanted in _differing(shape, target):
        if size != 1:
            raise RuntimeError(
                f"The expanded size of the tensor ({wanted}) must match the existing "
                f"size ({size}) at non-singleton dimension {len(target) - from_end}.  "
                f"Target sizes: {list(target)}.  Tensor sizes: {list(shape)}"
            )


def _check_broadcasts(shape: Shape, target: Shape) -> None:
    """Raise PyTorch's error if `shape` does not broadcast to `target`."""
    for from_end, size, wanted in _differing(shape, target):
        if 1 not in (size, wanted):
            raise RuntimeError(
                f"The size of tensor a ({wanted}) must match the size of tensor b "
                f"({size}) at non-singleton dimension "
                f"{max(len(shape), len(target)) - from_end}"
            )
    common = np.broadcast_shapes(shape, target)
    if common != target:
        raise RuntimeError(
            f"output with shape {list(target)} doesn't match the broadcast shape "
            f"{list(common)}"
        )


def _differing(shape: Shape, target: Shape) -> Iterator[tuple[int, int, int]]:
    """Yield the differences of two shapes: distance from the end, both lengths."""
    pairs = zip(reversed(shape), reversed(target), strict=False)
    for from_end, (size, wanted) in enumerate(pairs, 1):
        if size != wanted:
            yield from_end, size, wanted


PUBLIC = [
    *names("gv.f", fill_=by_input(fill_), zero_=by_input(zero_)),
    *names("x.f", copy_, fill_, zero_),
]
