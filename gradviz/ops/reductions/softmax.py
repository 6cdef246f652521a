"""Exponentials that sum to 1 along a dimension."""

import warnings
from typing import Final

import numpy as np

from gradviz.backends.base import Array
from gradviz.ops.conventions.memory_layout import in_c_order
from gradviz.ops.conventions.promotion import DTypeLike
from gradviz.ops.conventions.refusal import check_kinds
from gradviz.ops.dispatch.differentiable import Op, differentiable
from gradviz.ops.dispatch.public import names
from gradviz.ops.elementwise.arithmetic import neg
from gradviz.ops.elementwise.transcendental import exp
from gradviz.ops.reductions.reduction import sum
from gradviz.ops.reductions.row_sums import largest, summed, summed_products
from gradviz.ops.shapes.copying import to_copy
from gradviz.ops.variables.variable import Value, device_of, raw

#: An array of so many elements does not fit the cache.
_LARGE: Final = 1 << 21

#: Its rows are worked off in blocks of so many elements, which do.
_BLOCK: Final = 1 << 16


@differentiable(
    "SoftmaxBackwardDataBackward0",
    x=lambda grad, y, dim: _softmax_backward(grad, y, dim),
    y=lambda grad, x, y, dim: (
        grad * x
        - grad * sum(y * x, dim, keepdim=True)
        - x * sum(grad * y, dim, keepdim=True)
    ),
)
def _softmax_backward(x: Array, y: Array, dim: int) -> Array:
    axes = (dim % x.ndim,) if x.ndim else ()
    result = x - summed_products(x, y, axes)
    result *= y
    return result


@differentiable(
    "SoftmaxBackward0",
    x=lambda grad, result, dim: _softmax_backward(grad, result, dim),
)
def _softmax(x: Array, dim: int) -> Array:
    shifted = _shifted("softmax", x, dim)
    exponentials = np.exp(shifted, out=shifted if x.ndim else None)
    exponentials /= _total(exponentials, dim)
    return exponentials


@differentiable(
    "LogSoftmaxBackwardDataBackward0",
    x=lambda grad, y, dim: grad - sum(grad * exp(y), dim, keepdim=True),
    y=lambda grad, x, y, dim: -sum(x, dim, keepdim=True) * exp(y) * grad,
)
def _log_softmax_backward(x: Array, y: Array, dim: int) -> Array:
    shares = np.exp(y)
    shares *= _total(x, dim)
    return np.subtract(x, shares, out=shares if x.ndim else None)


@differentiable(
    "LogSoftmaxBackward0",
    x=lambda grad, result, dim: _log_softmax_backward(grad, result, dim),
)
def _log_softmax(x: Array, dim: int) -> Array:
    x = in_c_order(x)
    is_last = dim in (-1, x.ndim - 1)
    if type(x) is not np.ndarray or not is_last or x.size < _LARGE:
        return _logarithms(x, dim)
    rows = x.reshape((-1, x.shape[-1]))
    step = max(1, _BLOCK // x.shape[-1])
    result: Array = np.empty_like(rows)
    for start in range(0, len(rows), step):
        block = slice(start, start + step)
        result[block] = _logarithms(rows[block], 1)
    return result.reshape(x.shape)


def _logarithms(x: Array, dim: int) -> Array:
    shifted = _shifted("log_softmax", x, dim)
    shifted -= np.log(_total(np.exp(shifted), dim))
    return shifted


def _shifted(name: str, x: Array, dim: int) -> Array:
    """`x` less its largest element, so that no exponential overflows."""
    is_last = dim in (-1, x.ndim - 1) or not x.ndim
    check_kinds(f"{name}{'_lastdim' * is_last}_kernel_impl", "f", x)
    x = in_c_order(x)
    return x - (largest(x, dim) if x.ndim else x) if x.size else x


def _total(x: Array, dim: int) -> Array:
    return summed(x, (dim % x.ndim,)) if x.ndim else x


def softmax(
    input: Value,
    dim: int | None = None,
    _stacklevel: int = 3,
    dtype: DTypeLike = None,
) -> Value:
    """Exponentials scaled to sum to 1 along `dim`.

    Args:
        input: Floats.
        dim: Dimension to sum along; with a warning PyTorch's choice if not given.
        _stacklevel: Stack level of the caller who is warned, counted from here.
        dtype: Convert to this first.

    Raises:
        IndexError: There is no such dimension.
        NotImplementedError: The elements are no floats.
    """
    return _along(_softmax, "softmax", input, dim, dtype, _stacklevel)


def log_softmax(
    input: Value,
    dim: int | None = None,
    _stacklevel: int = 3,
    dtype: DTypeLike = None,
) -> Value:
    """The logarithm of `softmax`, without its loss of precision; arguments as there."""
    return _along(_log_softmax, "log_softmax", input, dim, dtype, _stacklevel)


def tensor_softmax(input: Value, dim: int, dtype: DTypeLike = None) -> Value:
    """`softmax`, as PyTorch has it outside of ``nn.functional``."""
    return _along(_softmax, "softmax", input, dim, dtype, 3)


def tensor_log_softmax(input: Value, dim: int, dtype: DTypeLike = None) -> Value:
    """`log_softmax`, as PyTorch has it outside of ``nn.functional``."""
    return _along(_log_softmax, "log_softmax", input, dim, dtype, 3)


def softmin(
    input: Value,
    dim: int | None = None,
    _stacklevel: int = 3,
    dtype: DTypeLike = None,
) -> Value:
    """`softmax` of the elements with the other sign; arguments as there."""
    return _along(_softmax, "softmin", neg(input), dim, dtype, _stacklevel)


def _along(
    op: Op,
    name: str,
    input: Value,
    dim: int | None,
    dtype: DTypeLike,
    stacklevel: int,
) -> Value:
    ndim = raw(input).ndim
    if dim is None:
        warnings.warn(
            f"Implicit dimension choice for {name} has been deprecated. Change the "
            f"call to include dim=X as an argument.",
            UserWarning,
            stacklevel=stacklevel,
        )
        dim = 0 if ndim in (0, 1, 3) else 1
    wrapped = max(ndim, 1)
    if not -wrapped <= dim < wrapped:
        raise IndexError(
            f"Dimension out of range (expected to be in range of "
            f"[{-wrapped}, {wrapped - 1}], but got {dim})"
        )
    if dtype is not None and raw(input).dtype != np.dtype(dtype):
        input = to_copy(input, np.dtype(dtype), device_of(raw(input)))
    return op(input, dim)


PUBLIC = [
    *names("gv.f(out=)", log_softmax=tensor_log_softmax, softmax=tensor_softmax),
    *names("F.f", log_softmax, softmax, softmin),
    *names("special.f", log_softmax, softmax),
]
