"""Losses of numbers: how far predictions are from targets.

Losses of classes are in `gradviz.ops.layers.class_loss`, those with a margin in
`gradviz.ops.layers.margin_loss`.
"""

import math
import warnings

import numpy as np

from gradviz.backends.base import Array
from gradviz.engine.graph.protocols import Gradient
from gradviz.ops.algebra.products import broadcast_batches
from gradviz.ops.conventions.dtype_names import scalar_type_name
from gradviz.ops.conventions.promotion import Operand, promote
from gradviz.ops.dispatch.differentiable import Op, differentiable
from gradviz.ops.dispatch.public import names
from gradviz.ops.elementwise.activation import sigmoid
from gradviz.ops.elementwise.arithmetic import add, div, mul, sub
from gradviz.ops.elementwise.powers import pow
from gradviz.ops.elementwise.rounding import abs as absolute
from gradviz.ops.elementwise.scalar_arithmetic import floored, plus, times
from gradviz.ops.elementwise.selection import clamp, masked_fill
from gradviz.ops.elementwise.special_functions import xlogy
from gradviz.ops.elementwise.transcendental import exp, log
from gradviz.ops.layers.loss_reduction import (
    Reduction,
    check_reduction,
    old_names,
    reduced,
    reduced_array,
    share,
)
from gradviz.ops.reductions.reduction import sum as sum_of
from gradviz.ops.shapes.broadcasting import broadcast_tensors
from gradviz.ops.variables.variable import Value, raw

# --- one node each ------------------------------------------------------------------


def _mse_slope(grad: Gradient, x: Gradient, y: Gradient, reduction: str) -> Gradient:
    difference = x - y
    return difference * (grad * (2 * share(reduction, raw(difference).size)))


@differentiable(
    "MseLossBackwardBackward0",
    g=lambda grad, x, y, reduction: (
        sum_of(grad * (x - y) * (2 * share(reduction, raw(x).size)))
        if reduction != "none"
        else grad * (x - y) * 2
    ),
    x=lambda grad, g, reduction: grad * (g * (2 * share(reduction, raw(grad).size))),
    y=lambda grad, g, reduction: grad * (g * (-2 * share(reduction, raw(grad).size))),
)
def _mse_gradient(g: Array, x: Array, y: Array, reduction: str) -> Array:
    return _mse_slope(g, x, y, reduction)


@differentiable(
    "MseLossBackward0",
    x=lambda grad, x, y, reduction: _mse_gradient(grad, x, y, reduction),
    y=lambda grad, x, y, reduction: _mse_gradient(grad, y, x, reduction),
)
def _mse_loss(x: Array, y: Array, reduction: str) -> Array:
    difference = np.subtract(*promote(x, y))
    if difference.dtype.kind != "f":
        raise NotImplementedError(
            f"\"mse_cpu\" not implemented for '{scalar_type_name(difference.dtype)}'"
        )
    return reduced_array(np.square(difference), reduction)


def _gradient_up_to(name: str) -> Op:
    """The gradient of a loss that is quadratic up to a threshold, then linear.

    Args:
        name: Of its node, which is PyTorch's for the loss.
    """

    def gradient(
        g: Array, x: Array, y: Array, reduction: str, limit: float, slope: float
    ) -> Array:
        part = share(reduction, x.size) * slope
        return np.clip(x - y, -limit, limit) * (g * part)

    def bend(
        grad: Gradient,
        g: Gradient,
        x: Gradient,
        y: Gradient,
        reduction: str,
        limit: float,
        slope: float,
    ) -> Gradient:
        near = np.abs(raw(x) - raw(y)) < limit
        return grad * (g * (share(reduction, near.size) * slope)) * near

    return differentiable(
        name,
        g=lambda grad, x, y, reduction, limit, slope: (
            grad * clamp(x - y, -limit, limit) * (share(reduction, raw(x).size) * slope)
        ),
        x=bend,
        y=lambda grad, g, x, y, reduction, limit, slope: (
            -bend(grad, g, x, y, reduction, limit, slope)
        ),
    )(gradient)


_huber_gradient = _gradient_up_to("HuberLossBackwardBackward0")
_smooth_l1_gradient = _gradient_up_to("SmoothL1LossBackwardBackward0")


@differentiable(
    "HuberLossBackward0",
    x=lambda grad, x, y, reduction, delta: _huber_gradient(
        grad, x, y, reduction, delta, 1.0
    ),
    y=lambda grad, x, y, reduction, delta: _huber_gradient(
        grad, y, x, reduction, delta, 1.0
    ),
)
def _huber_loss(x: Array, y: Array, reduction: str, delta: float) -> Array:
    distance = np.abs(np.subtract(*promote(x, y)))
    near = np.minimum(distance, delta)
    return reduced_array(near * (distance - 0.5 * near), reduction)


