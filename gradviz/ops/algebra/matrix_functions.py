"""Functions of matrices: powers, the exponential, the pseudo-inverse."""

import math

import numpy as np

from gradviz.backends.base import Array, beside
from gradviz.engine.graph.protocols import Gradient
from gradviz.ops.algebra.products import matmul
from gradviz.ops.algebra.solving import inv
from gradviz.ops.conventions.dtype_names import scalar_type_name
from gradviz.ops.dispatch.differentiable import differentiable
from gradviz.ops.dispatch.public import names
from gradviz.ops.reductions.cumulative import cumprod
from gradviz.ops.shapes.broadcasting import expand
from gradviz.ops.shapes.copying import clone
from gradviz.ops.shapes.joining import cat
from gradviz.ops.shapes.matrices import (
    adjoint,
    check_floating,
    check_matrix,
    check_square,
)
from gradviz.ops.shapes.unit_dimensions import unsqueeze
from gradviz.ops.variables.return_types import LeastSquares
from gradviz.ops.variables.variable import Value, Variable, raw, variable

# --- powers -------------------------------------------------------------------------


def matrix_power(A: Value, n: int) -> Value:  # noqa: N803 - PyTorch's name
    """The product of `n` times a square matrix; of its inverse if `n` is negative.

    Raises:
        LinAlgError: `n` is negative and a matrix is singular.
        RuntimeError: The shape does not fit.
    """
    check_square("linalg.matrix_power", raw(A))
    if n == 0:
        eye = beside(raw(A), np.eye(raw(A).shape[-1], dtype=raw(A).dtype))
        powers = np.broadcast_to(eye, raw(A).shape).copy()
        return variable(powers) if isinstance(A, Variable) else powers
    if n < 0:
        return matrix_power(inv(A), -n) if n < -1 else inv(A)
    if n == 1:
        return clone(A)
    if n == 3:
        return matmul(matmul(A, A), A)
    square, result = None, None
    while n:
        square = A if square is None else matmul(square, square)
        n, is_odd = divmod(n, 2)
        if is_odd:
            result = square if result is None else matmul(result, square)
    return result


# --- the exponential ----------------------------------------------------------------

#: Up to this norm a series of `_TERMS` terms is exact to double precision.
_NEAR = 0.5
_TERMS = 16


@differentiable(
    "LinalgMatrixExpBackward0", x=lambda grad, x: _matrix_exp_gradient(grad, x)
)
def _matrix_exp(x: Array) -> Array:
    """Scaled down by a power of 2, summed as a series, and squared as often."""
    wide = x.astype(np.float32) if x.dtype == np.float16 else x
    norm = float(np.max(np.sum(np.abs(wide), axis=-1), initial=0))
    if not math.isfinite(norm):
        return x * np.nan
    squarings = max(0, math.ceil(math.log2(norm / _NEAR))) if norm > _NEAR else 0
    scaled = wide / wide.dtype.type(2**squarings)
    eye = beside(wide, np.eye(x.shape[-1], dtype=wide.dtype))
    result = eye + np.zeros_like(scaled)
    for term in range(_TERMS, 0, -1):
        result = eye + np.matmul(scaled, result) / wide.dtype.type(term)
    for _ in range(squarings):
        result = np.matmul(result, result)
    return result.astype(x.dtype, copy=False)


def _matrix_exp_gradient(grad: Gradient, x: Gradient) -> Gradient:
    """The upper right block of the exponential of ``[[A, G], [0, A]]``.

    Source: torch/csrc/autograd/FunctionsManual.cpp, linalg_matrix_exp_differential.
    """
    size = raw(x).shape[-1]
    upper = cat([adjoint(x), grad], -1)
    lower = cat([np.zeros_like(raw(x)), adjoint(x)], -1)
    return _matrix_exp(cat([upper, lower], -2))[..., :size, size:]


def matrix_exp(A: Value) -> Value:  # noqa: N803 - PyTorch's name
    """The exponential of square matrices: the limit of ``(1 + A / n) ** n``.

    Raises:
        RuntimeError: Shape or dtype does not fit.
    """
    check_square("linalg.matrix_exp", raw(A))
    if raw(A).dtype.kind not in "fc":
        check_floating("linalg.matrix_exp", raw(A))
    return _matrix_exp(A)


def tensor_matrix_power(input: Value, n: int) -> Value:
    """`matrix_power`, as PyTorch has it outside of ``linalg``."""
    return matrix_power(input, n)


def tensor_matrix_exp(input: Value) -> Value:
    """`matrix_exp`, as PyTorch has it outside of ``linalg``."""
    return matrix_exp(input)


# --- the pseudo-inverse -------------------------------------------------------------


