"""Losses of classes with a margin: right ones are to score higher than others."""

import numpy as np

from gradviz.backends.arrays.wrapped_array import check_elements
from gradviz.backends.base import Array, beside
from gradviz.engine.graph.protocols import Gradient
from gradviz.ops.algebra.products import broadcast_batches
from gradviz.ops.conventions.dimensions import Shape
from gradviz.ops.conventions.dtype_names import scalar_type_name
from gradviz.ops.conventions.promotion import python_number
from gradviz.ops.dispatch.differentiable import differentiable
from gradviz.ops.dispatch.public import names
from gradviz.ops.elementwise.activation import logsigmoid
from gradviz.ops.elementwise.arithmetic import add, div, mul, neg
from gradviz.ops.layers.loss_reduction import (
    Reduction,
    check_reduction,
    old_names,
    reduced,
    reduced_array,
    share,
)
from gradviz.ops.reductions.reduction import sum as sum_of
from gradviz.ops.shapes.gathering import in_bounds
from gradviz.ops.shapes.unit_dimensions import unsqueeze
from gradviz.ops.variables.variable import Value, raw


def _lacking(x: Array, target: Array, margin: float) -> tuple[Array, Array]:
    """Return the excess scores of other classes, and a mask of the right ones."""
    right = beside(x, np.arange(x.shape[-1])) == target[..., None]
    score = np.sum(np.where(right, x, 0), axis=-1, keepdims=True)
    return np.where(right, 0, np.maximum(x - score + margin, 0)), right


def _multi_margin_gradient(
    grad: Gradient,
    x: Gradient,
    target: Array,
    p: int,
    margin: float,
    weight: Array | None,
    reduction: str,
) -> Gradient:
    target = raw(target)
    lacking, right = _lacking(raw(x), target, margin)
    scale = (lacking > 0) * (share(reduction, max(target.size, 1)) / x.shape[-1])
    if weight is not None:
        scale = scale * raw(weight)[target][..., None]
    scale = scale.astype(raw(x).dtype)
    if p == 2:
        score = sum_of(x * right.astype(raw(x).dtype), -1, keepdim=True)
        scale = (x - score + margin) * (2 * scale)
    others = scale * (grad if not raw(grad).ndim else unsqueeze(grad, -1))
    return others - right.astype(raw(x).dtype) * sum_of(others, -1, keepdim=True)


@differentiable(
    "MultiMarginLossBackward0",
    arrays=("target", "weight"),
    x=_multi_margin_gradient,
)
def _multi_margin(
    x: Array, target: Array, p: int, margin: float, weight: Array, reduction: str
) -> Array:
    lacking, _ = _lacking(x, target, margin)
    losses = np.sum(lacking**p, axis=-1) / x.shape[-1]
    if weight is not None:
        losses = losses * weight[target]
    return reduced_array(losses, reduction)


def _violations(x: Array, target: Array) -> tuple[Array, Array]:
    """``1 - x[j] + x[i]`` for pairs, and how often each counts: right j, wrong i."""
    ends = np.cumsum(target < 0, axis=-1) > 0
    classes = np.where(ends, 0, target)
    times_right: Array = np.zeros_like(x)
    for column in range(target.shape[-1]):
        matches = beside(x, np.arange(x.shape[-1])) == classes[..., column, None]
        times_right += ~ends[..., column, None] & matches
    gaps = 1 - x[..., :, None] + x[..., None, :]
    is_wrong = times_right[..., None, :] == 0
    return gaps, times_right[..., :, None] * (is_wrong & (gaps > 0))


@differentiable(
    "MultilabelMarginLossBackward0",
    arrays=("target",),
    x=lambda grad, x, target, reduction: _multilabel_gradient(
        grad, x, target, reduction
    ),
)
def _multilabel_margin(x: Array, target: Array, reduction: str) -> Array:
    gaps, counts = _violations(x, target)
    losses = np.sum(counts * gaps, axis=(-2, -1)) / x.shape[-1]
    return reduced_array(losses.astype(x.dtype, copy=False), reduction)


def _multilabel_gradient(
    grad: Gradient, x: Gradient, target: Array, reduction: str
) -> Gradient:
    array = raw(x)
    _, counts = _violations(array, raw(target))
    slopes = np.sum(counts, axis=-2) - np.sum(counts, axis=-1)
    size = array.size // array.shape[-1] if reduction == "mean" else 1
    scale = slopes * (share(reduction, size) / array.shape[-1])
    return scale * (unsqueeze(grad, -1) if raw(grad).ndim else grad)


# --- what users call ----------------------------------------------------------------


