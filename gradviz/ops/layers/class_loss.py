"""Losses of classes: how unlikely the right ones were held to be.

Note [Ignored targets]
~~~~~~~~~~~~~~~~~~~~~~
A target that equals `ignore_index` is not a class. It counts neither in a sum nor in
the number that a mean divides by; where an index is needed, it points to class 0, with
the weight 0.
"""

from math import prod
from typing import Any

import numpy as np

from gradviz.backends.arrays.wrapped_array import in_one_kernel
from gradviz.backends.base import Array
from gradviz.engine.graph.protocols import Gradient
from gradviz.ops.algebra.products import broadcast_batches
from gradviz.ops.conventions.dimensions import Shape
from gradviz.ops.conventions.dtype_names import scalar_type_name
from gradviz.ops.conventions.promotion import python_number
from gradviz.ops.dispatch.differentiable import Op, differentiable, without_gradient
from gradviz.ops.dispatch.public import names
from gradviz.ops.elementwise.activation import sigmoid
from gradviz.ops.elementwise.arithmetic import add, div, mul, neg
from gradviz.ops.elementwise.scalar_arithmetic import over, plus, times
from gradviz.ops.elementwise.selection import clamp, masked_fill
from gradviz.ops.elementwise.transcendental import log, log1p
from gradviz.ops.layers.loss_reduction import (
    Reduction,
    check_reduction,
    old_names,
    reduced,
    reduced_array,
)
from gradviz.ops.reductions.reduction import sum as sum_of
from gradviz.ops.reductions.reduction import total
from gradviz.ops.reductions.softmax import log_softmax
from gradviz.ops.shapes.broadcasting import expand
from gradviz.ops.shapes.copying import contiguous
from gradviz.ops.shapes.shape import reshape, view
from gradviz.ops.variables.variable import Value, raw, variable

# --- the negative log-likelihood ----------------------------------------------------


def _nll(
    x: Array, target: Array, weight: Array, ignore_index: int, reduction: str
) -> Array:
    """Minus the entries of the right classes, along dimension 1 of `x`."""
    return in_one_kernel(
        "nll_loss", _nll_values, x, target, weight, ignore_index, reduction
    )


def _nll_values(
    x: Array, target: Array, weight: Array, ignore_index: int, reduction: str
) -> Array:
    counts, classes = _counting(x, target, ignore_index)
    chosen = -x[_at(classes, x.ndim)]
    weights = _weights_of(x, weight, counts, classes)
    if weights is not None:
        # Not a mere product: an ignored entry may be infinite.
        chosen = np.where(weights == 0, 0, chosen * weights).astype(x.dtype, copy=False)
    if reduction == "none":
        return chosen
    losses = total(chosen, None, keepdim=False, dtype=None)
    return losses / _total_weight(weights, chosen) if reduction == "mean" else losses


def _nll_spread(
    x: Array,
    of: Array,
    shape: Shape,
    target: Array,
    weight: Array,
    ignore_index: int,
    reduction: str,
) -> Array:
    """The gradient of `_nll`, given that of the loss, `x`."""
    del of
    return in_one_kernel(
        "nll_loss_backward",
        _nll_gradient,
        *(x, shape, target, weight, ignore_index, reduction),
    )


def _nll_gradient(
    x: Array,
    shape: Shape,
    target: Array,
    weight: Array,
    ignore_index: int,
    reduction: str,
) -> Array:
    counts, classes = _counting(x, target, ignore_index, shape)
    weights = _weights_of(x, weight, counts, classes)
    grad = -x
    if reduction == "mean":
        grad = grad / _total_weight(weights, target)
    if weights is not None:
        # Not a mere product: without any target that counts, the mean is not a number.
        grad = np.where(weights == 0, 0, grad * weights)
    result: Array = np.zeros_like(x, shape=shape)
    result[_at(classes, len(shape))] = grad
    return result


def _at(classes: Array, ndim: int) -> tuple[Any, ...]:
    """The index of the entries of the right classes, along dimension 1 if there is."""
    match ndim:
        case 1:
            return (classes,)
        case 2 if classes.ndim == 1:
            return (np.arange(len(classes)), classes)
        case _:
            rows, *others = np.ix_(*map(np.arange, classes.shape))
            return (rows, classes, *others)