@differentiable(
    "LinalgPinvBackward0", x=lambda grad, x, result: _pinv_gradient(grad, x, result)
)
def _pinv(x: Array, atol: float, rtol: float | None, hermitian: bool) -> Array:
    if 0 in x.shape[-2:]:
        return np.zeros_like(x, shape=(*x.shape[:-2], x.shape[-1], x.shape[-2]))
    if hermitian:
        values, vectors = np.linalg.eigh(x)
        left, right = vectors, np.conj(np.swapaxes(vectors, -2, -1))
    else:
        left, values, right = np.linalg.svd(x, full_matrices=False)
    inverses = _inverted(values, _limit(x, values, atol, rtol))
    conjugated = np.conj(np.swapaxes(right, -2, -1)) * inverses[..., None, :]
    return np.matmul(conjugated, np.conj(np.swapaxes(left, -2, -1)))


def _limit(x: Array, values: Array, atol: float, rtol: float | None) -> Array:
    """Up to where singular values count as 0."""
    if rtol is None:
        rtol = np.finfo(x.dtype).eps * max(x.shape[-2:]) if atol <= 0 else 0.0
    top = np.max(np.abs(values), axis=-1, keepdims=True)
    return np.maximum(atol, rtol * top)


def _inverted(values: Array, limit: Array) -> Array:
    counts = np.abs(values) > limit
    return np.where(counts, 1 / np.where(counts, values, 1), 0).astype(values.dtype)


def _pinv_gradient(grad: Gradient, x: Gradient, result: Gradient) -> Gradient:
    """Source: torch/csrc/autograd/FunctionsManual.cpp, pinv_backward."""
    result_h, grad_h = adjoint(result), adjoint(grad)
    if raw(x).shape[-2] <= raw(x).shape[-1]:
        k = matmul(grad_h, result)
        k_result = matmul(k, result_h)
        return (
            k_result
            - adjoint(matmul(result, k))
            - matmul(matmul(x, result), k_result)
            + matmul(matmul(result_h, result), grad_h - matmul(k, x))
        )
    k = matmul(result, grad_h)
    result_k = matmul(result_h, k)
    return (
        matmul(matmul(grad_h - matmul(x, k), result), result_h)
        - adjoint(matmul(k, result))
        + result_k
        - matmul(matmul(result_k, result), x)
    )


def pinv(
    A: Value,  # noqa: N803 - PyTorch's name
    *,
    atol: float | None = None,
    rtol: float | None = None,
    hermitian: bool = False,
) -> Value:
    """The pseudo-inverses of matrices.

    Args:
        A: Matrices.
        atol: Up to where singular values count as 0...
        rtol: ...or up to which part of the largest of them.
        hermitian: True if the matrices are Hermitian, so that there is a faster way.

    Raises:
        RuntimeError: Shape or dtype does not fit.
    """
    array = raw(A)
    if array.ndim < 2 or array.dtype.char not in "fdFD":
        raise RuntimeError(
            f"linalg.pinv({scalar_type_name(array.dtype)}{{{[*array.shape]}}}): "
            f"expected a tensor with 2 or more dimensions of float, double, cfloat or "
            f"cdouble types"
        )
    return _pinv(A, 0.0 if atol is None else raw(atol), raw(rtol), hermitian)


def matrix_rank(
    A: Value,  # noqa: N803 - PyTorch's name
    *,
    atol: float | None = None,
    rtol: float | None = None,
    hermitian: bool = False,
) -> Value:
    """Return the number of nonzero singular values of a matrix; see `pinv`.

    Raises:
        RuntimeError: Shape or dtype does not fit.
    """
    array = raw(A)
    check_matrix("torch.linalg.matrix_rank", array, "input")
    if array.dtype.char not in "fdFD":
        raise RuntimeError(
            "This function doesn't handle types other than float and double"
        )
    if 0 in array.shape[-2:]:
        ranks = np.zeros_like(array, np.int64, shape=array.shape[:-2])
    else:
        if hermitian:
            values = np.abs(np.linalg.eigvalsh(array))
        else:
            values = np.linalg.svd(array, compute_uv=False)
        limit = _limit(array, values, 0.0 if atol is None else raw(atol), raw(rtol))
        ranks = np.sum(values > limit, axis=-1)
    return variable(ranks) if isinstance(A, Variable) else ranks


def pinverse(input: Value, rcond: float = 1e-15) -> Value:
    """`pinv`, under its older name."""
    return pinv(input, rtol=rcond)


