"""Norms of matrices, and of vectors or matrices as the case may be."""

import math
from collections.abc import Sequence
from typing import Any, Final, TypeAlias

from gradviz.ops.algebra.factorizations import svdvals
from gradviz.ops.algebra.solving import inv
from gradviz.ops.conventions.dimensions import (
    INTEGERS,
    Dims,
    Shape,
    wrap_dim,
    wrap_dims,
)
from gradviz.ops.conventions.promotion import DTypeLike
from gradviz.ops.dispatch.public import names
from gradviz.ops.elementwise.arithmetic import div, mul
from gradviz.ops.reductions.extremes import amax, amin
from gradviz.ops.reductions.norms import vector_norm
from gradviz.ops.reductions.reduction import sum as sum_of
from gradviz.ops.shapes.copying import to_copy
from gradviz.ops.shapes.matrices import (
    LinAlgError,
    check_floating,
    check_matrix,
    check_square,
)
from gradviz.ops.shapes.permutation import movedim, permute
from gradviz.ops.shapes.unit_dimensions import squeeze, unsqueeze
from gradviz.ops.variables.variable import Value, device_of, raw, variable

#: A number; "fro", the root of the sum of squares; "nuc", that of singular values.
NormOrder: TypeAlias = float | str | None

_ORDERS: Final = (1, -1, 2, -2, math.inf, -math.inf)


def matrix_norm(
    A: Value,  # noqa: N803 - PyTorch's name
    ord: float | str = "fro",
    dim: Sequence[int] = (-2, -1),
    keepdim: bool = False,
    *,
    dtype: DTypeLike = None,
) -> Value:
    """The norms of matrices.

    Args:
        A: Floats or complex numbers.
        ord: "fro": the root of the sum of squares; "nuc": the sum of singular values;
            2 and -2: the largest and smallest of them; 1 and -1: of the sums of
            columns; infinities: of the sums of rows.
        dim: The two dimensions of a matrix.
        keepdim: Keep them, with length 1.
        dtype: Type to compute in.

    Raises:
        RuntimeError: There is no such norm, or shape or dtype does not fit.

    Source: aten/src/ATen/native/LinearAlgebra.cpp, linalg_matrix_norm.
    """
    name = "linalg.matrix_norm"
    check_matrix(name, raw(A))
    rows, columns = _two_dims(name, dim, raw(A).ndim)
    if raw(A).dtype.kind not in "fc":
        check_floating(name, raw(A))
    if isinstance(ord, str) and ord not in ("fro", "nuc"):
        raise RuntimeError(f"{name}: Order {ord} not supported.")
    if ord == "fro":
        return vector_norm(A, 2, (rows, columns), keepdim, dtype=dtype)
    if dtype is not None:
        A = to_copy(A, dtype, device_of(raw(A)))  # noqa: N806 - the same, converted
    if ord == "nuc":
        values = sum_of(_singular_values(A, rows, columns), -1)
        return _kept(values, rows, columns, keepdim)
    if isinstance(ord, str) or abs(ord) not in (1, 2, math.inf):
        raise RuntimeError(f"{name}: Order {ord} not supported.")
    extreme = amax if ord > 0 else amin
    if abs(ord) == 2:
        values = extreme(_singular_values(A, rows, columns), -1)
        return _kept(values, rows, columns, keepdim)
    summed, other = (rows, columns) if abs(ord) == 1 else (columns, rows)
    if summed < other and not keepdim:
        other -= 1
    sums = vector_norm(A, 1, summed, keepdim)
    return extreme(sums, other, keepdim)


