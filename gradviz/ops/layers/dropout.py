"""Dropout: elements, or whole channels, set to 0 at random."""

import math
import warnings
from collections.abc import Callable

import numpy as np

from gradviz.backends.base import Array, beside
from gradviz.ops.conventions.dimensions import Shape
from gradviz.ops.conventions.dtype_names import scalar_type_name
from gradviz.ops.conventions.generator import default_generator
from gradviz.ops.dispatch.differentiable import differentiable
from gradviz.ops.dispatch.in_place import in_place
from gradviz.ops.dispatch.public import names
from gradviz.ops.elementwise.arithmetic import add, mul
from gradviz.ops.shapes.unit_dimensions import squeeze, unsqueeze
from gradviz.ops.variables.variable import Value, raw, variable


def dropout(
    input: Value, p: float = 0.5, training: bool = True, inplace: bool = False
) -> Value:
    """Each element set to 0 with probability `p`, the others scaled by ``1 / (1 - p)``.

    Args:
        input: Floats.
        p: The probability.
        training: True if anything is to be done at all.
        inplace: Change `input` itself.

    Raises:
        ValueError: `p` is not a probability.
        RuntimeError: `input` does not have floats.
    """
    _check(p)
    return _dropped(input, p, training, inplace, raw(input).shape)


def dropout1d(
    input: Value, p: float = 0.5, training: bool = True, inplace: bool = False
) -> Value:
    """Each channel of a sequence set to 0 with probability `p`; see `dropout`.

    `input` has shape ``(N, C, L)`` or ``(C, L)``.
    """
    _check(p)
    ndim = raw(input).ndim
    if ndim not in (2, 3):
        raise RuntimeError(
            f"dropout1d: Expected 2D or 3D input, but received a {ndim}D input. Note "
            f"that dropout1d exists to provide channel-wise dropout on inputs with 1 "
            f"spatial dimension, a channel dimension, and an optional batch dimension "
            f"(i.e. 2D or 3D inputs)."
        )
    if ndim == 3:
        return feature_dropout(input, p, training, inplace)
    return squeeze(feature_dropout(unsqueeze(input, 0), p, training, inplace), 0)


def dropout2d(
    input: Value, p: float = 0.5, training: bool = True, inplace: bool = False
) -> Value:
    """Each channel of an image set to 0 with probability `p`; see `dropout`.

    `input` has shape ``(N, C, H, W)``; with ``(N, C, L)`` it is `dropout1d`.
    """
    _check(p)
    ndim = raw(input).ndim
    if ndim not in (3, 4):
        _warn_of_dimensions("dropout2d", ndim, 2)
    if ndim == 3:
        warnings.warn(
            "dropout2d: Received a 3D input to dropout2d and assuming that "
            "channel-wise 1D dropout behavior is desired - input is interpreted as "
            "shape (N, C, L), where C is the channel dim. This behavior will change in "
            "a future release to interpret the input as one without a batch "
            "dimension, i.e. shape (C, H, W). To maintain the 1D channel-wise dropout "
            "behavior, please switch to using dropout1d instead.",
            UserWarning,
            stacklevel=2,
        )
    return feature_dropout(input, p, training, inplace)


def dropout3d(
    input: Value, p: float = 0.5, training: bool = True, inplace: bool = False
) -> Value:
    """Each channel of a volume set to 0 with probability `p`; see `dropout`.

    `input` has shape ``(N, C, D, H, W)`` or ``(C, D, H, W)``.
    """
    _check(p)
    ndim = raw(input).ndim
    if ndim not in (4, 5):
        _warn_of_dimensions("dropout3d", ndim, 3)
    if ndim != 4:
        return feature_dropout(input, p, training, inplace)
    return squeeze(feature_dropout(unsqueeze(input, 0), p, training, inplace), 0)


def feature_dropout(
    input: Value, p: float = 0.5, training: bool = True, inplace: bool = False
) -> Value:
    """Each channel, dimension 1, set to 0 with probability `p`; see `dropout`."""
    _check(p)
    if p == 0 or not training:
        return input
    return _dropped(input, p, training, inplace, _per_channel(input))


def alpha_dropout(
    input: Value, p: float = 0.5, training: bool = False, inplace: bool = False
) -> Value:
    """Apply a `dropout` that keeps mean and variance of SELU's results."""
    _check(p)
    return _alpha_dropped(input, p, training, inplace, raw(input).shape)


def feature_alpha_dropout(
    input: Value, p: float = 0.5, training: bool = False, inplace: bool = False
) -> Value:
    """`alpha_dropout` of whole channels."""
    _check(p)
    if p == 0 or not training:
        return input
    return _alpha_dropped(input, p, training, inplace, _per_channel(input))