@differentiable(
    "SmoothL1LossBackward0",
    x=lambda grad, x, y, reduction, beta: _smooth_l1_gradient(
        grad, x, y, reduction, beta, 1 / beta
    ),
    y=lambda grad, x, y, reduction, beta: _smooth_l1_gradient(
        grad, y, x, reduction, beta, 1 / beta
    ),
)
def _smooth_l1_loss(x: Array, y: Array, reduction: str, beta: float) -> Array:
    distance = np.abs(np.subtract(*promote(x, y)))
    near = np.minimum(distance, beta)
    return reduced_array(near * (distance - 0.5 * near) / beta, reduction)


@differentiable(
    "SoftMarginLossBackwardBackward0",
    arrays=("y",),
    g=lambda grad, x, y, reduction: (
        grad * (sigmoid(x * -y) * (-y * share(reduction, raw(x).size)))
    ),
    x=lambda grad, g, x, y, reduction: (
        grad
        * (g * (y * y * share(reduction, raw(x).size)))
        * (sigmoid(x * y) * sigmoid(x * -y))
    ),
)
def _soft_margin_gradient(g: Array, x: Array, y: Array, reduction: str) -> Array:
    return -y * sigmoid(x * -y) * (g * share(reduction, x.size))


@differentiable(
    "SoftMarginLossBackward0",
    arrays=("y",),
    x=lambda grad, x, y, reduction: _soft_margin_gradient(grad, x, y, reduction),
)
def _soft_margin_loss(x: Array, y: Array, reduction: str) -> Array:
    broadcast_batches(x.shape, y.shape)
    return reduced_array(np.logaddexp(0, np.multiply(*promote(x, -y))), reduction)


# --- what users call ----------------------------------------------------------------


@old_names("size_average", "reduce", "reduction", "weight")
def mse_loss(
    input: Value, target: Value, *, reduction: Reduction = "mean", weight: Value = None
) -> Value:
    """The square of the difference.

    Args:
        input: Predictions.
        target: Of the same shape.
        reduction: Result made of the losses: their mean, their sum, or nothing.
        weight: Weight of each loss.

    Raises:
        ValueError: There is no such reduction, or the shape of the weights differs.
        RuntimeError: The shapes do not broadcast.
    """
    input, target = _alike(input, target)
    check_reduction(reduction)
    if weight is None:
        return _mse_loss(input, target, reduction)
    return _weighted(_mse_loss(input, target, "none"), input, weight, reduction)


@old_names("size_average", "reduce", "reduction", "weight")
def l1_loss(
    input: Value, target: Value, *, reduction: Reduction = "mean", weight: Value = None
) -> Value:
    """The absolute difference; arguments and errors as those of `mse_loss`."""
    input, target = _alike(input, target)
    check_reduction(reduction)
    losses = absolute(sub(input, target))
    if weight is None:
        return reduced(losses, reduction)
    return _weighted(losses, input, weight, reduction)


def huber_loss(
    input: Value,
    target: Value,
    reduction: Reduction = "mean",
    delta: float = 1.0,
    weight: Value = None,
) -> Value:
    """Half the square of a difference up to `delta`, beyond it linear.

    Arguments and errors are those of `mse_loss`.

    Raises:
        RuntimeError: `delta` is not positive.
    """
    input, target = _alike(input, target)
    check_reduction(reduction)
    if delta <= 0:
        raise RuntimeError("huber_loss does not support non-positive values for delta.")
    if weight is None:
        return _huber_loss(input, target, reduction, delta)
    losses = _huber_loss(input, target, "none", delta)
    return _weighted(losses, input, weight, reduction)


@old_names("size_average", "reduce", "reduction", "beta")
def smooth_l1_loss(
    input: Value, target: Value, *, reduction: Reduction = "mean", beta: float = 1.0
) -> Value:
    """`huber_loss` divided by its threshold `beta`; the absolute difference for 0.

    Raises:
        RuntimeError: `beta` is negative.
    """
    input, target = _alike(input, target)
    check_reduction(reduction)
    if beta < 0:
        raise RuntimeError("smooth_l1_loss does not support negative values for beta.")
    if beta == 0:
        return reduced(absolute(sub(input, target)), reduction)
    return _smooth_l1_loss(input, target, reduction, beta)


@old_names("size_average", "reduce", "reduction")
def soft_margin_loss(
    input: Value, target: Value, *, reduction: Reduction = "mean"
) -> Value:
    """``log(1 + exp(-target * input))``, for targets of 1 and -1."""
    check_reduction(reduction)
    return _soft_margin_loss(input, target, reduction)


