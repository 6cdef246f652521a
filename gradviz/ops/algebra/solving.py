"""Inverses, determinants, and the solution of linear equations."""

from collections.abc import Sequence
from math import prod

import numpy as np

from gradviz.backends.arrays.wrapped_array import in_one_kernel
from gradviz.backends.base import Array, beside
from gradviz.engine.graph.grad_mode import GRAD_ENABLED
from gradviz.engine.graph.protocols import Gradient
from gradviz.ops.algebra.products import broadcast_batches, matmul
from gradviz.ops.conventions.dimensions import Shape
from gradviz.ops.conventions.dtype_names import scalar_type_name
from gradviz.ops.dispatch.differentiable import differentiable
from gradviz.ops.dispatch.public import names
from gradviz.ops.elementwise.arithmetic import neg
from gradviz.ops.elementwise.selection import where
from gradviz.ops.elementwise.transcendental import log
from gradviz.ops.shapes.complex_parts import conj, imag
from gradviz.ops.shapes.diagonals import tril, triu
from gradviz.ops.shapes.matrices import (
    LinAlgError,
    adjoint,
    batch_element,
    check_floating,
    check_matrix,
    check_square,
)
from gradviz.ops.shapes.permutation import movedim
from gradviz.ops.shapes.shape import reshape
from gradviz.ops.shapes.unit_dimensions import unsqueeze
from gradviz.ops.variables.return_types import InverseAndInfo, SignAndLogarithm
from gradviz.ops.variables.variable import Value, raw, variable

# --- one node each ------------------------------------------------------------------


@differentiable(
    "LinalgInvExBackward0",
    x=lambda grad, result: neg(matmul(adjoint(result), matmul(grad, adjoint(result)))),
)
def _inv(x: Array, name: str) -> Array:
    """The inverses; see Note [Singular matrices in a backward].

    Args:
        x: The matrices.
        name: Name of the function for errors; empty where nothing may fail, for NaNs
            instead.
    """
    if not name:
        return in_one_kernel("inv", _inverse_or_nan, x)
    try:
        return np.linalg.inv(x)
    except np.linalg.LinAlgError:
        raise _singular("linalg.inv", x) from None


def _inverse_or_nan(x: Array) -> Array:
    try:
        return np.linalg.inv(x)
    except np.linalg.LinAlgError:
        return np.full_like(x, np.nan)


@differentiable(
    "LinalgSolveExBackward0",
    a=lambda grad, a, result: _solve_matrix_gradient(grad, a, result),
    b=lambda grad, a: _solve(adjoint(a), grad, False),
)
def _solve(a: Array, b: Array, is_checked: bool) -> Array:
    return _solved(a, b, is_checked)


def _solved(a: Array, b: Array, is_checked: bool) -> Array:
    """The X of ``A @ X == B``.

    Note [Singular matrices in a backward]
    ~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~
    A forward raises where a matrix is singular, and so has to wait for a device. A
    backward has the matrices of a forward that went well, or is to give infinities and
    NaNs, as PyTorch's does: it does not look, and launches.
    """
    if not is_checked:
        return in_one_kernel("solve", _solution_or_nan, a, b)
    try:
        return np.linalg.solve(a, b)
    except np.linalg.LinAlgError:
        number, _ = _first_singular(a)
        raise LinAlgError(
            f"torch.linalg.solve: {batch_element(a.shape, number)}The solver failed "
            f"because the input matrix is singular."
        ) from None


def _solution_or_nan(a: Array, b: Array) -> Array:
    try:
        return np.linalg.solve(a, b)
    except np.linalg.LinAlgError:
        return np.full_like(np.matmul(a, b), np.nan)


def _solve_matrix_gradient(grad: Gradient, a: Gradient, x: Gradient) -> Gradient:
    return neg(matmul(_solve(adjoint(a), grad, False), adjoint(x)))


@differentiable(
    "LinalgSolveExBackward0",
    a=lambda grad, a, result: _solve_matrix_gradient(
        unsqueeze(grad, -1), a, unsqueeze(result, -1)
    ),
    b=lambda grad, a: _solve_vector(adjoint(a), grad, False),
)
def _solve_vector(a: Array, b: Array, is_checked: bool) -> Array:
    return np.squeeze(_solved(a, np.expand_dims(b, -1), is_checked), -1)


