"""Factorizations of matrices: Cholesky, QR, singular values, eigenvalues.

Factors are only unique up to signs, or phases, and their order; so are the gradients
that come through them. Where singular values or eigenvalues coincide, those of the
vectors are not defined, and come out infinite or NaN.
"""

from typing import Literal, TypeAlias

import numpy as np

from gradviz.backends.base import Array
from gradviz.engine.graph.protocols import Gradient
from gradviz.ops.algebra.products import matmul
from gradviz.ops.algebra.solving import solve, solve_triangular
from gradviz.ops.dispatch.differentiable import differentiable
from gradviz.ops.dispatch.public import names
from gradviz.ops.shapes.complex_parts import conj, is_complex
from gradviz.ops.shapes.diagonals import diag_embed, diagonal, tril, triu
from gradviz.ops.shapes.joining import cat
from gradviz.ops.shapes.matrices import (
    LinAlgError,
    adjoint,
    batch_element,
    check_floating,
    check_matrix,
    check_square,
    gaps,
    not_implemented,
)
from gradviz.ops.shapes.unit_dimensions import unsqueeze
from gradviz.ops.variables.return_types import QR, SVD, Eigen, OlderSVD
from gradviz.ops.variables.variable import Value, raw

#: Factors of a QR factorization that are computed.
QRMode: TypeAlias = Literal["reduced", "complete", "r"]

#: Triangle of a Hermitian matrix that counts.
Triangle: TypeAlias = Literal["L", "U", "l", "u"]


# --- Cholesky -----------------------------------------------------------------------


def _factor(x: Array, upper: bool) -> Array:
    if upper:  # the triangle that counts
        x = np.conj(np.swapaxes(x, -2, -1))
    try:
        factor = np.linalg.cholesky(x)
    except np.linalg.LinAlgError:
        number, order = _first_indefinite(x)
        raise LinAlgError(
            f"linalg.cholesky: {batch_element(x.shape, number)}The factorization could "
            f"not be completed because the input is not positive-definite (the leading "
            f"minor of order {order} is not positive-definite)."
        ) from None
    return np.conj(np.swapaxes(factor, -2, -1)) if upper else factor


_cholesky, _older_cholesky = (
    differentiable(
        name, x=lambda grad, result, upper: _cholesky_gradient(grad, result, upper)
    )(_factor)
    for name in ("LinalgCholeskyExBackward0", "CholeskyBackward0")
)


def _cholesky_gradient(grad: Gradient, factor: Gradient, upper: bool) -> Gradient:
    """Source: torch/csrc/autograd/FunctionsManual.cpp, cholesky_backward."""
    lower = adjoint(factor) if upper else factor
    grad = adjoint(grad) if upper else grad
    product = matmul(adjoint(lower), grad)
    symmetric = tril(product) + adjoint(tril(product, -1))
    half = solve_triangular(adjoint(lower), symmetric, upper=True)
    return 0.5 * solve_triangular(lower, half, upper=False, left=False)


def _first_indefinite(x: Array) -> tuple[int, int]:
    """Return the first matrix not positive-definite, and its minor, from 1."""
    matrices = np.reshape(x, (-1, *x.shape[-2:]))
    for number in range(matrices.shape[0]):
        for order in range(1, x.shape[-1] + 1):
            try:
                np.linalg.cholesky(matrices[number, :order, :order])
            except np.linalg.LinAlgError:
                return number, order
    return 0, 1


# --- QR -----------------------------------------------------------------------------


@differentiable(
    "LinalgQrBackward0",
    results=("q", "r"),
    x=lambda grads, mode, q, r: _qr_gradient(grads, mode, q, r),
)
def _qr(x: Array, mode: QRMode) -> tuple[Array, Array]:
    if mode == "r":
        return np.zeros_like(x, shape=(0,)), np.linalg.qr(x, mode="r")
    q, r = np.linalg.qr(x, mode=mode)
    return q, r