def _counting(
    x: Array, target: Array, ignore_index: int, shape: Shape | None = None
) -> tuple[Array | None, Array]:
    """Return the targets that count (None for all), and the classes.

    See Note [Ignored targets].

    Raises:
        IndexError: A target is not a class.
    """
    shape = x.shape if shape is None else shape
    num_classes = shape[1] if len(shape) > 1 else shape[0]
    classes = target if target.dtype == np.int64 else target.astype(np.int64)
    if not classes.size:
        return None, classes
    is_ignorable = 0 <= ignore_index < num_classes
    if not is_ignorable and np.min(classes) >= 0 and np.max(classes) < num_classes:
        return None, classes
    counts = classes != ignore_index
    wrong = counts & ((classes < 0) | (classes >= num_classes))
    if bool(np.any(wrong)):
        first = np.reshape(classes, -1)[np.argmax(wrong)]
        raise IndexError(f"Target {int(first)} is out of bounds.")
    return counts, np.where(counts, classes, 0)


def _weights_of(
    x: Array, weight: Array | None, counts: Array | None, classes: Array
) -> Array | None:
    """The weight of each sample, None if all weigh 1."""
    if weight is None:
        return None if counts is None else counts.astype(x.dtype)
    return weight[classes] if counts is None else weight[classes] * counts


def _total_weight(weights: Array | None, target: Array) -> Any:  # noqa: ANN401 - a number or an array
    if weights is None:
        return target.size or np.float64(0)
    return total(weights, None, keepdim=False, dtype=None)


def _nll_op(name: str) -> Op:
    """The negative log-likelihood, under PyTorch's name of its forward."""
    loss = differentiable(
        f"{name}Backward0",
        arrays=("target", "weight"),
        joint=lambda _, grad, x, target, weight, ignore_index, reduction: (
            spread(grad, x, raw(x).shape, target, weight, ignore_index, reduction),
        ),
        x=lambda grad, x_shape, target, weight, ignore_index, reduction: spread(
            grad, None, x_shape, target, weight, ignore_index, reduction
        ),
    )(_nll)
    spread = differentiable(
        f"{name}BackwardBackward0",
        arrays=("target", "weight"),
        x=lambda grad, target, weight, ignore_index, reduction: loss(
            grad, target, weight, ignore_index, reduction
        ),
        of=without_gradient,
    )(_nll_spread)
    return loss


_nll_loss = _nll_op("NllLoss")
_nll_loss2d = _nll_op("NllLoss2D")


# --- two classes --------------------------------------------------------------------


def _over_variance(x: Gradient) -> Gradient:
    """``1 / (x (1 - x))``, of at most 1e12."""
    return 1 / clamp((1 - x) * x, min=1e-12)


@differentiable(
    "BinaryCrossEntropyBackwardBackward0",
    arrays=("weight",),
    g=lambda grad, x, y, weight, reduction: _scaled(
        grad * ((x - y) * _over_variance(x)), weight, reduction, raw(x).size
    ),
    x=lambda grad, g, x, y, weight, reduction: _scaled(
        grad
        * (g * _over_variance(x))
        * (1 - (x - y) * (1 - 2 * x) * _over_variance(x)),
        weight,
        reduction,
        raw(x).size,
    ),
    y=lambda grad, g, x, weight, reduction: _scaled(
        -grad * (g * _over_variance(x)), weight, reduction, raw(x).size
    ),
)
def _bce_gradient(g: Array, x: Array, y: Array, weight: Array, reduction: str) -> Array:
    slope = g * (x - y) / clamp((1 - x) * x, min=1e-12)
    return _scaled(slope, weight, reduction, raw(x).size)


@differentiable(
    "BinaryCrossEntropyBackward0",
    arrays=("weight",),
    x=lambda grad, x, y, weight, reduction: _bce_gradient(
        grad, x, y, weight, reduction
    ),
    y=lambda grad, x, weight, reduction: _scaled(
        grad * (clamp(log1p(-x), min=-100) - clamp(log(x), min=-100)),
        weight,
        reduction,
        raw(x).size,
    ),
)
def _bce(x: Array, y: Array, weight: Array, reduction: str) -> Array:
    if x.dtype != y.dtype:
        raise RuntimeError(
            f"Found dtype {scalar_type_name(y.dtype)} but expected "
            f"{scalar_type_name(x.dtype)}"
        )
    return in_one_kernel("binary_cross_entropy", _bce_values, x, y, weight, reduction)


def _bce_values(x: Array, y: Array, weight: Array, reduction: str) -> Array:
    if not bool(np.all((x >= 0) & (x <= 1))):
        raise RuntimeError("all elements of input should be between 0 and 1")
    # PyTorch's limit: where a right class was held to be impossible.
    likely = np.maximum(np.log(x), -100)
    unlikely = np.maximum(np.log1p(-x), -100)
    losses = (y - 1) * unlikely - y * likely
    return reduced_array(losses if weight is None else losses * weight, reduction)


