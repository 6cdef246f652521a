"""Several tensors made one."""

from collections.abc import Callable, Sequence
from functools import partial

import numpy as np

from gradviz.backends.arrays.mixing import MixedDevicesError
from gradviz.backends.arrays.pinned_array import assign
from gradviz.backends.base import Array
from gradviz.engine.graph.protocols import Gradient
from gradviz.ops.conventions.dimensions import Shape, at, wrap_dim
from gradviz.ops.conventions.memory_layout import has_channels_last, in_c_order
from gradviz.ops.conventions.promotion import result_dtype
from gradviz.ops.conventions.refusal import check_list
from gradviz.ops.dispatch.public import names
from gradviz.ops.dispatch.result import record
from gradviz.ops.shapes.shape import reshape
from gradviz.ops.shapes.unit_dimensions import atleast_1d, atleast_2d, atleast_3d
from gradviz.ops.variables.variable import Value, Variable, raw


def cat(tensors: Sequence[Value], dim: int = 0) -> Value:
    """Tensors joined along a dimension that they have.

    An empty vector joins with anything.

    Raises:
        IndexError: There is no such dimension.
        RuntimeError: There are no tensors, or their other dimensions differ.
    """
    if not len(tensors):
        raise ValueError("torch.cat(): expected a non-empty list of Tensors")
    arrays = _arrays("cat", tensors)
    ndim = max([array.ndim for array in arrays])
    dim = wrap_dim(dim, ndim)
    data = _concatenated(arrays, dim)
    formulas = []
    stop = 0
    for array in arrays:
        if array.shape == (0,) and ndim > 1:
            formulas.append(_nothing)
            continue
        start, stop = stop, stop + array.shape[dim]
        formulas.append(partial(_part, dim=dim, start=start, stop=stop))
    return record("CatBackward0", data, tensors, formulas)


def _concatenated(arrays: list[Array], dim: int) -> Array:
    """Arrays joined in the dtype that they have together; errors are PyTorch's."""
    arrays = _in_one_dtype(arrays)
    joined = arrays
    if any(array.shape == (0,) for array in arrays):  # PyTorch's exception
        joined = [array for array in arrays if array.shape != (0,)] or arrays
    try:
        return _in_order(np.concatenate(joined, axis=dim), joined)
    except MixedDevicesError as error:
        raise error.of("cat") from None
    except ValueError:
        for i, array in enumerate(arrays):
            if not array.ndim:
                raise RuntimeError(
                    f"zero-dimensional tensor (at position {i}) cannot be concatenated"
                ) from None
        _check_joined(joined, dim)
        raise


def _in_order(result: Array, arrays: list[Array]) -> Array:
    if result.flags.c_contiguous or all(map(has_channels_last, arrays)):
        return result
    return in_c_order(result)


def stack(tensors: Sequence[Value], dim: int = 0) -> Value:
    """Tensors of one shape joined along a new dimension.

    Raises:
        IndexError: There can be no such dimension.
        RuntimeError: There are no tensors, or their shapes differ.
    """
    if not len(tensors):
        raise RuntimeError("stack expects a non-empty TensorList")
    arrays = _arrays("stack", tensors)
    dim = wrap_dim(dim, arrays[0].ndim + 1)
    shape = arrays[0].shape
    for i, array in enumerate(arrays):
        if array.shape != shape:
            raise RuntimeError(
                f"stack expects each tensor to be equal size, but got {list(shape)} at "
                f"entry 0 and {list(array.shape)} at entry {i}"
            )
    formulas = [partial(_entry, dim=dim, index=i) for i in range(len(arrays))]
    rows = [array[at(dim, None)] for array in _in_one_dtype(arrays)]
    try:
        data = in_c_order(np.concatenate(rows, dim))
    except MixedDevicesError as error:
        raise error.of("stack") from None
    return record("StackBackward0", data, tensors, formulas)


def hstack(tensors: Sequence[Value]) -> Value:
    """Tensors joined along their second dimension, vectors along their only one."""
    grown = _grown("hstack", atleast_1d, tensors)
    return cat(grown, 0 if raw(grown[0]).ndim == 1 else 1)


def vstack(tensors: Sequence[Value]) -> Value:
    """Tensors joined along their first dimension; vectors are rows."""
    return cat(_grown("vstack", atleast_2d, tensors), 0)


