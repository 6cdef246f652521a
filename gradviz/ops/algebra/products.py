"""Products of vectors, matrices and batches of matrices.

Products added to something else (`addmm` and its like) are in
`gradviz.ops.algebra.fused_products`, contractions over any dimensions in
`gradviz.ops.algebra.contractions` and `gradviz.ops.algebra.einsum`.
"""

from math import prod

import numpy as np
from numpy import ndarray  # in one step: each product asks

from gradviz.backends.base import Array
from gradviz.ops.conventions.dimensions import Shape
from gradviz.ops.conventions.dtype_names import cpp_name, scalar_type_name
from gradviz.ops.conventions.refusal import check_tensors
from gradviz.ops.conventions.silence import SILENT, put, quietly, setting
from gradviz.ops.dispatch.differentiable import differentiable
from gradviz.ops.dispatch.public import names
from gradviz.ops.elementwise.arithmetic import mul
from gradviz.ops.shapes.broadcasting import expand
from gradviz.ops.shapes.complex_parts import conj
from gradviz.ops.shapes.copying import contiguous
from gradviz.ops.shapes.permutation import t, transpose
from gradviz.ops.shapes.shape import reshape, unsafe_view
from gradviz.ops.shapes.unit_dimensions import squeeze, squeeze_in_place, unsqueeze
from gradviz.ops.variables.variable import Value, Variable, raw

# --- one node each ------------------------------------------------------------------


@differentiable(
    "DotBackward0",
    x=lambda grad, y: grad * conj(y),
    y=lambda grad, x: grad * conj(x),
)
def _dot(x: Array, y: Array) -> Array:
    _check_dot("dot", x, y)
    return multiplied(x, y)


@differentiable(
    "VdotBackward0",
    x=lambda grad, y: conj(grad) * y,
    y=lambda grad, x: grad * x,
)
def _vdot(x: Array, y: Array) -> Array:
    _check_dot("vdot" if x.dtype.kind == "c" else "dot", x, y)
    return multiplied(np.conjugate(x), y)


@differentiable(
    "MvBackward0",
    x=lambda grad, y: outer_product(grad, conj(y)),
    y=lambda grad, x: _mv(adjoint(x), grad),
)
def _mv(x: Array, y: Array) -> Array:
    if x.ndim != 2 or y.ndim != 1:
        raise RuntimeError(
            f"vector + matrix @ vector expected, got 1, {x.ndim}, {y.ndim}"
        )
    if x.shape[1] != y.shape[0]:
        rows, columns = x.shape
        raise RuntimeError(
            f"size mismatch, got input ({rows}), mat ({rows}x{columns}), "
            f"vec ({y.shape[0]})"
        )
    if x.dtype != y.dtype:
        names = [scalar_type_name(dtype) for dtype in (x.dtype, y.dtype)]
        raise RuntimeError(
            f"addmv input tensors must have the same dtype, but got {names[1]}, "
            f"{names[0]}, and {names[1]}"
        )
    return multiplied(x, y)


@differentiable(
    "MmBackward0",
    silent=True,
    y=lambda grad, x, y_columnwise: gradient_of_right(grad, x, y_columnwise),
    x=lambda grad, y, x_columnwise: gradient_of_left(grad, y, x_columnwise),
)
def _mm(x: Array, y: Array) -> Array:
    if x.ndim != 2 or y.ndim != 2:
        which = "self" if x.ndim != 2 else "mat2"
        raise RuntimeError(f"{which} must be a matrix")
    if x.shape[1] != y.shape[0]:
        raise unequal_lengths(x, y)
    if x.dtype != y.dtype:
        raise RuntimeError(
            f"expected m1 and m2 to have the same dtype, but got: "
            f"{cpp_name(x.dtype)} != {cpp_name(y.dtype)}"
        )
    return multiplied(x, y)


@differentiable(
    "BmmBackward0",
    y=lambda grad, x: _bmm(adjoints(x), grad),
    x=lambda grad, y: _bmm(grad, adjoints(y)),
)
def _bmm(x: Array, y: Array) -> Array:
    check_batches(x, y)
    if x.dtype != y.dtype:
        raise RuntimeError(
            f"expected scalar type {scalar_type_name(x.dtype)} "
            f"but found {scalar_type_name(y.dtype)}"
        )
    return multiplied(x, y)


# --- kernels and their checks -------------------------------------------------------


def multiplied(x: Array, y: Array) -> Array:
    """``x @ y`` of raw arrays; half precision adds up in single precision.

    Raises:
        NotImplementedError: They are booleans.
    """
    char = x.dtype.char
    if char == "?":
        raise NotImplementedError("\"addmm_impl_cpu_\" not implemented for 'Bool'")
    if char != "e" and x.ndim < 3 and y.ndim < 3 and type(x) is type(y) is ndarray:
        # As np.matmul, which takes twice as long for a small matrix.
        return quietly(x.dot, y)
    heard = setting()
    try:
        heard is SILENT or put(SILENT)
        if char == "e":
            wide = np.matmul(x.astype(np.float32), y.astype(np.float32))
            return wide.astype(x.dtype)
        return np.matmul(x, y)
    finally:
        heard is SILENT or put(heard)