@differentiable(
    "BinaryCrossEntropyWithLogitsBackward0",
    arrays=("weight", "pos_weight"),
    x=lambda grad, x, y, weight, pos_weight, reduction: _scaled(
        _bce_logits_slope(x, y, pos_weight) * grad, weight, reduction, raw(x).size
    ),
    y=lambda grad, x, weight, pos_weight, reduction: _scaled(
        grad * _bce_target_slope(x, pos_weight), weight, reduction, raw(x).size
    ),
)
def _bce_with_logits(
    x: Array, y: Array, weight: Array, pos_weight: Array, reduction: str
) -> Array:
    if pos_weight is not None:
        broadcast_batches(pos_weight.shape, x.shape)
    # log(1 + exp(-x)), which does not overflow.
    rest = np.log1p(np.exp(-np.abs(x))) + np.maximum(-x, 0)
    factor = 1 if pos_weight is None else 1 + (pos_weight - 1) * y
    losses = (1 - y) * x + factor * rest
    return reduced_array(losses if weight is None else losses * weight, reduction)


def _bce_logits_slope(x: Gradient, y: Gradient, pos_weight: Gradient) -> Gradient:
    if pos_weight is None:
        return sigmoid(x) - y
    positive = pos_weight * y
    return (positive + 1 - y) * sigmoid(x) - positive


def _bce_target_slope(x: Gradient, pos_weight: Gradient) -> Gradient:
    if pos_weight is None:
        return -x
    return -x - (pos_weight - 1) * log(sigmoid(x))


def _scaled(grad: Gradient, weight: Gradient, reduction: str, size: int) -> Gradient:
    grad = grad if weight is None else grad * weight
    return grad / size if reduction == "mean" and size else grad


# --- what users call ----------------------------------------------------------------


@old_names("size_average", "ignore_index", "reduce", "reduction")
def nll_loss(
    input: Value,
    target: Value,
    weight: Value = None,
    *,
    ignore_index: int = -100,
    reduction: Reduction = "mean",
) -> Value:
    """The negative log-likelihood of the right classes.

    Args:
        input: Logarithms of probabilities, shape ``(N, C, ...)`` or ``(C,)``.
        target: The right classes, shape ``(N, ...)`` or ``()``.
        weight: Weight of each class, shape ``(C,)``.
        ignore_index: A target that does not count.
        reduction: The mean (by weight), the sum, or the loss of each sample.

    Raises:
        ValueError: There is no such reduction, or the sizes of the batches differ.
        RuntimeError: Shapes or dtypes do not fit.
        IndexError: A target is not a class.

    Source: aten/src/ATen/native/LossNLL.cpp, nll_loss_nd_symint.
    """
    check_reduction(reduction)
    x, shape = raw(input), raw(target).shape
    if x.ndim < 1:
        raise ValueError(f"Expected 1 or more dimensions (got {x.ndim})")
    _check_batch(x.shape, shape)
    settings = (weight, ignore_index, reduction)
    if x.ndim in (1, 2):
        _check_targets(x, raw(target), raw(weight))
        return _nll_loss(input, target, *settings)
    if x.ndim == 4:
        _check_targets_2d(x, raw(target), raw(weight))
        return _nll_loss2d(input, target, *settings)
    if shape[1:] != x.shape[2:]:
        raise RuntimeError(
            f"Expected target size {[x.shape[0], *x.shape[2:]]}, got {[*shape]}"
        )
    rows = (1, prod(shape[1:]))
    flat = view(contiguous(input), (*x.shape[:2], *rows))
    targets = reshape(target, (shape[0], *rows))
    _check_targets_2d(raw(flat), raw(targets), raw(weight))
    loss = _nll_loss2d(flat, targets, *settings)
    return reshape(loss, shape) if reduction == "none" else loss