@differentiable(
    "LinalgSolveExBackward0",
    a=lambda grad, a, result: neg(
        matmul(adjoint(result), _solve_right(adjoint(a), grad, False))
    ),
    b=lambda grad, a: _solve_right(adjoint(a), grad, False),
)
def _solve_right(a: Array, b: Array, is_checked: bool) -> Array:
    """The X of ``X @ A == B``."""
    a, b = np.swapaxes(a, -2, -1), np.swapaxes(b, -2, -1)
    return np.swapaxes(_solved(a, b, is_checked), -2, -1)


@differentiable(
    "LinalgSolveTriangularBackward0",
    a=lambda grad, a, result, upper, unit: _triangle(
        neg(
            matmul(
                _solve_triangular(adjoint(a), grad, not upper, unit), adjoint(result)
            )
        ),
        upper,
        unit,
    ),
    b=lambda grad, a, upper, unit: _solve_triangular(adjoint(a), grad, not upper, unit),
)
def _solve_triangular(a: Array, b: Array, upper: bool, unit: bool) -> Array:
    return _triangle_solved(a, b, upper, unit)


@differentiable(
    "LinalgSolveTriangularBackward0",
    a=lambda grad, a, result, upper, unit: _triangle(
        neg(
            matmul(
                adjoint(result),
                _solve_triangular_right(adjoint(a), grad, not upper, unit),
            )
        ),
        upper,
        unit,
    ),
    b=lambda grad, a, upper, unit: _solve_triangular_right(
        adjoint(a), grad, not upper, unit
    ),
)
def _solve_triangular_right(a: Array, b: Array, upper: bool, unit: bool) -> Array:
    """The X of ``X @ A == B``."""
    a, b = np.swapaxes(a, -2, -1), np.swapaxes(b, -2, -1)
    return np.swapaxes(_triangle_solved(a, b, not upper, unit), -2, -1)


def _triangle_solved(a: Array, b: Array, upper: bool, unit: bool) -> Array:
    """The X of ``A @ X == B``, looking at one triangle of A."""
    return in_one_kernel("solve_triangular", _triangle_solution, a, b, upper, unit)


def _triangle_solution(a: Array, b: Array, upper: bool, unit: bool) -> Array:
    triangle = np.triu(a, int(unit)) if upper else np.tril(a, -int(unit))
    if unit:
        triangle = triangle + beside(a, np.eye(a.shape[-1], dtype=a.dtype))
    if bool(np.any(np.diagonal(triangle, axis1=-2, axis2=-1) == 0)):
        return _substituted(triangle, b, upper)
    return np.linalg.solve(triangle, b)


def _substituted(a: Array, b: Array, upper: bool) -> Array:
    """`_solve_triangular` row by row, which divides by zeros as PyTorch does."""
    count = a.shape[-1]
    shape = (*np.broadcast_shapes(a.shape[:-2], b.shape[:-2]), *b.shape[-2:])
    result: Array = np.zeros_like(b, shape=shape)
    for row in reversed(range(count)) if upper else range(count):
        known = np.matmul(a[..., row : row + 1, :], result)[..., 0, :]
        result[..., row, :] = (b[..., row, :] - known) / a[..., row, row, None]
    return result


def _triangle(x: Gradient, upper: bool, unit: bool) -> Gradient:
    return triu(x, int(unit)) if upper else tril(x, -int(unit))


@differentiable(
    "CholeskySolveBackward0",
    b=lambda grad, factor, upper: _cholesky_solve(grad, factor, upper),
    factor=lambda grad, factor, upper, result: _cholesky_solve_factor(
        grad, factor, upper, result
    ),
)
def _cholesky_solve(b: Array, factor: Array, upper: bool) -> Array:
    lower = np.conj(np.swapaxes(factor, -2, -1)) if upper else factor
    half = _triangle_solved(lower, b, upper=False, unit=False)
    back = np.conj(np.swapaxes(lower, -2, -1))
    return _triangle_solved(back, half, upper=True, unit=False)


def _cholesky_solve_factor(
    grad: Gradient, factor: Gradient, upper: bool, result: Gradient
) -> Gradient:
    """Source: torch/csrc/autograd/FunctionsManual.cpp, cholesky_solve_backward."""
    product = matmul(_cholesky_solve(grad, factor, upper), adjoint(result))
    both = product + adjoint(product)
    return neg(matmul(factor, both) if upper else matmul(both, factor))