def norm(
    A: Value,  # noqa: N803 - PyTorch's name
    ord: NormOrder = None,
    dim: Dims = None,
    keepdim: bool = False,
    *,
    dtype: DTypeLike = None,
) -> Value:
    """The norm of vectors, or of matrices: ``gradviz.linalg.norm``.

    Args:
        A: Floats or complex numbers.
        ord: As for `vector_norm` or `matrix_norm`; the root of the sum of squares if
            not given.
        dim: One dimension for vectors, two for matrices; all of them if not given.
        keepdim: Keep them, with length 1.
        dtype: Type to compute in.

    Raises:
        RuntimeError: There is no such norm, or shape or dtype does not fit.
    """
    dims = None if dim is None else [dim] if isinstance(dim, INTEGERS) else list(dim)
    if dims is not None and ord is not None and len(dims) not in (1, 2):
        raise RuntimeError(
            f"linalg.norm: If dim is specified, it must be of length 1 or 2. Got {dims}"
        )
    ndim = raw(A).ndim
    if (
        dims is None
        and ord is not None
        and not isinstance(ord, str)
        and ndim not in (1, 2)
    ):
        raise RuntimeError(
            f"linalg.norm: If dim is not specified but ord is, the input must be 1D or "
            f"2D. Got {ndim}D."
        )
    if ord is None:
        return vector_norm(A, 2, dims, keepdim, dtype=dtype)
    if isinstance(ord, str) or (ndim if dims is None else len(dims)) == 2:
        return matrix_norm(A, ord, dims or (-2, -1), keepdim, dtype=dtype)
    return vector_norm(A, ord, dims, keepdim, dtype=dtype)


def tensor_norm(
    input: Value,
    p: NormOrder = "fro",
    dim: Dims = None,
    keepdim: bool = False,
    out: None = None,
    dtype: DTypeLike = None,
) -> Value:
    """The norm, under its older name: ``gradviz.norm``.

    Args:
        input: Floats or complex numbers.
        p: The exponent of a norm of vectors; or "fro" or "nuc".
        dim: Dimensions to take the norm along; all of them, as one vector, by default.
        keepdim: Keep them, with length 1.
        out: Not supported.
        dtype: Type to compute in.

    Source: torch/functional.py, norm.
    """
    del out
    if p == "fro" and (dim is None or isinstance(dim, INTEGERS) or len(dim) <= 2):
        return vector_norm(input, 2, dim, keepdim, dtype=dtype)
    if isinstance(p, str):
        dims = wrap_dims(dim, raw(input).ndim)
        return matrix_norm(input, p, dims, keepdim, dtype=dtype)
    return vector_norm(input, 2.0 if p is None else p, dim, keepdim, dtype=dtype)


def cond(A: Value, p: NormOrder = None) -> Value:  # noqa: N803 - PyTorch's name
    """The condition number: how much errors grow when equations are solved.

    Args:
        A: Matrices; square ones, unless `p` is 2, -2 or not given.
        p: The norm of which the product of that of `A` and that of its inverse is
            taken.

    Raises:
        RuntimeError: There is no such norm, or the shape does not fit.
    """
    check_matrix("linalg.cond", raw(A), None)
    if p is None or p in (2, -2):
        values = svdvals(A)
        first, last = values[..., :1], values[..., -1:]
        ratio = div(first, last) if p != -2 else div(last, first)
        return squeeze(ratio, -1)
    if not isinstance(p, str) and p not in _ORDERS:
        raise RuntimeError(f"linalg.cond got an invalid norm type: {p:g}")
    check_square(f"linalg.cond(ord={p})", raw(A))
    return mul(matrix_norm(A, p), _inverse_norm(A, p))


def _inverse_norm(A: Value, p: float | str) -> Value:  # noqa: N803 - PyTorch's name
    try:
        return matrix_norm(inv(A), p)
    except LinAlgError:
        zeros = raw(matrix_norm(A, p)) * 0
        return variable(zeros + math.inf)


def _singular_values(x: Value, rows: int, columns: int) -> Value:
    return svdvals(movedim(x, (rows, columns), (-2, -1)))


def _kept(x: Value, rows: int, columns: int, keepdim: bool) -> Value:
    if not keepdim:
        return x
    x = unsqueeze(unsqueeze(x, -1), -1)
    ndim = raw(x).ndim
    order = [dim for dim in range(ndim) if dim not in (rows, columns)]
    order += [rows, columns]
    return permute(x, [order.index(dim) for dim in range(ndim)])


def _two_dims(name: str, dim: Any, ndim: int) -> Shape:  # noqa: ANN401 - as users say it
    if len(dim) != 2:
        raise RuntimeError(
            f"{name}: dim must be a 2-tuple. Got {', '.join(map(str, dim))}"
        )
    rows, columns = (wrap_dim(one, ndim) for one in dim)
    if rows == columns:
        raise RuntimeError(f"{name}: dims must be different. Got ({dim[0]}, {dim[1]})")
    return rows, columns


PUBLIC = [
    *names("gv.f", norm=tensor_norm),
    *names("linalg.f(out=)", cond, matrix_norm, norm),
]
