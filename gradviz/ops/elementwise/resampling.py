"""Images made larger or smaller: each axis a product with a small matrix.

Whatever a resampling does along an axis, it is linear: a table
says how much of each element goes into each output. Its transpose is the gradient.
"""

from typing import TypeAlias

import numpy as np

from gradviz.backends.base import Array, beside
from gradviz.ops.conventions.memory_layout import as_images
from gradviz.ops.dispatch.differentiable import Op, differentiable, without_gradient

#: For one axis: shape ``(outputs, inputs)``, float64, on the host.
ResamplingTable: TypeAlias = np.ndarray


def resampling(name: str, *, saves_input: bool = False) -> Op:
    """The op that applies a table to each of the last dimensions of its input.

    Args:
        name: PyTorch's name of the forward.
        saves_input: True if the gradient has an edge to the input, as PyTorch's has.
    """
    if saves_input:
        back = differentiable(
            f"{name}BackwardBackward0",
            x=lambda grad, tables: resample(grad, tables),
            of=without_gradient,
        )(_applied_transposed)
        resample = differentiable(
            f"{name}Backward0",
            joint=lambda _, grad, x, tables: (back(grad, x, tables),),
            x=lambda grad, tables: back(grad, None, tables),
        )(apply_tables)
        return resample
    back = differentiable(
        f"{name}BackwardBackward0", x=lambda grad, tables: resample(grad, tables)
    )(lambda x, tables: _applied_transposed(x, None, tables))
    resample = differentiable(
        f"{name}Backward0", x=lambda grad, tables: back(grad, tables)
    )(apply_tables)
    return resample


def apply_tables(x: Array, tables: tuple[ResamplingTable, ...]) -> Array:
    """`x` with a table applied to each of its last dimensions."""
    wide = np.float32 if x.dtype == np.float16 else x.dtype
    result = x.astype(wide, copy=False)
    for axis, table in enumerate(tables, -len(tables)):
        weights = beside(x, table.astype(wide))
        if axis == -1:
            result = np.matmul(result, weights.T)
        elif axis == -2:
            result = np.matmul(weights, result)
        else:
            moved = np.moveaxis(result, axis, -1)
            result = np.moveaxis(np.matmul(moved, weights.T), -1, axis)
    return as_images(result.astype(x.dtype, copy=False), x)


def _applied_transposed(
    x: Array, of: Array, tables: tuple[ResamplingTable, ...]
) -> Array:
    del of
    return apply_tables(x, tuple(table.T for table in tables))