def unequal_lengths(x: Array, y: Array) -> RuntimeError:
    """PyTorch's words for two matrices that do not fit together."""
    sizes = " and ".join("x".join(map(str, array.shape)) for array in (x, y))
    return RuntimeError(f"mat1 and mat2 shapes cannot be multiplied ({sizes})")


def check_batches(x: Array, y: Array) -> None:
    """Refuse arguments that are not two matching batches of matrices.

    Raises:
        RuntimeError: Numbers of dimensions or lengths do not fit.
    """
    for name, array in (("batch1", x), ("batch2", y)):
        if array.ndim != 3:
            raise RuntimeError(f"{name} must be a 3D tensor")
    expected = [x.shape[0], x.shape[2]]
    if [*y.shape[:2]] != expected:
        raise RuntimeError(
            f"Expected size for first two dimensions of batch2 tensor to be: "
            f"{expected} but got: {[*y.shape[:2]]}."
        )


def _check_dot(name: str, x: Array, y: Array) -> None:
    if x.ndim != 1 or y.ndim != 1:
        raise RuntimeError(
            f"1D tensors expected, but got {x.ndim}D and {y.ndim}D tensors"
        )
    if x.dtype != y.dtype:
        names = [scalar_type_name(dtype) for dtype in (x.dtype, y.dtype)]
        raise RuntimeError(
            f"{name} : expected both vectors to have same dtype, "
            f"but found {names[0]} and {names[1]}"
        )
    if x.shape != y.shape:
        a, b = x.shape[0], y.shape[0]
        raise RuntimeError(
            f"inconsistent tensor size, expected tensor [{a}] and src [{b}] to have "
            f"the same number of elements, but got {a} and {b} elements respectively"
        )


# --- what users call ----------------------------------------------------------------


def dot(input: Value, tensor: Value) -> Value:
    """The sum of the products of two vectors' elements.

    Raises:
        RuntimeError: They are no vectors, or differ in length or dtype.
    """
    return _dot(input, tensor)


def vdot(input: Value, other: Value) -> Value:
    """`dot`, with the conjugate of `input`."""
    return _vdot(input, other)


def mv(input: Value, vec: Value) -> Value:
    """A matrix times a vector.

    Raises:
        RuntimeError: Numbers of dimensions, lengths or dtypes do not fit.
    """
    return _mv(input, vec)


def mm(input: Value, mat2: Value) -> Value:
    """A matrix times a matrix.

    Raises:
        RuntimeError: Numbers of dimensions, lengths or dtypes do not fit.
    """
    return _mm(input, mat2)


def bmm(input: Value, mat2: Value) -> Value:
    """Matrices times matrices, one pair for each entry of the first dimension.

    Raises:
        RuntimeError: Numbers of dimensions, lengths or dtypes do not fit.
    """
    return _bmm(input, mat2)


def outer(input: Value, vec2: Value) -> Value:
    """All products of an element of `input` and one of `vec2`, both vectors.

    Raises:
        RuntimeError: They are no vectors.
    """
    for name, value in (("self", input), ("vec2", vec2)):
        if raw(value).ndim != 1:
            raise RuntimeError(
                f"outer: Expected 1-D argument {name}, but got {raw(value).ndim}-D"
            )
    return outer_product(input, vec2)


def matmul(input: Value, other: Value) -> Value:
    """The product for any numbers of dimensions, made of the ops above as PyTorch does.

    Raises:
        RuntimeError: An operand has no dimensions, or lengths or dtypes do not fit.

    Source: aten/src/ATen/native/LinearAlgebra.cpp, _matmul_impl.
    """
    try:
        ndims = raw(input).ndim, raw(other).ndim
    except AttributeError:
        check_tensors("matmul", input=input, other=other)
        raise
    if ndims == (2, 2):  # first: it is by far the most frequent
        return _mm(input, other)
    match ndims:
        case (0, _) | (_, 0):
            raise RuntimeError(
                "both arguments to matmul need to be at least 1D, but they are "
                f"{ndims[0]}D and {ndims[1]}D"
            )
        case 1, 1:
            return _dot(input, other)
        case 2, 1:
            return _mv(input, other)
        case 1, 2:
            product = _mm(unsqueeze(input, 0), other)
            return squeeze_in_place(product, (raw(other).shape[1],))
        case 3, 3 if _is_one_matrix(other, beside=input):
            return matmul(input, squeeze(other, 0))
        case 3, 3 if _is_one_matrix(input, beside=other):
            return matmul(squeeze(input, 0), other)
        case _ if _should_fold(input, other):
            return _folded(input, other)
        case _:
            return _batched(input, other)


def gradient_of_left(grad: Value, y: Value, columnwise: bool) -> Value:
    """Return the gradient of `x` in ``x @ y``, by column if `x` is stored so.

    Source: torch/csrc/autograd/FunctionsManual.cpp, mm_mat1_backward.
    """
    if type(grad) is ndarray:  # of every plain backward: without the ops
        return (
            multiplied(conj(y), grad.T).T
            if columnwise
            else multiplied(grad, adjoint(y))
        )
    if not columnwise:
        return _mm(grad, adjoint(y))
    return t(_mm(conj(y), t(grad)))