def _qr_gradient(
    grads: tuple[Gradient, Gradient], mode: str, q: Gradient, r: Gradient
) -> Gradient:
    """Source: torch/csrc/autograd/FunctionsManual.cpp, linalg_qr_backward.

    Raises:
        RuntimeError: The factors do not determine a gradient.
    """
    grad_q, grad_r = grads
    if mode == "r":
        raise RuntimeError(
            "The derivative of linalg.qr depends on Q, which is not computed when "
            "mode='r'. Please use linalg.qr(A, mode='reduced') if you are going to "
            "differentiate through linalg.qr."
        )
    rows, columns = raw(q).shape[-2], raw(r).shape[-1]
    if mode == "complete" and rows > columns:
        raise RuntimeError(
            "The QR decomposition is not differentiable when mode='complete' and nrows "
            "> ncols."
        )
    if rows >= columns:
        return _tall_qr_gradient(grad_q, grad_r, q, r)
    # A = [X, Y]: X = Q U is square, and Y = Q V only depends on it.
    square, rest = r[..., :rows], r[..., rows:]
    if grad_r is None:
        first = _tall_qr_gradient(grad_q, None, q, square)
        return _beside(first, raw(r).shape[-1] - rows)
    grad_square, grad_rest = grad_r[..., :rows], grad_r[..., rows:]
    through = matmul(matmul(q, rest), adjoint(grad_rest))
    grad_q = through if grad_q is None else grad_q + through
    first = _tall_qr_gradient(grad_q, grad_square, q, square)
    return _joined(first, matmul(q, grad_rest))


def _tall_qr_gradient(
    grad_q: Gradient, grad_r: Gradient, q: Gradient, r: Gradient
) -> Gradient:
    inner = 0 if grad_r is None else matmul(grad_r, adjoint(r))
    if grad_q is not None:
        inner = inner - matmul(adjoint(q), grad_q)
    upper = triu(inner)
    symmetric = upper + adjoint(upper) - _real_diagonal(upper)
    total = matmul(q, symmetric)
    if grad_q is not None:
        total = total + grad_q
    return solve_triangular(adjoint(r), total, upper=False, left=False)


def _real_diagonal(x: Gradient) -> Gradient:
    """The real parts of diagonals, on diagonals."""
    middle = diagonal(x, 0, -2, -1)
    if is_complex(x):
        middle = (middle + conj(middle)) * 0.5
    return diag_embed(middle)


def _joined(first: Gradient, second: Gradient) -> Gradient:
    return cat([first, second], -1)


def _beside(first: Gradient, columns: int) -> Gradient:
    shape = (*raw(first).shape[:-1], columns)
    return cat([first, np.zeros_like(raw(first), shape=shape)], -1)


# --- singular values ----------------------------------------------------------------


@differentiable(
    "LinalgSvdBackward0",
    results=("u", "s", "vh"),
    x=lambda grads, u, s, vh: _svd_gradient(grads, u, s, vh),
)
def _svd(x: Array, full_matrices: bool) -> tuple[Array, Array, Array]:
    if not bool(np.all(np.isfinite(x))):
        raise LinAlgError(
            "linalg.svd: The algorithm failed to converge because the input matrix "
            "contained non-finite values."
        )
    u, s, vh = np.linalg.svd(x, full_matrices=full_matrices)
    return u, s, vh


def _svd_gradient(
    grads: tuple[Gradient, Gradient, Gradient], u: Gradient, s: Gradient, vh: Gradient
) -> Gradient:
    """Source: torch/csrc/autograd/FunctionsManual.cpp, svd_backward."""
    count = raw(s).shape[-1]
    grad_u, grad_s, grad_vh = grads
    u, vh = u[..., :count], vh[..., :count, :]
    grad_u = None if grad_u is None else grad_u[..., :count]
    grad_vh = None if grad_vh is None else grad_vh[..., :count, :]
    if grad_u is None and grad_vh is None:
        return matmul(u * unsqueeze(grad_s, -2), vh)
    inner = _svd_inner(grad_u, grad_s, grad_vh, u, s, vh)
    rows, columns = raw(u).shape[-2], raw(vh).shape[-1]
    if rows > count and grad_u is not None:
        scaled = grad_u / unsqueeze(s, -2)
        outside = scaled - matmul(u, matmul(adjoint(u), scaled))
        return matmul(matmul(u, inner) + outside, vh)
    if columns > count and grad_vh is not None:
        scaled = grad_vh / unsqueeze(s, -1)
        outside = scaled - matmul(matmul(scaled, adjoint(vh)), vh)
        return matmul(u, matmul(inner, vh) + outside)
    return matmul(u, matmul(inner, vh))


