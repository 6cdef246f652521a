"""Products of matrices added to something: ``beta * input + alpha * (x @ y)``.

`input` broadcasts to the product. Where beta is 0 it is ignored, NaN and all.
"""

import numpy as np

from gradviz.backends.base import Array
from gradviz.engine.graph.protocols import Gradient
from gradviz.ops.algebra.products import (
    adjoint,
    adjoints,
    bmm,
    check_batches,
    gradient_of_left,
    gradient_of_right,
    multiplied,
    mv,
    outer_product,
    unequal_lengths,
)
from gradviz.ops.conventions.dimensions import Shape
from gradviz.ops.conventions.dtype_names import scalar_type_name
from gradviz.ops.conventions.promotion import Scalar
from gradviz.ops.dispatch.differentiable import differentiable
from gradviz.ops.dispatch.public import names
from gradviz.ops.shapes.broadcasting import broadcast_to
from gradviz.ops.shapes.complex_parts import conj
from gradviz.ops.shapes.permutation import t
from gradviz.ops.shapes.unit_dimensions import unsqueeze
from gradviz.ops.variables.variable import Value


def _scaled(grad: Gradient, factor: Scalar) -> Gradient:
    """A gradient times the conjugate of a factor of the forward."""
    return grad if factor == 1 else grad * factor.conjugate()


@differentiable(
    "AddmmBackward0",
    x=lambda grad, y, alpha, x_columnwise: _scaled(
        gradient_of_left(grad, y, x_columnwise), alpha
    ),
    y=lambda grad, x, alpha, y_columnwise: _scaled(
        gradient_of_right(grad, x, y_columnwise), alpha
    ),
    input=lambda grad, beta: _scaled(grad, beta),
)
def _addmm(input: Array, x: Array, y: Array, beta: Scalar, alpha: Scalar) -> Array:
    for name, array in (("mat1", x), ("mat2", y)):
        if array.ndim != 2:
            raise RuntimeError(f"{name} must be a matrix, got {array.ndim}-D tensor")
    if x.shape[1] != y.shape[0]:
        raise unequal_lengths(x, y)
    _check_shape(input, (x.shape[0], y.shape[1]))
    if input.dtype != y.dtype:
        names = [scalar_type_name(dtype) for dtype in (input.dtype, y.dtype)]
        raise RuntimeError(
            f"self and mat2 must have the same dtype, but got {names[0]} and {names[1]}"
        )
    if x.dtype != y.dtype:
        raise RuntimeError(
            f"mat1 and mat2 must have the same dtype, but got "
            f"{scalar_type_name(x.dtype)} and {scalar_type_name(y.dtype)}"
        )
    return _added(input, multiplied(x, y), beta, alpha)


@differentiable(
    "AddmvBackward0",
    x=lambda grad, y, alpha: _scaled(outer_product(grad, conj(y)), alpha),
    input=lambda grad, beta: _scaled(grad, beta),
    y=lambda grad, x, alpha: _scaled(mv(adjoint(x), grad), alpha),
)
def _addmv(input: Array, x: Array, y: Array, beta: Scalar, alpha: Scalar) -> Array:
    if x.ndim != 2 or y.ndim != 1 or input.ndim > 1:
        raise RuntimeError(
            f"vector + matrix @ vector expected, got {input.ndim}, {x.ndim}, {y.ndim}"
        )
    if x.shape[1] != y.shape[0] or input.size not in (1, x.shape[0]):
        raise RuntimeError(
            f"size mismatch, got input ({(*input.shape, 1)[0]}), "
            f"mat ({x.shape[0]}x{x.shape[1]}), vec ({y.shape[0]})"
        )
    if not input.dtype == x.dtype == y.dtype:
        names = [scalar_type_name(one.dtype) for one in (input, x, y)]
        raise RuntimeError(
            f"addmv input tensors must have the same dtype, but got {names[0]}, "
            f"{names[1]}, and {names[2]}"
        )
    return _added(input, multiplied(x, y), beta, alpha)


@differentiable(
    "AddrBackward0",
    input=lambda grad, beta: _scaled(grad, beta),
    x=lambda grad, y, alpha: _scaled(mv(grad, conj(y)), alpha),
    y=lambda grad, x, alpha: _scaled(mv(t(grad), conj(x)), alpha),
)
def _addr(input: Array, x: Array, y: Array, beta: Scalar, alpha: Scalar) -> Array:
    for name, array in (("vec1", x), ("vec2", y)):
        if array.ndim != 1:
            raise RuntimeError(
                f"addr: Expected 1-D argument {name}, but got {array.ndim}-D"
            )
    _check_shape(input, (x.shape[0], y.shape[0]))
    return _added(input, np.multiply.outer(x, y), beta, alpha)