@differentiable(
    "NativeDropoutBackward0",
    results=("result", "mask"),
    plain=("mask",),
    x=lambda grad, mask, p, train: grad * (raw(mask) * _scale(p if train else 0)),
)
def _native_dropout(x: Array, p: float, train: bool) -> tuple[Array, Array]:
    if not train or p == 0:
        return x.copy(), np.ones_like(x, dtype=bool)
    mask = kept(x, x.shape, p)
    return x * (mask * x.dtype.type(_scale(p))), mask


def native_dropout(input: Value, p: float, train: bool | None) -> Value:
    """`dropout`, and which elements were kept."""
    return _native_dropout(input, p, train is not False)


def tensor_dropout(input: Value, p: float, train: bool) -> Value:
    """`dropout`, as PyTorch has it outside of ``nn.functional``."""
    return dropout(input, p, train)


def tensor_feature_dropout(input: Value, p: float, train: bool) -> Value:
    """`feature_dropout`, as PyTorch has it outside of ``nn.functional``."""
    return feature_dropout(input, p, train)


def tensor_alpha_dropout(input: Value, p: float, train: bool) -> Value:
    """`alpha_dropout`, as PyTorch has it outside of ``nn.functional``."""
    return alpha_dropout(input, p, train)


def tensor_feature_alpha_dropout(input: Value, p: float, train: bool) -> Value:
    """`feature_alpha_dropout`, as PyTorch has it outside of ``nn.functional``."""
    return feature_alpha_dropout(input, p, train)


def kept(x: Array, shape: Shape, p: float) -> Array:
    """Return a random mask of the elements to keep, on the device of `x`."""
    return beside(x, default_generator.random.random(shape, np.float32) >= p)


# --- what they are made of ----------------------------------------------------------


def _dropped(x: Value, p: float, training: bool, inplace: bool, shape: Shape) -> Value:
    """`x` times 0 or the scale.

    Source: aten/src/ATen/native/Dropout.cpp, _dropout_impl.
    """
    array = raw(x)
    if p == 0 or not training or array.size == 0:
        return x
    multiply: Callable[[Value, Value], Value] = in_place(mul) if inplace else mul
    if array.dtype.kind not in "fc":
        raise RuntimeError(
            f"result type Float can't be cast to the desired output type "
            f"{scalar_type_name(array.dtype)}"
        )
    noise = kept(array, shape, p).astype(array.dtype)
    noise *= _scale(p)
    return multiply(x, variable(noise))  # in the order of `x`


def _alpha_dropped(
    x: Value, p: float, training: bool, inplace: bool, shape: Shape
) -> Value:
    array = raw(x)
    if p == 0 or not training or array.size == 0:
        return x
    multiply, plus = (in_place(mul), in_place(add)) if inplace else (mul, add)
    if p == 1:
        return multiply(x, variable(np.zeros_like(array, shape=())))
    alpha = 1.7580993408473766
    a = 1 / math.sqrt((alpha * alpha * p + 1) * (1 - p))
    noise = kept(array, shape, p).astype(array.dtype)
    shift = (noise - 1) * (alpha * a) + alpha * a * p
    return plus(multiply(x, variable(noise * a)), variable(shift))


def _scale(p: float) -> float:
    return 0 if p == 1 else 1 / (1 - p)


def _per_channel(x: Value) -> Shape:
    shape = raw(x).shape
    if len(shape) < 2:
        raise RuntimeError(
            "Feature dropout requires at least 2 dimensions in the input"
        )
    return (*shape[:2], *(1,) * (len(shape) - 2))


def _check(p: float) -> None:
    if not 0 <= p <= 1:
        raise ValueError(f"dropout probability has to be between 0 and 1, but got {p}")


def _warn_of_dimensions(name: str, ndim: int, spatial: int) -> None:
    warnings.warn(
        f"{name}: Received a {ndim}-D input to {name}, which is deprecated and will "
        f"result in an error in a future release. To retain the behavior and silence "
        f"this warning, please use dropout instead. Note that {name} exists to provide "
        f"channel-wise dropout on inputs with {spatial} spatial dimensions, a channel "
        f"dimension, and an optional batch dimension (i.e. {spatial + 1}D or "
        f"{spatial + 2}D inputs).",
        UserWarning,
        stacklevel=3,
    )


PUBLIC = [
    *names("gv.f", native_dropout, alpha_dropout=tensor_alpha_dropout),
    *names("gv.f", dropout=tensor_dropout),
    *names("gv.f", feature_alpha_dropout=tensor_feature_alpha_dropout),
    *names("gv.f", feature_dropout=tensor_feature_dropout),
    *names("F.f", alpha_dropout, dropout, dropout1d, dropout2d, dropout3d),
    *names("F.f", feature_alpha_dropout),
]