def _svd_inner(
    grad_u: Gradient,
    grad_s: Gradient,
    grad_vh: Gradient,
    u: Gradient,
    s: Gradient,
    vh: Gradient,
) -> Gradient:
    """The gradient between the singular vectors."""
    divisor = gaps(s * s)
    inner = 0 if grad_s is None else diag_embed(grad_s)
    if grad_u is not None:
        turned = _skew(matmul(adjoint(u), grad_u))
        inner = inner + turned / divisor * unsqueeze(s, -2)
        if is_complex(turned) and grad_vh is not None:
            inner = inner + diag_embed(diagonal(turned, 0, -2, -1) / (2 * s))
    if grad_vh is not None:
        turned = _skew(matmul(vh, adjoint(grad_vh)))
        inner = inner + unsqueeze(s, -1) * (turned / divisor)
    return inner


def _skew(x: Gradient) -> Gradient:
    return x - adjoint(x)


# --- eigenvalues --------------------------------------------------------------------


@differentiable(
    "LinalgEighBackward0",
    results=("values", "vectors"),
    x=lambda grads, values, vectors: _eigh_gradient(grads, values, vectors),
)
def _eigh(x: Array, triangle: Triangle) -> tuple[Array, Array]:
    values, vectors = np.linalg.eigh(x, triangle)
    return values, vectors


def _eigh_gradient(
    grads: tuple[Gradient, Gradient], values: Gradient, vectors: Gradient
) -> Gradient:
    """Source: torch/csrc/autograd/FunctionsManual.cpp, linalg_eig_backward."""
    grad_values, grad_vectors = grads
    scaled = 0 if grad_values is None else vectors * unsqueeze(grad_values, -2)
    if grad_vectors is not None:
        turned = matmul(adjoint(vectors), grad_vectors) / gaps(values)
        turned = turned - diag_embed(diagonal(turned, 0, -2, -1))
        scaled = scaled + matmul(vectors, turned)
    grad = matmul(scaled, adjoint(vectors))
    return (grad + adjoint(grad)) * 0.5


@differentiable(
    "LinalgEigBackward0",
    results=("values", "vectors"),
    x=lambda grads, values, vectors: _eig_gradient(grads, values, vectors),
)
def _eig(x: Array) -> tuple[Array, Array]:
    values, vectors = np.linalg.eig(x)
    dtype = np.result_type(x.dtype, np.complex64)
    return values.astype(dtype, copy=False), vectors.astype(dtype, copy=False)


def _eig_gradient(
    grads: tuple[Gradient, Gradient], values: Gradient, vectors: Gradient
) -> Gradient:
    """Source: torch/csrc/autograd/FunctionsManual.cpp, linalg_eig_backward."""
    grad_values, grad_vectors = grads
    ah = adjoint(vectors)
    if grad_vectors is None:
        return solve(ah, unsqueeze(grad_values, -1) * ah)
    turned = matmul(ah, grad_vectors)
    level = diag_embed(_real(diagonal(turned, 0, -2, -1)))
    inner = (turned - matmul(ah, matmul(vectors, level))) / gaps(conj(values))
    inner = inner - diag_embed(diagonal(inner, 0, -2, -1))
    if grad_values is not None:
        inner = inner + diag_embed(grad_values)
    return solve(ah, matmul(inner, ah))


def _real(x: Gradient) -> Gradient:
    return (x + conj(x)) * 0.5


# --- what users call ----------------------------------------------------------------


def cholesky(A: Value, *, upper: bool = False) -> Value:  # noqa: N803 - PyTorch's name
    """The triangular L of ``A == L @ L.mH``.

    Args:
        A: Hermitian, positive-definite matrices, of which one triangle counts.
        upper: True if that is the upper one, and ``L.mH`` is returned.

    Raises:
        LinAlgError: A matrix is not positive-definite.
        RuntimeError: Shape or dtype does not fit.
    """
    check_square("linalg.cholesky", raw(A))
    check_floating("linalg.cholesky", raw(A), "cholesky_cpu")
    return _cholesky(A, upper)


