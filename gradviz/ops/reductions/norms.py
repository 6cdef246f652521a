"""Norms of vectors: how long they are.

Those of matrices are in `gradviz.ops.algebra.matrix_norms`.
"""

import math
from typing import Any

import numpy as np

from gradviz.backends.base import Array
from gradviz.engine.graph.protocols import Gradient
from gradviz.ops.conventions.dimensions import Dims, Shape, wrap_dims
from gradviz.ops.conventions.dtype_names import scalar_type_name
from gradviz.ops.conventions.memory_layout import in_c_order
from gradviz.ops.conventions.promotion import DTypeLike
from gradviz.ops.dispatch.differentiable import differentiable
from gradviz.ops.dispatch.public import names
from gradviz.ops.elementwise.powers import pow
from gradviz.ops.elementwise.rounding import abs as absolute
from gradviz.ops.elementwise.rounding import sgn
from gradviz.ops.elementwise.selection import masked_fill, where
from gradviz.ops.shapes.broadcasting import restored
from gradviz.ops.variables.variable import Value, Variable, raw, variable


def norm_of(
    x: Array,
    p: float,
    dims: Shape | None,
    keepdim: bool,
    dtype: DTypeLike = None,
) -> Array:
    """The norm along some dimensions; half precision is added up in single."""
    if dtype is not None:
        x = x.astype(dtype)
    real = np.abs(x) if x.dtype.kind == "c" else x
    narrow = real.dtype
    if narrow == np.float16:
        real = real.astype(np.float32)
    return in_c_order(_length(real, p, dims, keepdim)).astype(narrow, copy=False)


def _length(x: Array, p: float, dims: Shape | None, keepdim: bool) -> Array:
    if p == 0:
        return np.sum(x != 0, axis=dims, keepdims=keepdim).astype(x.dtype)
    if p == 1:
        return np.sum(np.abs(x), axis=dims, keepdims=keepdim)
    if p == 2:
        return np.sqrt(np.sum(x * x, axis=dims, keepdims=keepdim))
    if p == math.inf:
        return np.max(np.abs(x), axis=dims, keepdims=keepdim)
    if p == -math.inf:
        return np.min(np.abs(x), axis=dims, keepdims=keepdim)
    powers = np.power(np.abs(x), p)
    return np.power(np.sum(powers, axis=dims, keepdims=keepdim), 1 / p)


def norm_gradient(
    grad: Gradient, x: Gradient, result: Gradient, p: float, dims: Shape | None
) -> Gradient:
    """The gradient of a norm with respect to the vector.

    Source: torch/csrc/autograd/FunctionsManual.cpp, norm_backward.
    """
    shape = x.shape
    norm = result
    if dims is not None:
        grad, norm = restored(grad, shape, dims), restored(result, shape, dims)
    if p == 0:
        return None
    if p == 1:
        return sgn(x) * grad
    if math.isinf(p):
        is_extreme = np.abs(raw(x)) == raw(norm)
        count = np.sum(is_extreme, axis=dims, keepdims=True)
        part: Gradient = is_extreme / count.astype(raw(norm).dtype)
        part = variable(part) if isinstance(x, Variable) else part
        return sgn(x) * (grad * part)
    if p == 2:
        return grad * _ratio(x, norm)
    if p > 2:
        powers = x * pow(absolute(x), p - 2)
        return powers * _ratio(grad, pow(norm, p - 1))
    length = where(norm == 0, 1.0, norm)
    magnitude = absolute(where(x == 0, 1.0, x))
    scale = where(norm == 0, 0.0, grad * pow(length, 1 - p))
    return sgn(x) * pow(magnitude, p - 1) * scale


def _ratio(x: Gradient, norm: Gradient) -> Gradient:
    """``x / norm``, and 0 where the norm is."""
    return masked_fill(x / norm, raw(norm) == 0, 0)


@differentiable(
    "LinalgVectorNormBackward0",
    x=lambda grad, x, p, dims, result: norm_gradient(grad, x, result, p, dims),
)
def _vector_norm(
    x: Array, p: float, dims: Shape | None, keepdim: bool, dtype: DTypeLike
) -> Array:
    return norm_of(x, p, dims, keepdim, dtype)


@differentiable(
    "NormBackward1",
    x=lambda grad, x, p, dims, result: norm_gradient(grad, x, result, p, dims),
)
def norm_along(x: Array, p: float, dims: Shape, keepdim: bool) -> Array:
    """The norm as PyTorch's composite functions record it."""
    return norm_of(x, p, dims, keepdim)


@differentiable(
    "NormBackward0",
    x=lambda grad, x, result: norm_gradient(grad, x, result, 2, None),
)
def norm_of_all(x: Array) -> Array:
    """The norm of all elements as PyTorch's composite functions record it."""
    return norm_of(x, 2, None, keepdim=False)


def vector_norm(
    x: Value,
    ord: float = 2,
    dim: Dims = None,
    keepdim: bool = False,
    *,
    dtype: DTypeLike = None,
) -> Value:
    """The norm of `x` as a vector: the sum of ``abs(x) ** ord``, to the ``1 / ord``.

    Args:
        x: Floats or complex numbers.
        ord: The exponent; 0 counts what is not 0, infinities take the extremes.
        dim: Dimensions to reduce; all of them, as one vector, by default.
        keepdim: Keep them, with length 1.
        dtype: Type to compute in.

    Raises:
        RuntimeError: `x` has neither floats nor complex numbers, or there are no
            elements and so no norm.
        IndexError: There is no such dimension.
    """
    array = raw(x)
    if array.dtype.kind not in "fc":
        raise RuntimeError(
            f"linalg.vector_norm: Expected a floating point or complex tensor as "
            f"input. Got {scalar_type_name(array.dtype)}"
        )
    if dtype is not None:
        _check_dtype(array.dtype, np.dtype(dtype))
    dims = wrap_dims(dim, array.ndim)
    if array.size == 0 and (ord < 0 or ord == math.inf):
        _check_not_empty(array.shape, dims, ord, whole=dim is None)
    is_whole = dim is None and not keepdim
    return _vector_norm(x, ord, None if is_whole else dims, keepdim, dtype)


def _check_dtype(known: np.dtype[Any], wanted: np.dtype[Any]) -> None:
    name = scalar_type_name(wanted)
    if wanted.kind not in "fc":
        raise RuntimeError(
            f"linalg.vector_norm: dtype should be floating point or complex, but got "
            f"{name}"
        )
    if known.kind != wanted.kind:
        kind = "complex for complex" if known.kind == "c" else "real for real"
        raise RuntimeError(
            f"linalg.vector_norm: dtype should be {kind} inputs, but got {name}"
        )
    if wanted.itemsize < known.itemsize:
        raise RuntimeError(
            f"linalg.vector_norm: the dtype of the input ({scalar_type_name(known)}) "
            f"should be convertible without narrowing to the specified dtype ({name})"
        )


def _check_not_empty(shape: Shape, dims: Shape, ord: float, *, whole: bool) -> None:
    name = {math.inf: "inf", -math.inf: "-inf"}.get(ord, f"{ord:g}")
    if whole:
        raise RuntimeError(
            f"linalg.vector_norm cannot compute the {name} norm on an empty tensor "
            f"because the operation does not have an identity"
        )
    for dim in dims:
        if not shape[dim]:
            raise RuntimeError(
                f"linalg.vector_norm cannot compute the {name} norm on the dimension "
                f"{dim} because this dimension is empty and the operation does not "
                f"have an identity"
            )


PUBLIC = [*names("linalg.f(out=)", vector_norm)]
