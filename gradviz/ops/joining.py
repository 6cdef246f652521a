"""Several tensors made one."""

from collections.abc import Sequence
from functools import partial

import numpy as np

from gradviz.engine.protocols import Gradient
from gradviz.ops.differentiable import record
from gradviz.ops.variable import Value, raw


def cat(tensors: Sequence[Value], dim: int = 0) -> Value:
    """Tensors joined along a dimension that they have.

    Raises:
        ValueError: There are none, or their other dimensions differ.
    """
    if not tensors:
        raise ValueError("torch.cat(): expected a non-empty list of Tensors")
    arrays = [raw(tensor) for tensor in tensors]
    formulas = []
    stop = 0
    for array in arrays:
        start, stop = stop, stop + array.shape[dim]
        formulas.append(partial(_part, dim=dim, start=start, stop=stop))
    return record("CatBackward0", np.concatenate(arrays, axis=dim), tensors, formulas)


def stack(tensors: Sequence[Value], dim: int = 0) -> Value:
    """Tensors of one shape joined along a new dimension.

    Raises:
        ValueError: There are none, or their shapes differ.
    """
    if not tensors:
        raise ValueError("stack expects a non-empty TensorList")
    arrays = [raw(tensor) for tensor in tensors]
    formulas = [partial(_entry, dim=dim, index=i) for i in range(len(arrays))]
    return record("StackBackward0", np.stack(arrays, axis=dim), tensors, formulas)


def _part(grad: Gradient, dim: int, start: int, stop: int) -> Gradient:
    return grad[_at(raw(grad).ndim, dim, slice(start, stop))]


def _entry(grad: Gradient, dim: int, index: int) -> Gradient:
    return grad[_at(raw(grad).ndim, dim, index)]


def _at(ndim: int, dim: int, index: Value) -> tuple[Value, ...]:
    """An index that takes `index` of dimension `dim` and all of those before."""
    return (*(slice(None),) * (dim % ndim), index)