@differentiable(
    "CholeskyInverseBackward0",
    factor=lambda grad, factor, upper, result: _cholesky_inverse_factor(
        grad, factor, upper, result
    ),
)
def _cholesky_inverse(factor: Array, upper: bool) -> Array:
    triangle = np.triu(factor) if upper else np.tril(factor)
    try:
        inverse = np.linalg.inv(triangle)
    except np.linalg.LinAlgError:
        raise _singular("cholesky_inverse", triangle) from None
    back = np.conj(np.swapaxes(inverse, -2, -1))
    return np.matmul(inverse, back) if upper else np.matmul(back, inverse)


def _cholesky_inverse_factor(
    grad: Gradient, factor: Gradient, upper: bool, result: Gradient
) -> Gradient:
    """Source: torch/csrc/autograd/FunctionsManual.cpp, cholesky_inverse_backward."""
    both = matmul(result, matmul(grad + adjoint(grad), result))
    return neg(matmul(factor, both) if upper else matmul(both, factor))


@differentiable(
    "LinalgDetBackward0", x=lambda grad, x, result: _det_gradient(grad, x, result)
)
def _det(x: Array) -> Array:
    return np.linalg.det(x)


def _det_gradient(grad: Gradient, x: Gradient, result: Gradient) -> Gradient:
    """The gradient of a determinant: its cofactors.

    Where a matrix is singular they cannot come from its inverse, and are taken from its
    singular values instead; only once, as that is not differentiated. So a gradient
    that is to be differentiated waits for a device, to know: so does PyTorch's.
    """
    array = raw(x)
    if not array.size:
        return x * 0
    if GRAD_ENABLED.get() and bool(np.all(np.abs(raw(result)) > 0)):
        scale = (grad * conj(result))[..., None, None]
        return scale * adjoint(_inv(x, ""))
    cofactors = in_one_kernel("det: cofactors", _cofactors, array, raw(result))
    return grad[..., None, None] * cofactors


def _cofactors(x: Array, det: Array) -> Array:
    if bool(np.all(np.abs(det) > 0)):
        inverse = np.swapaxes(np.linalg.inv(x), -2, -1)
        return np.conj(det[..., None, None] * inverse)
    u, s, vh = np.linalg.svd(x)
    others = np.ones_like(s)
    for i in range(s.shape[-1]):
        others[..., i] = np.prod(np.delete(s, i, axis=-1), axis=-1)
    signs = np.linalg.det(u) * np.linalg.det(vh)
    return np.matmul(u * others[..., None, :], vh) * np.conj(signs)[..., None, None]


@differentiable(
    "LinalgSlogdetBackward0",
    results=("sign", "logabsdet"),
    x=lambda grads, x, sign: _slogdet_gradient(grads, x, sign),
)
def _slogdet(x: Array) -> tuple[Array, Array]:
    sign, logabsdet = np.linalg.slogdet(x)
    return sign, logabsdet


def _slogdet_gradient(
    grads: tuple[Gradient, Gradient], x: Gradient, sign: Gradient
) -> Gradient:
    """Source: torch/csrc/autograd/FunctionsManual.cpp, slogdet_backward."""
    grad_sign, grad_log = grads
    is_complex = raw(x).dtype.kind == "c"
    if grad_log is None and not (is_complex and grad_sign is not None):
        return None
    scale = grad_log
    if is_complex and grad_sign is not None:
        turn = 1j * imag(conj(grad_sign) * sign)
        scale = -turn if grad_log is None else grad_log - turn
    return scale[..., None, None] * adjoint(_inv(x, ""))


# --- what users call ----------------------------------------------------------------


def inv(A: Value) -> Value:  # noqa: N803 - PyTorch's name
    """The inverses of square matrices.

    Raises:
        LinAlgError: A matrix is singular.
        RuntimeError: Shape or dtype does not fit.
    """
    check_square("linalg.inv", raw(A))
    check_floating("linalg.inv", raw(A))
    return _inv(A, "linalg.inv")


def inverse(input: Value) -> Value:
    """`inv`, under its older name."""
    return inv(input)


def inv_ex(A: Value, *, check_errors: bool = False) -> InverseAndInfo:  # noqa: N803 - PyTorch's name
    """`inv`, with a number instead of an error where a matrix is singular.

    Args:
        A: Square matrices.
        check_errors: Raise the error after all.

    Raises:
        LinAlgError: A matrix is singular, and errors are wanted.
        RuntimeError: Shape or dtype does not fit.
    """
    check_square("linalg.inv", raw(A))
    check_floating("linalg.inv", raw(A))
    inverse = _inv(A, "linalg.inv" if check_errors else "")
    info = in_one_kernel("inv_ex: info", _failures, raw(A))
    return InverseAndInfo(inverse, variable(info))