def vander(x: Value, *, N: int | None = None) -> Value:  # noqa: N803 - PyTorch's name
    """Return matrices with rows of an element's powers, from 0 to ``N - 1``.

    Args:
        x: Numbers; the last dimension becomes rows.
        N: Number of powers; as many as there are elements by default.

    Raises:
        RuntimeError: There is not more than one power.
    """
    if not raw(x).ndim:
        x = unsqueeze(x, 0)
    shape = raw(x).shape
    count = N if N is not None else shape[-1]
    if count <= 1:
        raise RuntimeError("N must be greater than 1.")
    ones = np.ones_like(raw(x), shape=(*shape, 1))
    repeated = expand(unsqueeze(x, -1), (*shape, count - 1))
    first = variable(ones) if isinstance(x, Variable) else ones
    return cat([first, cumprod(repeated, -1)], -1)


# --- least squares ------------------------------------------------------------------


@differentiable(
    "LinalgLstsqBackward0",
    results=("solution", "residuals"),
    a=lambda grads, a, b, solution: _lstsq_matrix_gradient(grads, a, b, solution),
    b=lambda grads, a, b, solution: _lstsq_right_gradient(grads, a, b, solution),
)
def _lstsq(a: Array, b: Array, has_residuals: bool) -> tuple[Array, Array]:
    solution = np.matmul(_pinv(a, 0.0, None, False), b)
    if not has_residuals:
        return solution, np.zeros_like(np.abs(b[:0]), shape=(0,))
    missing = np.matmul(a, solution) - b
    return solution, np.sum(np.square(np.abs(missing)), axis=-2)


def _lstsq_matrix_gradient(
    grads: tuple[Gradient, Gradient], a: Gradient, b: Gradient, solution: Gradient
) -> Gradient:
    """Source: torch/csrc/autograd/FunctionsManual.cpp, linalg_lstsq_backward."""
    grad, grad_residuals = grads
    total = None
    if grad is not None:
        inverse = _pinv(a, 0.0, None, False)
        total = _pinv_gradient(matmul(grad, adjoint(b)), a, inverse)
    if grad_residuals is not None and raw(grad_residuals).size:
        missing = (matmul(a, solution) - b) * (2 * unsqueeze(grad_residuals, -2))
        more = matmul(missing, adjoint(solution))
        total = more if total is None else total + more
    return total


def _lstsq_right_gradient(
    grads: tuple[Gradient, Gradient], a: Gradient, b: Gradient, solution: Gradient
) -> Gradient:
    grad, grad_residuals = grads
    total = None
    if grad is not None:
        total = matmul(adjoint(_pinv(a, 0.0, None, False)), grad)
    if grad_residuals is not None and raw(grad_residuals).size:
        more = (b - matmul(a, solution)) * (2 * unsqueeze(grad_residuals, -2))
        total = more if total is None else total + more
    return total


def lstsq(
    A: Value,  # noqa: N803 - PyTorch's name
    B: Value,  # noqa: N803 - PyTorch's name
    rcond: float | None = None,
    *,
    driver: str | None = None,
) -> LeastSquares:
    """The X for which the squares of ``A @ X - B`` are least.

    Args:
        A: Matrices, which are taken to be of full rank.
        B: Matrices with as many rows.
        rcond: Ignored.
        driver: Results to return besides the solution, as of PyTorch's drivers:
            "gelsy", the rank; "gels", residuals; "gelsd" and "gelss", also singular
            values.

    Raises:
        RuntimeError: `A` has less than two dimensions.
    """
    del rcond
    if raw(A).ndim < 2:
        raise RuntimeError("torch.linalg.lstsq: input must have at least 2 dimensions.")
    driver = driver or "gelsy"
    rows, columns = raw(A).shape[-2:]
    solution, residuals = _lstsq(A, B, driver != "gelsy" and rows > columns)
    values = np.linalg.svd(raw(A), compute_uv=False)
    nothing = np.zeros_like(values, shape=(0,))
    rank = np.sum(values > _limit(raw(A), values, 0.0, None), axis=-1)
    parts: tuple[Array, Array] = (
        nothing.astype(np.int64) if driver == "gels" else rank,
        values if driver in ("gelsd", "gelss") else nothing,
    )
    if isinstance(solution, Variable):
        parts = variable(parts[0]), variable(parts[1])
    return LeastSquares(solution, residuals, *parts)


PUBLIC = [
    *names("gv.f", matrix_exp=tensor_matrix_exp),
    *names("gv.f x.f", pinverse),
    *names("gv.f(out=)", matrix_power=tensor_matrix_power),
    *names("x.f", matrix_exp, matrix_power),
    *names("linalg.f", lstsq, matrix_exp, vander),
    *names("linalg.f(out=)", matrix_power, matrix_rank, pinv),
]