def dstack(tensors: Sequence[Value]) -> Value:
    """Tensors joined along their third dimension."""
    return cat(_grown("dstack", atleast_3d, tensors), 2)


def column_stack(tensors: Sequence[Value]) -> Value:
    """Tensors joined along their second dimension; vectors are columns."""

    def column(x: Value) -> Value:
        array = raw(x)
        return reshape(x, (array.size, 1)) if array.ndim <= 1 else x

    return hstack(_grown("column_stack", column, tensors))


def block_diag(*tensors: Variable) -> Value:
    """A matrix of zeros, with matrices one after the other along its diagonal.

    Args:
        *tensors: Matrices; vectors are rows.

    Raises:
        RuntimeError: One has more than two dimensions.
    """
    check_list(tensors)
    for i, tensor in enumerate(tensors):
        if raw(tensor).ndim > 2:
            raise RuntimeError(
                f"torch.block_diag: Input tensors must have 2 or fewer dimensions. "
                f"Input {i} has {raw(tensor).ndim} dimensions"
            )
    arrays = _in_one_dtype([raw(tensor) for tensor in tensors])
    blocks = [array.reshape((1,) * (2 - array.ndim) + array.shape) for array in arrays]
    lengths = [sum(block.shape[dim] for block in blocks) for dim in (0, 1)]
    data = np.zeros_like(arrays[0], shape=tuple(lengths))
    formulas = []
    row = column = 0
    for array, block in zip(arrays, blocks, strict=True):
        place = (
            slice(row, row + block.shape[0]),
            slice(column, column + block.shape[1]),
        )
        assign(data, place, block)
        formulas.append(partial(_block, place=place, shape=array.shape))
        row, column = place[0].stop, place[1].stop
    return record("BlockDiagBackward0", data, tensors, formulas)


def _grown(
    name: str, grow: Callable[[Value], Value], tensors: Sequence[Value]
) -> list[Value]:
    if not len(tensors):
        raise RuntimeError(f"{name} expects a non-empty TensorList")
    return [grow(tensor) for tensor in tensors]


def _arrays(name: str, tensors: Sequence[Value]) -> list[Array]:
    if isinstance(tensors, Variable):
        raise TypeError(
            f"{name}(): argument 'tensors' (position 1) must be tuple of Tensors, not "
            f"Tensor"
        )
    check_list(tensors)
    return [raw(tensor) for tensor in tensors]


def _part(grad: Gradient, dim: int, start: int, stop: int) -> Gradient:
    return grad[at(dim, slice(start, stop))]


def _nothing(grad: Gradient) -> Gradient:
    """The gradient of an empty vector among tensors of more dimensions."""
    return reshape(grad[(slice(0),) * raw(grad).ndim], (0,))


def _block(grad: Gradient, place: tuple[slice, slice], shape: Shape) -> Gradient:
    return reshape(grad[place], shape)


def _entry(grad: Gradient, dim: int, index: int) -> Gradient:
    return grad[at(dim, index)]


def _in_one_dtype(arrays: list[Array]) -> list[Array]:
    first = arrays[0].dtype
    if all(array.dtype is first for array in arrays):
        return arrays
    meeting = arrays[0]
    for array in arrays[1:]:
        meeting = np.empty(1, result_dtype(meeting, array))
    return [array.astype(meeting.dtype, copy=False) for array in arrays]


def _check_joined(arrays: Sequence[Array], dim: int) -> None:
    first = arrays[0].shape
    for i, array in enumerate(arrays):
        if array.ndim != len(first):
            raise RuntimeError(
                f"Tensors must have same number of dimensions: got {len(first)} and "
                f"{array.ndim}"
            )
        for axis, (wanted, got) in enumerate(zip(first, array.shape, strict=True)):
            if axis != dim and wanted != got:
                raise RuntimeError(
                    f"Sizes of tensors must match except in dimension {dim}. Expected "
                    f"size {wanted} but got size {got} for tensor number {i} in the "
                    f"list."
                )


PUBLIC = [
    *names("gv.f", block_diag),
    *names("gv.f(out=)", cat, column_stack, dstack, hstack, stack, vstack, concat=cat),
    *names("gv.f(out=)", concatenate=cat, row_stack=vstack),
]