def cholesky_solve(input: Value, input2: Value, upper: bool = False) -> Value:
    """The X of ``A @ X == input``, given the Cholesky factor of A.

    Args:
        input: The right side, matrices.
        input2: The factor: triangular matrices.
        upper: True if they are the upper ones.
    """
    return _cholesky_solve(input, input2, upper)


def cholesky_inverse(input: Value, upper: bool = False) -> Value:
    """The inverse of A, given its Cholesky factor."""
    return _cholesky_inverse(input, upper)


def solve(A: Value, B: Value, *, left: bool = True) -> Value:  # noqa: N803 - PyTorch's names
    """The X of ``A @ X == B``; with ``left=False`` that of ``X @ A == B``.

    Args:
        A: Square matrices.
        B: Matrices; or vectors, if it has one dimension, or the shape of `A` without
            the last one.
        left: True if the matrices stand on the left of X, False if on the right.

    Raises:
        LinAlgError: A matrix is singular.
        RuntimeError: Shapes or dtypes do not fit.
    """
    a, b = raw(A), raw(B)
    check_square("linalg.solve", a)
    check_floating("linalg.solve", a)
    _check_same_dtype("linalg.solve", a, b)
    is_vector = b.ndim == 1 or (a.ndim - 1 == b.ndim and b.shape == a.shape[:-1])
    if is_vector:
        _check_fits("linalg.solve", a.shape, (*b.shape, 1), left=left)
        return _solve_vector(A, B, True)
    _check_fits("linalg.solve", a.shape, b.shape, left=left)
    return _solve(A, B, True) if left else _solve_right(A, B, True)


def solve_triangular(
    A: Value,  # noqa: N803 - PyTorch's name
    B: Value,  # noqa: N803 - PyTorch's name
    *,
    upper: bool,
    left: bool = True,
    unitriangular: bool = False,
) -> Value:
    """The X of ``A @ X == B``, where A is triangular.

    Args:
        A: Square matrices, of which one triangle counts.
        B: Matrices.
        upper: True if that is the upper one.
        left: True if the matrices stand on the left of X, False if on the right.
        unitriangular: True if the diagonals are taken for ones.

    Raises:
        RuntimeError: Shapes or dtypes do not fit.
    """
    a, b = raw(A), raw(B)
    check_square("linalg.solve_triangular", a)
    check_matrix("linalg.solve_triangular", b, "B")
    _check_same_dtype("linalg.solve_triangular", a, b)
    _check_fits("linalg.solve_triangular", a.shape, b.shape, left=left)
    op = _solve_triangular if left else _solve_triangular_right
    return op(A, B, upper, unitriangular)


def det(A: Value) -> Value:  # noqa: N803 - PyTorch's name
    """The determinants of square matrices.

    Raises:
        RuntimeError: Shape or dtype does not fit.
    """
    check_square("linalg.det", raw(A))
    check_floating("linalg.det", raw(A), "lu_cpu")
    return _det(A)


def slogdet(A: Value) -> SignAndLogarithm:  # noqa: N803 - PyTorch's name
    """The signs of the determinants of square matrices, and their logarithms.

    Raises:
        RuntimeError: Shape or dtype does not fit.
    """
    check_square("linalg.slogdet", raw(A))
    check_floating("linalg.slogdet", raw(A))
    return SignAndLogarithm(*_slogdet(A))


def tensor_det(input: Value) -> Value:
    """`det`, as PyTorch has it outside of ``linalg``."""
    return det(input)


def tensor_slogdet(input: Value) -> SignAndLogarithm:
    """`slogdet`, as PyTorch has it outside of ``linalg``."""
    return slogdet(input)


def logdet(input: Value) -> Value:
    """The logarithms of determinants; NaN where they are negative.

    Raises:
        RuntimeError: Shape or dtype does not fit.
    """
    check_square("logdet", raw(input))
    check_floating("logdet", raw(input))
    sign, logabsdet = _slogdet(input)
    if raw(input).dtype.kind == "c":
        return logabsdet + log(sign)
    return where(sign == -1.0, np.nan, logabsdet)