def qr(A: Value, mode: QRMode = "reduced") -> QR:  # noqa: N803 - PyTorch's name
    """Matrices as products of one with orthonormal columns and a triangular one.

    Args:
        A: Matrices, m by n.
        mode: "reduced": Q has ``min(m, n)`` columns; "complete": it is square; "r":
            only R is computed.

    Raises:
        RuntimeError: There is no such mode, or shape or dtype does not fit.
    """
    check_matrix("linalg.qr", raw(A))
    check_floating("linalg.qr", raw(A), "geqrf_cpu")
    if mode not in ("reduced", "complete", "r"):
        raise RuntimeError(
            f"qr received unrecognized mode '{mode}' but expected one of 'reduced' "
            f"(default), 'r', or 'complete'"
        )
    return QR(*_qr(A, mode))


def svd(A: Value, full_matrices: bool = True) -> SVD:  # noqa: N803 - PyTorch's name
    """Singular values and vectors: ``A == U @ diag(S) @ Vh``.

    Args:
        A: Matrices, m by n.
        full_matrices: True if U and Vh are square; else they have only the
            ``min(m, n)`` vectors that belong to singular values.

    Raises:
        LinAlgError: A matrix has infinities or NaN.
        RuntimeError: Shape or dtype does not fit.
    """
    check_matrix("linalg.svd", raw(A))
    check_floating("linalg.svd", raw(A), "linalg_svd_cpu")
    return SVD(*_svd(A, full_matrices))


def svdvals(A: Value) -> Value:  # noqa: N803 - PyTorch's name
    """Singular values, from the largest to the smallest; see `svd`."""
    return svd(A, full_matrices=False).S


def eigh(A: Value, UPLO: Triangle = "L") -> Eigen:  # noqa: N803 - PyTorch's names
    """Eigenvalues and eigenvectors of Hermitian matrices.

    Args:
        A: Hermitian matrices, of which one triangle counts.
        UPLO: That triangle: "L" for the lower one, "U" for the upper one.

    Raises:
        RuntimeError: Shape, dtype or `UPLO` does not fit.
    """
    check_square("linalg.eigh", raw(A))
    if UPLO.upper() not in ("L", "U"):
        raise RuntimeError(f"Expected UPLO argument to be 'L' or 'U', but got {UPLO}")
    if raw(A).dtype.char not in "fdFD":
        raise not_implemented("linalg_eigh_cpu", raw(A))
    return Eigen(*_eigh(A, "L" if UPLO in ("L", "l") else "U"))


def eigvalsh(A: Value, UPLO: Triangle = "L") -> Value:  # noqa: N803 - PyTorch's names
    """Eigenvalues of Hermitian matrices, from the smallest; see `eigh`."""
    return eigh(A, UPLO).eigenvalues


def eig(A: Value) -> Eigen:  # noqa: N803 - PyTorch's name
    """Eigenvalues and eigenvectors of square matrices; both are complex.

    Raises:
        RuntimeError: Shape or dtype does not fit.
    """
    check_square("linalg.eig", raw(A))
    if raw(A).dtype.char not in "fdFD":
        raise not_implemented("linalg_eig_out_cpu", raw(A))
    return Eigen(*_eig(A))


def eigvals(A: Value) -> Value:  # noqa: N803 - PyTorch's name
    """Eigenvalues of square matrices, which are complex; see `eig`."""
    return eig(A).eigenvalues


# --- under older names --------------------------------------------------------------


def older_cholesky(input: Value, upper: bool = False) -> Value:
    """`cholesky`, as ``gradviz.cholesky``."""
    check_square("cholesky", raw(input))
    check_floating("cholesky", raw(input), "cholesky_cpu")
    return _older_cholesky(input, upper)


def older_qr(input: Value, some: bool = True) -> QR:
    """`qr`, as ``gradviz.qr``: with the factors reduced, or complete."""
    return qr(input, "reduced" if some else "complete")


def older_svd(input: Value, some: bool = True, compute_uv: bool = True) -> OlderSVD:
    """`svd`, as ``gradviz.svd``, which returns V instead of its adjoint.

    Args:
        input: Matrices.
        some: Only the vectors that belong to singular values.
        compute_uv: True if vectors are computed at all; zeros if not.
    """
    u, s, vh = svd(input, full_matrices=not some)
    if compute_uv:
        return OlderSVD(u, s, adjoint(vh))
    return OlderSVD(u.detach() * 0, s, adjoint(vh).detach() * 0)


PUBLIC = [
    *names("gv.f(out=) x.f", cholesky=older_cholesky, qr=older_qr, svd=older_svd),
    *names("linalg.f(out=)", cholesky, eig, eigh, eigvals, eigvalsh, qr, svd, svdvals),
]