@old_names("size_average", "reduce", "reduction", "log_target")
def kl_div(
    input: Value,
    target: Value,
    *,
    reduction: str = "mean",
    log_target: bool = False,
) -> Value:
    """Return the Kullback-Leibler divergence of two distributions.

    Args:
        input: Logarithms of probabilities.
        target: Probabilities, or their logarithms.
        reduction: As in `mse_loss`; "batchmean", the sum divided by the size of the
            batch, is the divergence proper.
        log_target: True if `target` holds logarithms.

    Raises:
        ValueError: There is no such reduction.
    """
    if reduction == "mean":
        warnings.warn(
            "reduction: 'mean' divides the total loss by both the batch size and the "
            "support size.'batchmean' divides only by the batch size, and aligns with "
            "the KL div math definition.'mean' will be changed to behave the same as "
            "'batchmean' in the next major release.",
            UserWarning,
            stacklevel=2,
        )
    if reduction != "batchmean":
        check_reduction(reduction)
    # PyTorch computes the right side of each operator first: so do we, here and below.
    if log_target:
        difference = sub(target, input)
        losses = mul(exp(target), difference)
    else:
        product = mul(target, input)
        losses = sub(xlogy(target, target), product)
    if reduction == "batchmean":
        total = sum_of(losses)
        shape = raw(input).shape
        return div(total, shape[0]) if shape else total
    return reduced(losses, reduction)


@old_names("size_average", "eps", "reduce", "reduction")
def poisson_nll_loss(
    input: Value,
    target: Value,
    log_input: bool = True,
    full: bool = False,
    *,
    eps: float = 1e-8,
    reduction: Reduction = "mean",
) -> Value:
    """The negative log-likelihood of counts that are Poisson-distributed.

    Args:
        input: The expected counts, or their logarithms.
        target: The counts.
        log_input: True if `input` holds logarithms.
        full: Add Stirling's approximation of what does not depend on `input`.
        eps: Keeps the logarithm of 0 finite.
        reduction: As of `mse_loss`.

    Raises:
        ValueError: There is no such reduction.
    """
    check_reduction(reduction)
    if log_input:
        product = mul(target, input)
        losses = sub(exp(input), product)
    else:
        losses = sub(input, mul(target, log(plus(input, eps))))
    if full:
        rest = times(log(times(target, 2 * math.pi)), 0.5)
        stirling = add(sub(mul(target, log(target)), target), rest)
        losses = add(losses, masked_fill(stirling, target <= 1, 0))
    return reduced(losses, reduction)


def gaussian_nll_loss(
    input: Value,
    target: Value,
    var: Operand,
    full: bool = False,
    eps: float = 1e-6,
    reduction: Reduction = "mean",
) -> Value:
    """The negative log-likelihood of numbers that are normally distributed.

    Args:
        input: The expected numbers.
        target: The numbers.
        var: Their variance: of the shape of `input`, without the last dimension, with
            a length of 1 there, or one number.
        full: Add the constant term.
        eps: Lower bound of a variance.
        reduction: As of `mse_loss`.

    Raises:
        ValueError: A variance is negative, or of the wrong shape; or there is no such
            reduction.
    """
    if isinstance(var, float):
        if var < 0:
            raise ValueError("var has negative entry/entries")
        var = var * (input * 0 + 1)
    elif bool(np.any(raw(var) < 0)):
        raise ValueError("var has negative entry/entries")
    var = _fitting_variance(raw(input).shape, var)
    if reduction not in ("mean", "sum", "none"):
        raise ValueError(f"{reduction} is not valid")
    var = floored(var, eps)
    size = log(var)
    losses = mul(add(size, div(pow(sub(input, target), 2), var)), 0.5)
    if full:
        losses = add(losses, 0.5 * math.log(2 * math.pi))
    return reduced(losses, reduction)


def _fitting_variance(shape: tuple[int, ...], var: Value) -> Value:
    known = raw(var).shape
    if known == shape:
        return var
    if known == shape[:-1]:
        return var[..., None]
    fits = len(known) == len(shape) and all(
        b in (a, 1) for a, b in zip(shape, known, strict=True)
    )
    if not fits:
        raise ValueError("var is of incorrect size")
    return var


def _alike(input: Value, target: Value) -> tuple[Value, Value]:
    """Both, expanded to one shape; a warning if they have not."""
    shapes = raw(input).shape, raw(target).shape
    if shapes[0] == shapes[1]:
        return input, target
    warnings.warn(
        f"Using a target size (torch.Size({[*shapes[1]]})) that is different to the "
        f"input size (torch.Size({[*shapes[0]]})). This will likely lead to incorrect "
        f"results due to broadcasting. Please ensure they have the same size.",
        UserWarning,
        stacklevel=3,
    )
    input, target = broadcast_tensors(input, target)
    return input, target


def _weighted(losses: Value, input: Value, weight: Value, reduction: str) -> Value:
    """Losses times their weights; the mean is that of the weights, too."""
    if raw(weight).shape != raw(input).shape:
        raise ValueError("Weights and input must have the same size.")
    weighted = mul(losses, weight)
    if reduction == "mean":
        return div(sum_of(weighted), sum_of(weight))
    return reduced(weighted, reduction)


PUBLIC = [
    *names("gv.f F.f", mse_loss),
    *names("F.f", gaussian_nll_loss, huber_loss, kl_div, l1_loss, poisson_nll_loss),
    *names("F.f", smooth_l1_loss, soft_margin_loss),
]