def tensorinv(A: Value, ind: int = 2) -> Value:  # noqa: N803 - PyTorch's name
    """The inverse of `A` as a map from its last dimensions to the first `ind`.

    Raises:
        RuntimeError: The products of their lengths differ.
    """
    if ind <= 0:
        raise RuntimeError(
            f"Expected a strictly positive integer for 'ind', but got {ind}"
        )
    shape = raw(A).shape
    rows, columns = prod(shape[:ind]), prod(shape[ind:])
    if rows != columns:
        raise RuntimeError(
            f"Expected self to satisfy the requirement prod(self.shape[ind:]) == "
            f"prod(self.shape[:ind]), but got {columns} != {rows}"
        )
    return reshape(inv(reshape(A, (rows, columns))), (*shape[ind:], *shape[:ind]))


def tensorsolve(
    A: Value,  # noqa: N803 - PyTorch's name
    B: Value,  # noqa: N803 - PyTorch's name
    dims: Sequence[int] | None = None,
) -> Value:
    """The X of ``tensordot(A, X, X.ndim) == B``.

    Args:
        A: Its first dimensions are those of `B`, the others those of X.
        B: The right side.
        dims: Dimensions of `A` to move to the end first.

    Raises:
        RuntimeError: The lengths do not fit.
    """
    if dims is not None:
        A = movedim(A, tuple(dims), tuple(range(-len(dims), 0)))  # noqa: N806 - moved
    shape, ndim = raw(A).shape, raw(B).ndim
    rows, columns = prod(shape[:ndim]), prod(shape[ndim:])
    if rows != columns:
        raise RuntimeError(
            f"Expected self to satisfy the requirement prod(self.shape[other.ndim:]) "
            f"== prod(self.shape[:other.ndim]), but got {columns} != {rows}"
        )
    right = B if ndim == 1 else reshape(B, (rows,))
    flat = _solve_vector(reshape(A, (rows, columns)), right, True)
    return reshape(flat, shape[ndim:])


# --- what is refused ----------------------------------------------------------------


def _check_same_dtype(name: str, a: Array, b: Array) -> None:
    if a.dtype != b.dtype:
        raise RuntimeError(
            f"{name}: Expected A and B to have the same dtype, but found A of type "
            f"{scalar_type_name(a.dtype)} and B of type {scalar_type_name(b.dtype)} "
            f"instead"
        )


def _check_fits(name: str, a: Shape, b: Shape, *, left: bool) -> None:
    if (a[-2] if left else a[-1]) != (b[-2] if left else b[-1]):
        equation = "AX = B" if left else "XA = B"
        raise RuntimeError(
            f"{name}: Incompatible shapes of A and B for the equation {equation} "
            f"({a[-2]}x{a[-1]} and {b[-2]}x{b[-1]})"
        )
    broadcast_batches(b[:-2], a[:-2])


def _singular(name: str, x: Array) -> LinAlgError:
    number, pivot = _first_singular(x)
    return LinAlgError(
        f"{name}: {batch_element(x.shape, number)}The diagonal element {pivot} is "
        f"zero, the inversion could not be completed because the input matrix is "
        f"singular."
    )


def _failures(x: Array) -> Array:
    """For each matrix 0; for the first that is singular, the number of its pivot."""
    info = np.zeros_like(x, np.int32, shape=x.shape[:-2])
    try:
        np.linalg.inv(x)
    except np.linalg.LinAlgError:
        number, pivot = _first_singular(x)
        np.reshape(info, -1)[number] = pivot
    return info


def _first_singular(x: Array) -> tuple[int, int]:
    """Return the first singular matrix of a batch, and its zero pivot, from 1."""
    matrices = np.reshape(x, (-1, *x.shape[-2:]))
    for number in range(matrices.shape[0]):
        rest = matrices[number]
        for pivot in range(1, x.shape[-1] + 1):
            row = int(np.argmax(np.abs(rest[:, 0])))
            if not bool(rest[row, 0] != 0):
                return number, pivot
            order = [row, *(i for i in range(rest.shape[0]) if i != row)]
            rest = rest[order]
            factors = rest[1:, :1] / rest[:1, :1]
            rest = rest[1:, 1:] - factors * rest[:1, 1:]
    return 0, x.shape[-1]


PUBLIC = [
    *names("gv.f", det=tensor_det, slogdet=tensor_slogdet),
    *names("gv.f x.f", logdet),
    *names("gv.f(out=)", cholesky_inverse, cholesky_solve),
    *names("gv.f(out=) x.f", inverse),
    *names("x.f", det, slogdet),
    *names("linalg.f(out=)", det, inv, inv_ex, slogdet, solve, solve_triangular),
    *names("linalg.f(out=)", tensorinv, tensorsolve),
]
