"""Normalization: elements less their mean, over their standard deviation.

Note [Normalizing]
~~~~~~~~~~~~~~~~~~
Layer, batch and group normalization differ only in which elements share a mean. Each is
one op with three results: what it returns, the means, and the inverse standard
deviations. The gradient is written with the latter two.

With ``create_graph`` all gradients of a layer or batch normalization are one op, as in
PyTorch, whose gradients are in `gradviz.ops.layers.normalization_gradients`. Elsewhere
the latter two results are variables in such a backward: a gradient that reaches *them*
goes on to the input in the last lines of `_input_gradient`.
"""

from collections.abc import Sequence
from math import gcd, prod
from typing import Final

import numpy as np

from gradviz.backends.base import Array
from gradviz.engine.graph.protocols import Gradient
from gradviz.ops.conventions.dimensions import INTEGERS, Shape
from gradviz.ops.conventions.dtype_names import scalar_type_name
from gradviz.ops.conventions.memory_layout import (
    as_images,
    has_channels_last,
    in_c_order,
)
from gradviz.ops.conventions.promotion import python_number
from gradviz.ops.dispatch.differentiable import differentiable
from gradviz.ops.dispatch.public import names
from gradviz.ops.elementwise.arithmetic import mul
from gradviz.ops.elementwise.powers import pow
from gradviz.ops.elementwise.scalar_arithmetic import plus
from gradviz.ops.elementwise.transcendental import rsqrt
from gradviz.ops.layers.normalization_backward import (
    batch_gradients,
    group_gradients,
    layer_gradients,
)
from gradviz.ops.layers.normalization_gradients import (
    Normal,
    batch_norm_gradients,
    layer_norm_gradients,
)
from gradviz.ops.reductions.reduction import mean as mean_of
from gradviz.ops.reductions.reduction import sum as sum_of
from gradviz.ops.reductions.row_sums import summed, summed_products
from gradviz.ops.shapes.copying import clone, contiguous, to_copy
from gradviz.ops.shapes.shape import reshape, view
from gradviz.ops.shapes.tiling import repeat
from gradviz.ops.variables.variable import Value, Variable, device_of, raw

#: An array of so many elements has rows that may be taken together.
_LARGE: Final = 1 << 17

#: Number of elements of such rows.
_LOOP: Final = 1 << 14

# --- what all of them do: see Note [Normalizing] ------------------------------------


def _normalized(x: Array, axes: Shape, eps: float) -> tuple[Array, Array, Array]:
    """`x` normalized over `axes`, the means, and the inverse standard deviations.

    Half precision is computed in single precision, and stays so.
    """
    if x.dtype == np.float16:
        x = x.astype(np.float32)
    count = x.dtype.type(prod([x.shape[axis] for axis in axes]))
    mean = summed(x, axes) / count
    result = x - mean
    rstd = 1 / np.sqrt(summed_products(result, result, axes) / count + eps)
    result *= rstd
    return result, mean, rstd


def _affine(result: Array, weight: Array, bias: Array) -> None:
    """``result * weight + bias``, in the memory of `result`."""
    if weight is not None:
        result *= weight
    if bias is not None:
        result += bias