@old_names("size_average", "ignore_index", "reduce", "reduction", "label_smoothing")
def cross_entropy(
    input: Value,
    target: Value,
    weight: Value = None,
    *,
    ignore_index: int = -100,
    reduction: Reduction = "mean",
    label_smoothing: float = 0.0,
) -> Value:
    """`nll_loss` of the logarithms of ``softmax(input)``.

    Args:
        input: Scores, shape ``(N, C, ...)`` or ``(C,)``.
        target: The right classes as for `nll_loss`; or, of the shape of `input`, the
            probability of each class.
        weight: Weight of each class, shape ``(C,)``.
        ignore_index: A target that does not count.
        reduction: The mean (by weight), the sum, or the loss of each sample.
        label_smoothing: Part of the probability that is spread over all classes.

    Raises:
        ValueError: There is no such reduction, or the sizes of the batches differ.
        RuntimeError: Shapes, dtypes or settings do not fit.
        IndexError: A target is not a class.

    Source: aten/src/ATen/native/LossNLL.cpp, cross_entropy_loss_symint.
    """
    label_smoothing = python_number(label_smoothing)
    check_reduction(reduction)
    if not 0 <= label_smoothing <= 1:
        raise RuntimeError(
            f"label_smoothing must be between 0.0 and 1.0. Got: {label_smoothing:g}"
        )
    if raw(input).shape == raw(target).shape:
        _check_probabilities(raw(input), raw(target), raw(weight), ignore_index)
        return _soft_cross_entropy(input, target, weight, reduction, label_smoothing)
    logs = log_softmax(input, 0 if raw(input).ndim == 1 else 1)
    loss = nll_loss(
        logs, target, weight, ignore_index=ignore_index, reduction=reduction
    )
    if label_smoothing == 0:
        return loss
    ignored = raw(target) == ignore_index
    rest = _evenly_spread(logs, raw(target), weight, ignored, reduction)
    num_classes = raw(logs).shape[0 if raw(logs).ndim == 1 else 1]
    rest = times(rest, label_smoothing / num_classes)  # first, as PyTorch does it
    return add(times(loss, 1 - label_smoothing), rest)


@old_names("size_average", "reduce", "reduction")
def binary_cross_entropy(
    input: Value,
    target: Value,
    weight: Value = None,
    *,
    reduction: Reduction = "mean",
) -> Value:
    """Return the binary cross entropy.

    Args:
        input: The probability of the second class.
        target: The probability that it is right, from 0 to 1; of the same shape.
        weight: Weight of each loss; broadcasts.
        reduction: The mean, the sum, or the loss of each sample.

    Raises:
        ValueError: There is no such reduction, or the shapes differ.
        RuntimeError: `input` has an element outside of [0, 1], or the dtypes differ.
    """
    check_reduction(reduction)
    shapes = raw(input).shape, raw(target).shape
    if shapes[0] != shapes[1]:
        raise ValueError(
            f"Using a target size (torch.Size({[*shapes[1]]})) that is different to "
            f"the input size (torch.Size({[*shapes[0]]})) is deprecated. Please ensure "
            f"they have the same size."
        )
    if weight is not None:
        weight = expand(weight, _loss_shape(raw(weight).shape, shapes[0]))
    return _bce(input, target, weight, reduction)


@old_names("size_average", "reduce", "reduction", "pos_weight")
def binary_cross_entropy_with_logits(
    input: Value,
    target: Value,
    weight: Value = None,
    *,
    reduction: Reduction = "mean",
    pos_weight: Value = None,
) -> Value:
    """`binary_cross_entropy` of ``sigmoid(input)``, without its loss of precision.

    Args:
        input: Scores of the second class.
        target: Probability that it is the right one, 0 or 1 or in between; of the same
            shape.
        weight: Weight of each loss; broadcasts.
        reduction: The mean, the sum, or the loss of each sample.
        pos_weight: Factor by which the second class counts more; broadcasts.

    Raises:
        ValueError: There is no such reduction, or the shapes differ.
    """
    check_reduction(reduction)
    shapes = raw(input).shape, raw(target).shape
    if shapes[0] != shapes[1]:
        raise ValueError(
            f"Target size (torch.Size({[*shapes[1]]})) must be the same as input size "
            f"(torch.Size({[*shapes[0]]}))"
        )
    return _bce_with_logits(input, target, weight, pos_weight, reduction)


def _soft_cross_entropy(
    x: Value, target: Value, weight: Value, reduction: str, label_smoothing: float
) -> Value:
    """The cross entropy with probabilities as targets."""
    shape = raw(x).shape
    dim = 0 if len(shape) == 1 else 1
    logs = log_softmax(x, dim)
    if label_smoothing > 0:
        target = plus(times(target, 1 - label_smoothing), label_smoothing / shape[dim])
    losses = mul(logs, target)
    if weight is not None:
        losses = mul(losses, _by_class(weight, shape))
    if reduction == "none":
        return neg(sum_of(losses, dim))
    loss = neg(sum_of(losses))
    return loss if reduction == "sum" else over(loss, prod(shape) / shape[dim])