@old_names("size_average", "reduce", "reduction")
def multi_margin_loss(
    input: Value,
    target: Value,
    p: int = 1,
    margin: float = 1.0,
    weight: Value = None,
    *,
    reduction: Reduction = "mean",
) -> Value:
    """Return the amount by which other classes come too close to the right one.

    Args:
        input: Scores, shape ``(N, C)`` or ``(C,)``.
        target: The right classes, shape ``(N,)`` or ``()``.
        p: Exponent of the shortfall, 1 or 2.
        margin: Required distance of the scores.
        weight: Weight of each class.
        reduction: The mean, the sum, or the loss of each sample.

    Raises:
        ValueError: There is no such reduction or exponent.
        RuntimeError: A target is not a class.
    """
    p = python_number(p)
    check_reduction(reduction)
    if p not in (1, 2):
        raise ValueError("only p == 1 and p == 2 supported")
    if not raw(input).ndim:
        input, target = unsqueeze(input, 0), unsqueeze(target, 0)[0]
    classes = raw(target)
    shape = raw(input).shape
    _check_not_empty(shape)
    if weight is not None:
        _check_weight(raw(weight).shape, shape[-1])
    size = shape[0] if len(shape) > 1 else 1
    if classes.size != size or classes.ndim > 1:
        raise RuntimeError(
            f"multi_margin_loss: target tensor should be 1-D with size equal to the "
            f"number of input samples (batch size). Expected target size [{size}], but "
            f"got {list(classes.shape)}. Input has shape {list(shape)}."
        )
    if classes.dtype != np.int64:
        raise RuntimeError(
            f"expected scalar type Long but found {scalar_type_name(classes.dtype)}"
        )
    if classes.size:
        check_elements("multi_margin_loss: check", _check_classes, classes, shape[-1])
    return _multi_margin(input, target, p, margin, weight, reduction)


def _check_classes(classes: np.ndarray, num_classes: int) -> None:
    if not in_bounds(classes, num_classes):
        raise RuntimeError("target out of range")


@old_names("size_average", "reduce", "reduction")
def multilabel_margin_loss(
    input: Value, target: Value, *, reduction: Reduction = "mean"
) -> Value:
    """Return the amount by which wrong classes come too close to the right ones.

    Args:
        input: Scores, shape ``(N, C)`` or ``(C,)``.
        target: The right classes, then -1; of the same shape.
        reduction: The mean, the sum, or the loss of each sample.

    Raises:
        ValueError: There is no such reduction.
        RuntimeError: The shapes differ.
    """
    check_reduction(reduction)
    if not raw(input).ndim:
        input, target = unsqueeze(input, 0), unsqueeze(target, 0)
    _check_not_empty(raw(input).shape)
    if raw(input).shape != raw(target).shape:
        raise RuntimeError(
            f"inconsistent target size: {[*raw(target).shape]} for input of size: "
            f"{[*raw(input).shape]}"
        )
    return _multilabel_margin(input, target, reduction)


def _check_not_empty(shape: Shape) -> None:
    if len(shape) > 2 or 0 in shape[-1:]:
        raise RuntimeError(
            f"Expected non-empty vector or matrix with optional 0-dim batch size, but "
            f"got: {[*shape]}"
        )


@old_names("size_average", "reduce", "reduction")
def multilabel_soft_margin_loss(
    input: Value,
    target: Value,
    weight: Value = None,
    *,
    reduction: Reduction = "mean",
) -> Value:
    """The cross entropy of each class being right or not, averaged over classes.

    Args:
        input: Scores, shape ``(..., C)``.
        target: Label of each class: 1 if it is right, else 0.
        weight: Weight of each class.
        reduction: The mean, the sum, or the loss of each sample.

    Raises:
        ValueError: There is no such reduction.
    """
    broadcast_batches(raw(target).shape, raw(input).shape)
    losses = neg(
        add(
            mul(target, logsigmoid(input)),
            mul(1 - target, logsigmoid(neg(input))),
        )
    )
    if weight is not None:
        losses = mul(losses, weight)
    losses = div(sum_of(losses, -1), raw(input).shape[-1])
    check_reduction(reduction)
    return reduced(losses, reduction)


def _check_weight(shape: Shape, num_classes: int) -> None:
    if len(shape) != 1:
        raise ValueError("weight must be one-dimensional")
    if shape[0] != num_classes:
        raise RuntimeError(
            f"inconsistent weight size, expected {num_classes} but got {list(shape)}"
        )


PUBLIC = [
    *names("F.f", multi_margin_loss, multilabel_margin_loss),
    *names("F.f", multilabel_soft_margin_loss),
]
