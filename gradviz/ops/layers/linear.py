"""Linear and bilinear layers."""

from math import prod

import numpy as np

from gradviz.backends.base import Array
from gradviz.ops.algebra.einsum import einsum
from gradviz.ops.algebra.fused_products import addmm
from gradviz.ops.algebra.products import matmul, mm, multiplied
from gradviz.ops.conventions.dimensions import Shape
from gradviz.ops.conventions.refusal import check_tensors
from gradviz.ops.dispatch.differentiable import differentiable
from gradviz.ops.dispatch.public import names
from gradviz.ops.elementwise.arithmetic import add
from gradviz.ops.shapes.permutation import t
from gradviz.ops.shapes.shape import reshape, unsafe_view
from gradviz.ops.variables.variable import Value, raw


@differentiable(
    "TrilinearBackward0",
    x=lambda grad, weight, y: einsum("no,oij,nj->ni", grad, weight, y),
    weight=lambda grad, x, y: einsum("no,ni,nj->oij", grad, x, y),
    y=lambda grad, x, weight: einsum("no,oij,ni->nj", grad, weight, x),
)
def _trilinear(x: Array, weight: Array, y: Array) -> Array:
    outputs, inputs = weight.shape[:2]
    rows = np.reshape(np.swapaxes(weight, 0, 1), (inputs, outputs * weight.shape[2]))
    partly = np.reshape(multiplied(x, rows), (x.shape[0], outputs, weight.shape[2]))
    return np.squeeze(multiplied(partly, y[..., None]), -1)


def bilinear(input1: Value, input2: Value, weight: Value, bias: Value = None) -> Value:
    """For each output a sum over all products of features, weighted.

    Args:
        input1: Shape ``(*, features)``.
        input2: Shape ``(*, other features)``.
        weight: Shape ``(outputs, features, other features)``.
        bias: Shape ``(outputs,)``.

    Raises:
        RuntimeError: Lengths do not fit.

    Source: aten/src/ATen/native/Linear.cpp, bilinear.
    """
    shapes = [raw(one).shape for one in (input1, input2, weight)]
    _check_bilinear(*shapes)
    if bias is not None and raw(bias).shape[0] != shapes[2][0]:
        raise RuntimeError(
            f"bilinear(): bias size does not match weight size: got "
            f"{raw(bias).shape[0]} but expected {shapes[2][0]}"
        )
    rows = prod(shapes[0][:-1])
    product = _trilinear(
        reshape(input1, (rows, shapes[0][-1])),
        weight,
        reshape(input2, (rows, shapes[1][-1])),
    )
    result = reshape(product, (*shapes[0][:-1], shapes[2][0]))
    return result if bias is None else add(result, bias)


def _check_bilinear(first: Shape, second: Shape, weight: Shape) -> None:
    if len(first) != len(second):
        raise RuntimeError(
            f"bilinear(): input dimensions do not match: got {len(first)} and "
            f"{len(second)}"
        )
    for dim, (a, b) in enumerate(zip(first[:-1], second[:-1], strict=True)):
        if a != b:
            raise RuntimeError(
                f"bilinear(): input batch dimensions do not match at dim {dim}: got "
                f"{a} and {b}"
            )
    for number, (shape, expected) in enumerate(
        zip((first, second), weight[1:], strict=True), 1
    ):
        if shape[-1] != expected:
            raise RuntimeError(
                f"bilinear(): input{number} size does not match weight size: got "
                f"{shape[-1]} but expected {expected}"
            )


def linear(input: Value, weight: Value, bias: Value = None) -> Value:
    """``input @ weight.T + bias``; the last dimension of `input` holds the features.

    Args:
        input: Shape ``(*, in_features)``.
        weight: Shape ``(out_features, in_features)`` or ``(in_features,)``.
        bias: Shape ``(out_features,)`` or ``()``.

    Raises:
        RuntimeError: Lengths or dtypes do not fit.

    Source: aten/src/ATen/native/Linear.cpp, linear.
    """
    array = raw(input)
    try:
        shape, out_shape = array.shape, raw(weight).shape
    except AttributeError:
        check_tensors("linear", input=input, weight=weight)
        raise
    if not shape:
        raise RuntimeError(
            "both arguments to linear need to be at least 1D, but they are 0D and "
            f"{len(out_shape)}D"
        )
    if len(shape) == 2 and bias is not None and len(out_shape) == 2:
        return addmm(bias, input, t(weight))
    if len(shape) == 1 and bias is None:
        return matmul(input, t(weight))
    if not array.flags.c_contiguous or len(out_shape) != 2:
        product = matmul(input, t(weight))
        return product if bias is None else add(product, bias)
    if len(shape) == 2:
        return mm(input, t(weight))
    result = (*shape[:-1], out_shape[0])
    if bias is None:
        columns = t(weight)  # first, as PyTorch numbers its nodes
        rows = reshape(input, (prod(shape[:-1]), shape[-1]))
        return unsafe_view(mm(rows, columns), result)
    rows = reshape(input, (prod(shape[:-1]), shape[-1]))
    return reshape(addmm(bias, rows, t(weight)), result)


PUBLIC = [*names("gv.f F.f", bilinear, linear)]