def gradient_of_right(grad: Value, x: Value, columnwise: bool) -> Value:
    """Return the gradient of `y` in ``x @ y``, by column if `y` is stored so.

    So that of a layer's weight, which is transposed for the product, is in C order.

    Source: torch/csrc/autograd/FunctionsManual.cpp, mm_mat2_backward.
    """
    if type(grad) is ndarray:
        return (
            multiplied(grad.T, conj(x)).T
            if columnwise
            else multiplied(adjoint(x), grad)
        )
    if not columnwise:
        return _mm(adjoint(x), grad)
    return t(_mm(t(grad), conj(x)))


def adjoint(x: Value) -> Value:
    """The conjugate transpose of a matrix."""
    if type(x) is ndarray:
        return x.T if x.dtype.kind != "c" else x.conj().T
    return conj(t(x))


def adjoints(x: Value) -> Value:
    """The conjugate transposes of a batch of matrices."""
    if type(x) is ndarray:
        return (x if x.dtype.kind != "c" else x.conj()).swapaxes(1, 2)
    return conj(transpose(x, 1, 2))


def outer_product(x: Value, y: Value) -> Value:
    """Return `outer` of known vectors."""
    return mul(reshape(x, (raw(x).shape[0], 1)), y)


# --- matmul of batches --------------------------------------------------------------


def _should_fold(x: Value, y: Value) -> bool:
    """Return whether to compute a batch times a matrix as one large product."""
    if min(raw(x).ndim, raw(y).ndim) > 2:
        return False
    batch, other = (x, y) if raw(x).ndim >= raw(y).ndim else (y, x)
    if isinstance(other, Variable) and other.needs_grad:
        return True
    if raw(x).ndim == 2:
        return False
    array = raw(batch) if batch is x else np.swapaxes(raw(batch), -1, -2)
    merged = (prod(array.shape[:-1]), array.shape[-1])
    return array.size == 0 or bool(
        np.may_share_memory(np.reshape(array, merged), array)
    )


def _is_one_matrix(x: Value, beside: Value) -> bool:
    """Return whether a batch is one matrix, whose gradient needs no sum."""
    needs_grad = isinstance(x, Variable) and x.needs_grad
    return needs_grad and raw(x).shape[0] == 1 and raw(beside).shape[0] != 1


def _folded(x: Value, y: Value) -> Value:
    """A batch times one matrix or vector, or these times a batch: all rows at once."""
    is_batch_first = raw(x).ndim >= raw(y).ndim
    batch, other = (
        (x, y)
        if is_batch_first
        else (transpose(y, -1, -2), x if raw(x).ndim == 1 else t(x))
    )
    shape = raw(batch).shape
    rows = reshape(batch, (prod(shape[:-1]), shape[-1]))
    if raw(other).ndim == 1:
        return unsafe_view(_mv(rows, other), shape[:-1])
    columns = raw(other).shape[1]
    product = unsafe_view(_mm(rows, other), (*shape[:-1], columns))
    return product if is_batch_first else contiguous(transpose(product, -1, -2))


def _batched(x: Value, y: Value) -> Value:
    """Return the product of batches with broadcast leading dimensions."""
    a, b = raw(x).shape, raw(y).shape
    rows = a[-2] if len(a) > 1 else 1
    columns = b[-1] if len(b) > 1 else 1
    batch = broadcast_batches(a[:-2], b[:-2])
    count = prod(batch)
    left = _batch_of(x, (*batch, rows, a[-1]), count)
    right = y if len(b) > 1 else unsqueeze(y, 1)
    right = _batch_of(right, (*batch, b[-2] if len(b) > 1 else b[0], columns), count)
    shape = (
        *batch,
        *((rows,) if len(a) > 1 else ()),
        *((columns,) if len(b) > 1 else ()),
    )
    return unsafe_view(_bmm(left, right), shape)


def _batch_of(x: Value, shape: Shape, count: int) -> Value:
    return reshape(expand(x, shape), (count, *shape[-2:]))


def broadcast_batches(a: Shape, b: Shape) -> Shape:
    """The shape that the leading dimensions of two batches broadcast to.

    Raises:
        RuntimeError: They do not.
    """
    try:
        return np.broadcast_shapes(a, b)
    except ValueError as error:
        pairs = zip(reversed(a), reversed(b), strict=False)
        from_end, one, other = next(
            (i, size_a, size_b)
            for i, (size_a, size_b) in enumerate(pairs, 1)
            if size_a != size_b and 1 not in (size_a, size_b)
        )
        raise RuntimeError(
            f"The size of tensor a ({one}) must match the size of tensor b ({other}) "
            f"at non-singleton dimension {max(len(a), len(b)) - from_end}"
        ) from error


PUBLIC = [
    *names("gv.f(out=) x.f", bmm, dot, matmul, mm, mv, outer, vdot, ger=outer),
    *names("linalg.f(out=)", matmul),
]
