"""Losses: from predictions and targets to one number to minimise."""

from typing import Literal, TypeAlias

import numpy as np

from gradviz.backends.base import Array
from gradviz.engine.protocols import Gradient
from gradviz.ops.activation import log_softmax
from gradviz.ops.differentiable import differentiable
from gradviz.ops.shape import Shape
from gradviz.ops.variable import Value, raw

#: What is made of the losses of a batch.
Reduction: TypeAlias = Literal["mean", "sum", "none"]


@differentiable(
    "NllLossBackward0",
    arrays=("target", "weight"),
    x=lambda grad, x_shape, target, weight, reduction: _nll_loss_backward(
        grad, x_shape, target, weight, reduction
    ),
)
def _nll_loss(x: Array, target: Array, weight: Array, reduction: Reduction) -> Array:
    """The loss, given the weight of each sample; it is 0 for ignored ones."""
    rows, classes = _rows(target, weight)
    weight = np.reshape(weight, -1)
    chosen = np.reshape(x, (-1, x.shape[-1]))[rows, classes]
    losses = np.where(weight == 0, 0, -chosen) * weight
    match reduction:
        case "none":
            return np.reshape(losses, target.shape)
        case "sum":
            return np.sum(losses)
        case "mean":
            return np.sum(losses) / np.sum(weight)


@differentiable(
    "NllLossBackwardBackward0",
    arrays=("target", "weight"),
    x=lambda grad, target, weight, reduction: _nll_loss(
        grad, target, weight, reduction
    ),
)
def _nll_loss_backward(
    x: Array, shape: Shape, target: Array, weight: Array, reduction: Reduction
) -> Array:
    """What each prediction contributes: `x` is the gradient of the loss."""
    rows, classes = _rows(target, weight)
    weight = np.reshape(weight, -1)
    scale = weight / np.sum(weight) if reduction == "mean" else weight
    result = np.zeros_like(x, shape=(len(rows), shape[-1]))
    result[rows, classes] = -np.reshape(x, -1) * scale
    return np.reshape(result, shape)


def _rows(target: Array, weight: Array) -> tuple[np.ndarray, Array]:
    """Where each sample's prediction is; ignored ones point to class 0, weighing 0."""
    flat = np.reshape(target, -1)
    return np.arange(flat.size), np.where(np.reshape(weight, -1) == 0, 0, flat)


def _mse_backward(
    grad: Gradient, x: Gradient, y: Gradient, reduction: Reduction
) -> Gradient:
    difference = x - y
    scale = 2 / raw(difference).size if reduction == "mean" else 2
    return difference * (grad * scale)


def _mse(x: Array, y: Array, reduction: Reduction) -> Array:
    squares = np.square(x - y)
    match reduction:
        case "none":
            return squares
        case "sum":
            return np.sum(squares)
        case "mean":
            return np.mean(squares)


_mse_loss = differentiable(
    "MseLossBackward0",
    x=lambda grad, x, y, reduction: _mse_backward(grad, x, y, reduction),
    y=lambda grad, x, y, reduction: -_mse_backward(grad, x, y, reduction),
)(_mse)


def nll_loss(
    x: Value,
    target: Value,
    weight: Value = None,
    *,
    ignore_index: int = -100,
    reduction: Reduction = "mean",
) -> Value:
    """The negative log-likelihood of the right classes.

    Args:
        x: Logarithms of probabilities, shape ``(N, C)`` or ``(C,)``.
        target: The right classes, shape ``(N,)`` or ``()``.
        weight: The weight of each class, shape ``(C,)``.
        ignore_index: A class that does not count.
        reduction: Mean (weighted), sum, or the loss of each sample.

    Raises:
        ValueError: Shapes or reduction are not as above.
        IndexError: A target is no class.
    """
    classes = raw(target)
    shape = raw(x).shape
    _check(shape, classes, reduction)
    flat = np.reshape(classes, -1)
    counts = flat != ignore_index
    wrong = counts & ((flat < 0) | (flat >= shape[-1]))
    if bool(np.any(wrong)):
        raise IndexError(f"Target {int(flat[np.argmax(wrong)])} is out of bounds.")
    weights = counts.astype(raw(x).dtype)
    if weight is not None:
        weights = weights * raw(weight)[np.where(counts, flat, 0)]
    return _nll_loss(x, classes, weights, reduction)


def cross_entropy(
    x: Value,
    target: Value,
    weight: Value = None,
    *,
    ignore_index: int = -100,
    reduction: Reduction = "mean",
) -> Value:
    """`nll_loss` of the logarithms of ``softmax(x)``; same arguments and errors."""
    return nll_loss(
        log_softmax(x, -1),
        target,
        weight,
        ignore_index=ignore_index,
        reduction=reduction,
    )


def mse_loss(x: Value, target: Value, *, reduction: Reduction = "mean") -> Value:
    """The square of the difference, reduced; the shapes broadcast."""
    return _mse_loss(x, target, reduction)


def _check(shape: Shape, target: Array, reduction: str) -> None:
    if reduction not in ("mean", "sum", "none"):
        raise ValueError(f"{reduction} is not a valid value for reduction")
    if len(shape) not in (1, 2) or target.shape != shape[:-1]:
        raise ValueError(
            f"expected predictions of shape (N, C) or (C,) and targets of shape (N,) "
            f"or (), but got {list(shape)} and {list(target.shape)}"
        )
    if target.dtype.kind not in "iu":
        raise ValueError(
            f"expected the indices of classes as targets, integers, but got "
            f"{target.dtype}"
        )