def _affine_rows(result: Array, weight: Array, bias: Array) -> None:
    """`_affine` with parameters that have the shape of the last axes.

    NumPy begins anew with each row: of many short ones, several are taken for one.
    """
    sizes = [one.size for one in (weight, bias) if one is not None]
    if not sizes or result.size < _LARGE or type(result) is not np.ndarray:
        _affine(result, weight, bias)
        return
    # A power of two that divides the number of rows, so that no row is left over.
    count = gcd(result.size // sizes[0], 1 << (_LOOP // sizes[0]).bit_length())
    _affine(
        result.reshape((-1, count * sizes[0])),
        None if weight is None else np.tile(weight.reshape(-1), count),
        None if bias is None else np.tile(bias.reshape(-1), count),
    )


def _input_gradient(
    grads: Sequence[Gradient],
    x: Gradient,
    weight: Gradient,
    mean: Gradient,
    rstd: Gradient,
    axes: Shape,
) -> Gradient:
    """The gradient of the input; `weight`, `mean` and `rstd` broadcast to it."""
    grad, grad_mean, grad_rstd = grads
    is_first = grad is not None and grad_mean is None and grad_rstd is None
    if is_first and not isinstance(x, Variable):
        return _plain_input_gradient(grad, x, weight, mean, rstd, axes)
    centered = _centered(x, mean, rstd)
    count = prod(raw(x).shape[axis] for axis in axes)
    total = None
    if grad is not None:
        scaled = grad if weight is None else grad * weight
        along = sum_of(scaled * centered, axes, keepdim=True) / count
        level = sum_of(scaled, axes, keepdim=True) / count
        total = (scaled - level - centered * along) * rstd
    if grad_mean is not None:
        total = _plus(total, grad_mean / count)
    if grad_rstd is not None:
        total = _plus(total, centered * (grad_rstd * rstd * rstd / -count))
    return total


def _plain_input_gradient(
    grad: Array, x: Array, weight: Array, mean: Array, rstd: Array, axes: Shape
) -> Array:
    """`_input_gradient` of raw arrays, with no more memory than two of them."""
    count = rstd.dtype.type(prod(x.shape[axis] for axis in axes))
    centered = _centered(x, mean, rstd)
    result = grad.astype(rstd.dtype) if weight is None else grad * weight
    along = summed_products(result, centered, axes) / count
    result -= summed(result, axes) / count
    centered *= along
    result -= centered
    result *= rstd
    return result


def _centered(x: Gradient, mean: Gradient, rstd: Gradient) -> Gradient:
    """``(x - mean) * rstd``."""
    result = x - mean
    if isinstance(result, Variable):
        return result * rstd
    result *= rstd
    return result


def _plus(total: Gradient, more: Gradient) -> Gradient:
    return more if total is None else total + more


# --- layers -------------------------------------------------------------------------


def _layer_axes(shape: Shape, normalized: Shape) -> Shape:
    return tuple(range(len(shape) - len(normalized), len(shape)))


@differentiable(
    "NativeLayerNormBackward0",
    results=("result", "mean", "rstd"),
    joint=lambda wanted, grads, x, normalized, weight, bias, mean, rstd, eps: (
        _layer_gradients(
            grads,
            x,
            weight,
            bias,
            mean,
            rstd,
            Normal(_layer_axes(raw(x).shape, normalized), eps, True, tuple(wanted)),
        )
    ),
    together=lambda wanted, grad, x, weight, normalized, mean, rstd: layer_gradients(
        wanted, grad, x, weight, normalized, mean, rstd
    ),
    x=lambda grads, x, weight, normalized, mean, rstd: _input_gradient(
        grads, x, weight, mean, rstd, _layer_axes(raw(x).shape, normalized)
    ),
    weight=lambda grads, x, normalized, mean, rstd: _layer_weight(
        grads[0], x, normalized, mean, rstd
    ),
    bias=lambda grads, normalized: _sum_before(grads[0], normalized),
)
def native_layer_norm(
    x: Array, normalized: Shape, weight: Array, bias: Array, eps: float
) -> tuple[Array, Array, Array]:
    """`layer_norm`, the means and the inverse standard deviations."""
    axes = _layer_axes(x.shape, normalized)
    result, mean, rstd = _normalized(in_c_order(x), axes, eps)
    _affine_rows(result, weight, bias)
    return result.astype(x.dtype, copy=False), mean, rstd


def _layer_gradients(
    grads: Sequence[Gradient],
    x: Gradient,
    weight: Gradient,
    bias: Gradient,
    mean: Gradient,
    rstd: Gradient,
    how: Normal,
) -> Sequence[Gradient]:
    """All gradients of a layer normalization, in a graph."""
    grad, *others = grads
    if grad is None or any(one is not None for one in others):
        normalized = raw(x).shape[-len(how.axes) :]
        return (
            _input_gradient(grads, x, weight, mean, rstd, how.axes),
            _layer_weight(grad, x, normalized, mean, rstd),
            _sum_before(grad, normalized),
        )
    return layer_norm_gradients(grad, x, raw(mean), raw(rstd), weight, bias, how)


def _layer_weight(
    grad: Gradient, x: Gradient, normalized: Shape, mean: Gradient, rstd: Gradient
) -> Gradient:
    if grad is None:
        return None
    return _sum_before(_times(grad, _centered(x, mean, rstd)), normalized)


def _times(grad: Gradient, centered: Gradient) -> Gradient:
    """The product, where it may be in the memory of `centered`."""
    if isinstance(centered, Variable) or isinstance(grad, Variable):
        return grad * centered
    centered *= grad
    return centered


def _sum_before(grad: Gradient, normalized: Shape) -> Gradient:
    """The sum over the dimensions that are not normalized."""
    if grad is None or raw(grad).ndim == len(normalized):
        return grad
    return sum_of(grad, tuple(range(raw(grad).ndim - len(normalized))))


# --- batches ------------------------------------------------------------------------


def _batch_axes(x: Gradient) -> Shape:
    return (0, *range(2, raw(x).ndim))


def _by_channel(value: Gradient, x: Gradient) -> Gradient:
    """One number for each channel, so that it broadcasts to `x`."""
    if value is None or raw(x).ndim == 2:
        return value
    return reshape(value, (-1, *(1,) * (raw(x).ndim - 2)))


@differentiable(
    "NativeBatchNormBackward0",
    arrays=("running_mean", "running_var"),
    results=("result", "mean", "rstd"),
    joint=lambda wanted, grads, x, weight, training, eps, mean, rstd: _batch_gradients(
        grads,
        x,
        weight,
        mean,
        rstd,
        Normal(_batch_axes(x), eps, training, tuple(wanted)),
    ),
    together=lambda wanted, grad, x, weight, running_var, training, eps, mean, rstd: (
        batch_gradients(
            wanted,
            grad,
            x,
            _by_channel(weight, x),
            _by_channel(mean, x),
            _by_channel(rstd, x),
        )
        if training
        else (
            _scaled_by_running(grad, x, weight, running_var, eps)
            if wanted[0]
            else None,
            _channel_weight(grad, x, mean, rstd) if wanted[1] else None,
            sum_of(grad, _batch_axes(grad)) if wanted[2] else None,
        )
    ),
    x=lambda grads, x, weight, running_var, training, eps, mean, rstd: (
        _batch_input(grads, x, weight, mean, rstd)
        if training
        else _scaled_by_running(grads[0], x, weight, running_var, eps)
    ),
    weight=lambda grads, x, mean, rstd: _channel_weight(grads[0], x, mean, rstd),
    bias=lambda grads: (
        None if grads[0] is None else sum_of(grads[0], _batch_axes(grads[0]))
    ),
)
def native_batch_norm(
    x: Array,
    weight: Array,
    bias: Array,
    running_mean: Array,
    running_var: Array,
    training: bool,
    momentum: float,
    eps: float,
) -> tuple[Array, Array, Array]:
    """`batch_norm`, the means and the inverse standard deviations of the channels."""
    if training:
        result, mean, rstd = _normalized(x, _batch_axes(x), eps)
        mean, rstd = np.reshape(mean, -1), np.reshape(rstd, -1)
        _update(x, mean, rstd, running_mean, running_var, momentum, eps)
    else:
        mean, rstd = running_mean, 1 / np.sqrt(running_var + eps)
        result = (x - _by_channel(mean, x)) * _by_channel(rstd, x)
    _affine(result, _by_channel(weight, x), _by_channel(bias, x))
    return as_images(result.astype(x.dtype, copy=False), x), mean, rstd


def _batch_input(
    grads: Sequence[Gradient],
    x: Gradient,
    weight: Gradient,
    mean: Gradient,
    rstd: Gradient,
) -> Gradient:
    """The gradient of a batch that was normalized by its own statistics."""
    return _input_gradient(
        (grads[0], _by_channel(grads[1], x), _by_channel(grads[2], x)),
        x,
        _by_channel(weight, x),
        _by_channel(mean, x),
        _by_channel(rstd, x),
        _batch_axes(x),
    )


def _batch_gradients(
    grads: Sequence[Gradient],
    x: Gradient,
    weight: Gradient,
    mean: Gradient,
    rstd: Gradient,
    how: Normal,
) -> Sequence[Gradient]:
    """All gradients of a batch normalization, in a graph."""
    grad, *others = grads
    if grad is None or any(one is not None for one in others):
        if not how.by_itself:
            return None, None, None
        return (
            _batch_input(grads, x, weight, mean, rstd),
            _channel_weight(grad, x, mean, rstd),
            None if grad is None else sum_of(grad, _batch_axes(grad)),
        )
    return batch_norm_gradients(grad, x, weight, raw(mean), raw(rstd), how)


def _update(
    x: Array,
    mean: Array,
    rstd: Array,
    running_mean: Array | None,
    running_var: Array | None,
    momentum: float,
    eps: float,
) -> None:
    """Move the running statistics towards those of this batch, in place."""
    if running_mean is not None:
        running_mean += momentum * (mean - running_mean)
    if running_var is not None:
        count = x.size // x.shape[1]
        variance = (1 / np.square(rstd) - eps) * (count / max(count - 1, 1))
        running_var += momentum * (variance - running_var)


def _scaled_by_running(
    grad: Gradient, x: Gradient, weight: Gradient, running_var: Gradient, eps: float
) -> Gradient:
    scale = 1 / np.sqrt(raw(running_var) + eps)
    scale = scale if weight is None else weight * scale
    return None if grad is None else grad * _by_channel(scale, x)


def _channel_weight(
    grad: Gradient, x: Gradient, mean: Gradient, rstd: Gradient
) -> Gradient:
    if grad is None:
        return None
    centered = _centered(x, _by_channel(mean, x), _by_channel(rstd, x))
    return sum_of(_times(grad, centered), _batch_axes(x))


# --- groups of channels -------------------------------------------------------------


def _grouped(x: Gradient, groups: int) -> Gradient:
    """`x` with one row for each group of channels of each sample."""
    shape = raw(x).shape
    return reshape(x, (shape[0], groups, prod(shape[1:]) // groups))


@differentiable(
    "NativeGroupNormBackward0",
    results=("result", "mean", "rstd"),
    together=lambda wanted, grad, x, weight, mean, rstd: group_gradients(
        wanted, grad, x, weight, mean, rstd
    ),
    x=lambda grads, x, weight, groups, mean, rstd: _group_input(
        grads, x, weight, groups, mean, rstd
    ),
    weight=lambda grads, x, groups, mean, rstd: (
        None
        if grads[0] is None
        else sum_of(
            _times(grads[0], _group_centered(x, groups, mean, rstd)),
            _batch_axes(grads[0]),
        )
    ),
    bias=lambda grads: (
        None if grads[0] is None else sum_of(grads[0], _batch_axes(grads[0]))
    ),
)
def native_group_norm(
    x: Array, weight: Array, bias: Array, groups: int, eps: float
) -> tuple[Array, Array, Array]:
    """`group_norm`, the means and the inverse standard deviations of the groups."""
    result, mean, rstd = _normalized(_grouped(x, groups), (2,), eps)
    result = np.reshape(result, x.shape)
    _affine(result, _by_channel(weight, x), _by_channel(bias, x))
    result = as_images(result.astype(x.dtype, copy=False), x)
    return result, np.squeeze(mean, 2), np.squeeze(rstd, 2)


def _group_centered(
    x: Gradient, groups: int, mean: Gradient, rstd: Gradient
) -> Gradient:
    centered = _centered(_grouped(x, groups), mean[..., None], rstd[..., None])
    return reshape(centered, raw(x).shape)


def _group_input(
    grads: Sequence[Gradient],
    x: Gradient,
    weight: Gradient,
    groups: int,
    mean: Gradient,
    rstd: Gradient,
) -> Gradient:
    grad, grad_mean, grad_rstd = grads
    if grad is not None:
        scaled = grad if weight is None else grad * _by_channel(weight, x)
        grad = _grouped(scaled, groups)
    result = _input_gradient(
        (
            grad,
            None if grad_mean is None else grad_mean[..., None],
            None if grad_rstd is None else grad_rstd[..., None],
        ),
        _grouped(x, groups),
        None,
        mean[..., None],
        rstd[..., None],
        (2,),
    )
    return reshape(result, raw(x).shape)


# --- what users call ----------------------------------------------------------------


def layer_norm(
    input: Value,
    normalized_shape: Sequence[int],
    weight: Value = None,
    bias: Value = None,
    eps: float = 1e-5,
) -> Value:
    """The last dimensions normalized, then scaled and shifted.

    Args:
        input: Floats.
        normalized_shape: The lengths of the last dimensions, which share a mean.
        weight: Factors of results, of that shape.
        bias: Numbers added, of that shape.
        eps: Added to variances.

    Raises:
        RuntimeError: Shapes or dtypes do not fit.
    """
    if isinstance(normalized_shape, INTEGERS):
        raise TypeError(
            "layer_norm(): argument 'normalized_shape' (position 2) must be tuple of "
            "ints, not int"
        )
    normalized = tuple(normalized_shape)
    _check_layer(raw(input), normalized, raw(weight), raw(bias), ", ")
    _check_dtype("LayerNormKernelImpl", raw(input), raw(weight), raw(bias))
    result, _, _ = native_layer_norm(input, normalized, weight, bias, eps)
    return result


def rms_norm(
    input: Value,
    normalized_shape: Sequence[int],
    weight: Value = None,
    eps: float | None = None,
) -> Value:
    """The last dimensions divided by the root of the mean of their squares.

    Args:
        input: Floats.
        normalized_shape: The lengths of the last dimensions.
        weight: Factors of results, of that shape.
        eps: Added to means; the precision of the dtype by default.

    Raises:
        RuntimeError: Shapes do not fit.
    """
    eps = python_number(eps)
    normalized = tuple(normalized_shape)
    array = raw(input)
    _check_layer(array, normalized, raw(weight), None, "")
    wide = np.dtype(np.float32) if array.dtype == np.float16 else array.dtype
    eps = float(np.finfo(wide).eps) if eps is None else eps
    x = input if wide is array.dtype else to_copy(input, wide, device_of(array))
    axes = _layer_axes(array.shape, normalized)
    squares = plus(mean_of(pow(x, 2), axes, keepdim=True), eps)
    result = mul(x, rsqrt(squares))
    if weight is not None:
        result = mul(result, weight)
    return result if x is input else to_copy(result, array.dtype, device_of(array))


def batch_norm(
    input: Value,
    running_mean: Value | None,
    running_var: Value | None,
    weight: Value = None,
    bias: Value = None,
    training: bool = False,
    momentum: float = 0.1,
    eps: float = 1e-5,
) -> Value:
    """Each channel normalized over the batch, then scaled and shifted.

    Args:
        input: Shape ``(N, C, ...)``.
        running_mean: The means to use, or to update in place when training.
        running_var: The variances to use, or to update in place when training.
        weight: Factors of channels.
        bias: Numbers added to them.
        training: Use the statistics of the batch.
        momentum: Fraction by which the running statistics move towards those of the
            batch.
        eps: Added to variances.

    Raises:
        ValueError: There is but one element in a channel to train with.
        RuntimeError: Shapes or dtypes do not fit.
    """
    shape = raw(input).shape
    if training and len(shape) > 1 and prod((shape[0], *shape[2:])) == 1:
        raise ValueError(
            f"Expected more than 1 value per channel when training, got input size "
            f"torch.Size({[*shape]})"
        )
    channels = shape[1] if len(shape) > 1 else 0
    for name, value in (
        ("running_mean", running_mean),
        ("running_var", running_var),
        ("weight", weight),
        ("bias", bias),
    ):
        if value is None:
            if name.startswith("running") and not training:
                raise RuntimeError(f"{name} must be defined in evaluation mode")
        elif raw(value).size != channels:
            raise RuntimeError(
                f"{name} should contain {channels} elements not {raw(value).size}"
            )
    _check_batch_dtypes(raw(input), raw(weight), raw(running_mean))
    if not prod(shape):
        return clone(input)
    result, _, _ = native_batch_norm(
        input, weight, bias, running_mean, running_var, training, momentum, eps
    )
    return result


def group_norm(
    input: Value,
    num_groups: int,
    weight: Value = None,
    bias: Value = None,
    eps: float = 1e-5,
) -> Value:
    """Groups of channels normalized, then channels scaled and shifted.

    Args:
        input: Shape ``(N, C, ...)``.
        num_groups: Number of groups that the channels make.
        weight: Factors of channels.
        bias: Numbers added to them.
        eps: Added to variances.

    Raises:
        ValueError: There is but one element in a group.
        RuntimeError: Shapes do not fit.
    """
    shape = raw(input).shape
    if len(shape) < 2:
        raise RuntimeError(
            f"Expected at least 2 dimensions for input tensor but received {len(shape)}"
        )
    if shape[0] * shape[1] // num_groups * prod(shape[2:]) == 1:
        size = [shape[0] * shape[1] // num_groups, num_groups, *shape[2:]]
        raise ValueError(
            f"Expected more than 1 value per channel when training, got input size "
            f"{size}"
        )
    if shape[1] % num_groups:
        raise RuntimeError(
            f"Expected number of channels in input to be divisible by num_groups, but "
            f"got input of shape {[*shape]} and num_groups={num_groups}"
        )
    for name, value in (("weight", weight), ("bias", bias)):
        if value is not None and raw(value).shape != (shape[1],):
            given = value if weight is None else weight  # as in PyTorch
            raise RuntimeError(
                f"Expected {name} to be a vector of size equal to the number of "
                f"channels in input, but got {name} of shape {[*raw(given).shape]} and "
                f"input of shape {[*shape]}"
            )
    x = input if has_channels_last(raw(input)) else contiguous(input)
    result, _, _ = native_group_norm(x, weight, bias, num_groups, eps)
    return result


def instance_norm(
    input: Value,
    running_mean: Value = None,
    running_var: Value = None,
    weight: Value = None,
    bias: Value = None,
    use_input_stats: bool = True,
    momentum: float = 0.1,
    eps: float = 1e-5,
) -> Value:
    """Each channel of each sample normalized, then scaled and shifted.

    Args:
        input: Shape ``(N, C, ...)``.
        running_mean: The means to use, or to update in place.
        running_var: The variances to use, or to update in place.
        weight: Factors of channels.
        bias: Numbers added to them.
        use_input_stats: Use the statistics of the input.
        momentum: Fraction by which the running statistics move towards those of the
            input.
        eps: Added to variances.

    Raises:
        ValueError: A channel has but one element.
        RuntimeError: There are no statistics to use.

    Source: aten/src/ATen/native/Normalization.cpp, instance_norm.
    """
    shape = raw(input).shape
    if use_input_stats and prod(shape[2:]) == 1:
        raise ValueError(
            f"Expected more than 1 spatial element when training, got input size "
            f"torch.Size({[*shape]})"
        )
    if not use_input_stats and (running_mean is None or running_var is None):
        raise RuntimeError(
            "Expected running_mean and running_var to be defined when use_input_stats "
            "is false"
        )
    batch, channels = shape[:2]
    means, variances = (
        None if one is None else np.tile(raw(one), batch)
        for one in (running_mean, running_var)
    )
    weight = None if weight is None else repeat(weight, (batch,))
    bias = None if bias is None else repeat(bias, (batch,))
    result = batch_norm(
        view(contiguous(input), (1, batch * channels, *shape[2:])),
        means,
        variances,
        weight,
        bias,
        use_input_stats,
        momentum,
        eps,
    )
    for kept, moved in ((running_mean, means), (running_var, variances)):
        if moved is not None and use_input_stats:
            raw(kept)[...] = np.mean(np.reshape(moved, (batch, channels)), axis=0)
    return view(result, shape)


# --- what is refused ----------------------------------------------------------------


def _check_layer(
    x: Array,
    normalized: Shape,
    weight: Array | None,
    bias: Array | None,
    separator: str,
) -> None:
    if not normalized:
        raise RuntimeError(
            "Expected normalized_shape to be at least 1-dimensional, i.e., containing "
            "at least one element, but got normalized_shape = []"
        )
    for name, value in (("weight", weight), ("bias", bias)):
        if value is not None and value.shape != normalized:
            raise RuntimeError(
                f"Expected {name} to be of same shape as normalized_shape, but got "
                f"{name} of shape {[*value.shape]} and normalized_shape = "
                f"{[*normalized]}"
            )
    if x.shape[-len(normalized) :] != normalized:
        raise RuntimeError(
            f"Given normalized_shape={[*normalized]}, expected input with shape "
            f"[*{separator}{', '.join(map(str, normalized))}], but got input of "
            f"size{[*x.shape]}"
        )


def _check_dtype(
    kernel: str, x: Array, weight: Array | None, bias: Array | None
) -> None:
    if x.dtype.kind != "f":
        raise NotImplementedError(
            f"\"{kernel}\" not implemented for '{scalar_type_name(x.dtype)}'"
        )
    if not _share_dtype(x, weight, bias):
        raise RuntimeError(
            "mixed dtype (CPU): expect parameter to have scalar type of Float"
        )


def _check_batch_dtypes(
    x: Array, weight: Array | None, running_mean: Array | None
) -> None:
    if x.dtype.kind != "f":
        raise NotImplementedError(
            f"\"batch_norm\" not implemented for '{scalar_type_name(x.dtype)}'"
        )
    if not _share_dtype(x, weight, running_mean):
        raise RuntimeError("mixed dtype (CPU): all inputs must share same datatype.")


def _share_dtype(x: Array, *parameters: Array | None) -> bool:
    """Return whether parameters have the dtype of `x`; floats fit halves, too."""
    allowed = {x.dtype, np.dtype(np.float32) if x.dtype == np.float16 else x.dtype}
    return all(one is None or one.dtype in allowed for one in parameters)


PUBLIC = [
    *names("gv.f", native_batch_norm, native_layer_norm),
    *names("gv.f F.f", group_norm, layer_norm, rms_norm),
    *names("F.f", batch_norm, instance_norm),
]