def _evenly_spread(
    logs: Value, target: Array, weight: Value, ignored: Array, reduction: str
) -> Value:
    """Return the loss if all classes were equally right, for label smoothing."""
    shape = raw(logs).shape
    weighted = logs if weight is None else mul(logs, _by_class(weight, shape))
    losses = neg(sum_of(weighted, 0 if len(shape) == 1 else 1))
    losses = masked_fill(losses, variable(ignored), 0.0)
    if reduction != "mean":
        return reduced(losses, reduction)
    weights = 1 if weight is None else raw(weight)[np.where(ignored, 0, target)]
    return div(sum_of(losses), variable(np.sum(weights * ~ignored)))


def _by_class(weight: Value, shape: Shape) -> Value:
    """Weights that broadcast along all but the dimension of the classes."""
    return (
        weight if len(shape) < 3 else reshape(weight, (1, -1, *(1,) * (len(shape) - 2)))
    )


# --- what is refused ----------------------------------------------------------------


def _check_batch(shape: Shape, target: Shape) -> None:
    if len(shape) == 1 and len(target) == 1 and target[0] != 1:
        raise ValueError(
            f"For 1D input, 1D target must have size 1, but got target size: "
            f"{target[0]}"
        )
    if len(shape) > 1 and (target[:1] or (1,))[0] != shape[0]:
        raise ValueError(
            f"Expected input batch_size ({shape[0]}) to match target batch_size "
            f"({(target[:1] or (1,))[0]})."
        )


def _check_targets(x: Array, target: Array, weight: Array | None) -> None:
    if target.ndim > 1:
        raise RuntimeError(
            "0D or 1D target tensor expected, multi-target not supported"
        )
    _check_dtypes(x, target, "nll_loss_out_frame")
    _check_weight(x.shape[-1], weight, x.ndim)


def _check_targets_2d(x: Array, target: Array, weight: Array | None) -> None:
    if target.ndim != 3:
        raise RuntimeError(
            f"only batches of spatial targets supported (3D tensors) but got targets "
            f"of dimension: {target.ndim}"
        )
    if (x.shape[0], *x.shape[2:]) != target.shape:
        raise RuntimeError(
            f"size mismatch (got input: {[*x.shape]} , target: {[*target.shape]}"
        )
    _check_dtypes(x, target, "nll_loss2d_forward_out_frame")
    _check_weight(x.shape[1], weight, x.ndim)


def _check_dtypes(x: Array, target: Array, kernel: str) -> None:
    if x.dtype.kind != "f":
        raise NotImplementedError(
            f"\"{kernel}\" not implemented for '{scalar_type_name(x.dtype)}'"
        )
    if target.dtype not in (np.int64, np.uint8):
        raise RuntimeError(
            f"expected target dtype to be Long or Byte, but got "
            f"{scalar_type_name(target.dtype)}"
        )


def _check_weight(num_classes: int, weight: Array | None, ndim: int) -> None:
    if weight is not None and weight.shape != (num_classes,) and ndim:
        raise RuntimeError(
            f"weight tensor should be defined either for all {num_classes} classes or "
            f"no classes but got weight tensor of shape: {[*weight.shape]}"
        )


def _check_probabilities(
    x: Array, target: Array, weight: Array | None, ignore_index: int
) -> None:
    if target.dtype.kind != "f":
        raise RuntimeError(
            f"Expected floating point type for target with class probabilities, got "
            f"{scalar_type_name(target.dtype)}"
        )
    if ignore_index >= 0:
        raise RuntimeError("ignore_index is not supported for floating point target")
    num_classes = x.shape[0 if x.ndim == 1 else 1]
    if weight is not None and weight.shape != (num_classes,):
        raise RuntimeError(
            f"cross_entropy: weight tensor should be defined either for all "
            f"{num_classes} classes or no classes but got weight tensor of shape: "
            f"{[*weight.shape]}"
        )


def _loss_shape(weight: Shape, shape: Shape) -> Shape:
    """The shape that weights are expanded to."""
    known = (1,) * (len(shape) - len(weight)) + weight
    for dim, (size, wanted) in enumerate(zip(known, shape, strict=False), -len(shape)):
        if size not in (1, wanted):
            raise RuntimeError(
                f"Attempting to broadcast a dimension of length {size} at {dim}! "
                f"Mismatching argument at index 1 had torch.Size({[*weight]}); but "
                f"expected shape should be broadcastable to {[*shape]}"
            )
    return shape


PUBLIC = [
    *names("gv.f F.f", cross_entropy, nll_loss),
    *names("F.f", binary_cross_entropy, binary_cross_entropy_with_logits),
]