@differentiable(
    "AddbmmBackward0",
    x=lambda grad, y, alpha: _scaled(bmm(_repeated(grad, y), adjoints(y)), alpha),
    y=lambda grad, x, alpha: _scaled(bmm(adjoints(x), _repeated(grad, x)), alpha),
    input=lambda grad, beta: _scaled(grad, beta),
)
def _addbmm(input: Array, x: Array, y: Array, beta: Scalar, alpha: Scalar) -> Array:
    _check_shape(input, (x.shape[-2], y.shape[-1]))
    check_batches(x, y)
    return _added(input, np.sum(multiplied(x, y), axis=0), beta, alpha)


@differentiable(
    "BaddbmmBackward0",
    x=lambda grad, y, alpha: _scaled(bmm(grad, adjoints(y)), alpha),
    y=lambda grad, x, alpha: _scaled(bmm(adjoints(x), grad), alpha),
    input=lambda grad, beta: _scaled(grad, beta),
)
def _baddbmm(input: Array, x: Array, y: Array, beta: Scalar, alpha: Scalar) -> Array:
    _check_shape(input, (x.shape[0], x.shape[-2], y.shape[-1]))
    check_batches(x, y)
    return _added(input, multiplied(x, y), beta, alpha)


def _repeated(grad: Gradient, batch: Gradient) -> Gradient:
    """The gradient of a sum of matrices, for each of them."""
    return broadcast_to(unsqueeze(grad, 0), (batch.shape[0], *grad.shape))


def _added(input: Array, product: Array, beta: Scalar, alpha: Scalar) -> Array:
    """The sum, in the memory of the product."""
    if product.dtype.kind in "iub":  # as PyTorch converts factors
        beta, alpha = product.dtype.type(beta), product.dtype.type(alpha)
    if alpha != 1:
        product = product * alpha
    if beta == 0:
        return product
    scaled = input if beta == 1 else input * beta
    if product.shape and product.dtype == input.dtype:
        product += scaled
        return product
    return product + scaled


def _check_shape(input: Array, shape: Shape) -> None:
    known = input.shape
    if len(known) > len(shape):
        kind = scalar_type_name(input.dtype)
        raise RuntimeError(
            f"expand(torch.{kind}Tensor{{{[*known]}}}, size={[*shape]}): the number of "
            f"sizes provided ({len(shape)}) must be greater or equal to the number of "
            f"dimensions in the tensor ({len(known)})"
        )
    for from_end, size in enumerate(reversed(known), 1):
        wanted = shape[-from_end]
        if size not in (1, wanted):
            raise RuntimeError(
                f"The expanded size of the tensor ({wanted}) must match the existing "
                f"size ({size}) at non-singleton dimension {len(shape) - from_end}.  "
                f"Target sizes: {[*shape]}.  Tensor sizes: {[*known]}"
            )


# --- what users call ----------------------------------------------------------------


def addmm(
    input: Value, mat1: Value, mat2: Value, *, beta: Scalar = 1, alpha: Scalar = 1
) -> Value:
    """``beta * input + alpha * (mat1 @ mat2)``, of matrices.

    Raises:
        RuntimeError: Numbers of dimensions, lengths or dtypes do not fit.
    """
    return _addmm(input, mat1, mat2, beta, alpha)


def addmv(
    input: Value, mat: Value, vec: Value, *, beta: Scalar = 1, alpha: Scalar = 1
) -> Value:
    """``beta * input + alpha * (mat @ vec)``, of a matrix and a vector.

    Raises:
        RuntimeError: Numbers of dimensions, lengths or dtypes do not fit.
    """
    return _addmv(input, mat, vec, beta, alpha)


def addr(
    input: Value, vec1: Value, vec2: Value, *, beta: Scalar = 1, alpha: Scalar = 1
) -> Value:
    """``beta * input + alpha * outer(vec1, vec2)``.

    Raises:
        RuntimeError: Numbers of dimensions or lengths do not fit.
    """
    return _addr(input, vec1, vec2, beta, alpha)


def addbmm(
    input: Value, batch1: Value, batch2: Value, *, beta: Scalar = 1, alpha: Scalar = 1
) -> Value:
    """``beta * input + alpha * (batch1 @ batch2).sum(0)``, of batches of matrices.

    Raises:
        RuntimeError: Numbers of dimensions, lengths or dtypes do not fit.
    """
    return _addbmm(input, batch1, batch2, beta, alpha)


def baddbmm(
    input: Value, batch1: Value, batch2: Value, *, beta: Scalar = 1, alpha: Scalar = 1
) -> Value:
    """``beta * input + alpha * (batch1 @ batch2)``, of batches of matrices.

    Raises:
        RuntimeError: Numbers of dimensions, lengths or dtypes do not fit.
    """
    return _baddbmm(input, batch1, batch2, beta, alpha)


PUBLIC = [
    *names("gv.f(out=) gv.f_ x.f x.f_", addmv),
    *names("gv.f(out=) x.f x.f_", addbmm, addmm, addr, baddbmm),
]
