"""Elements around a tensor: constant, mirrored, repeated, or from the other side."""

from collections.abc import Sequence
from typing import Final

import numpy as np

from gradviz.backends.arrays.pinned_array import assign
from gradviz.backends.base import Array
from gradviz.ops.conventions.dimensions import Shape, at
from gradviz.ops.conventions.memory_layout import as_images
from gradviz.ops.dispatch.differentiable import Op, differentiable, without_gradient
from gradviz.ops.dispatch.public import names
from gradviz.ops.shapes.assignment import copy_
from gradviz.ops.shapes.slicing import slice_part
from gradviz.ops.variables.variable import Value, Variable, raw, variable

#: For each dimension how many elements before and after it; negative ones cut.
Widths = tuple[tuple[int, int], ...]

# --- constants ----------------------------------------------------------------------


@differentiable(
    "ConstantPadNdBackward0",
    x=lambda grad, widths: _pad_constant(grad, _negative(widths), 0),
)
def _pad_constant(x: Array, widths: Widths, value: float) -> Array:
    inner = x[
        tuple(
            slice(max(-before, 0), size - max(-after, 0))
            for size, (before, after) in zip(x.shape, widths, strict=True)
        )
    ]
    lengths = tuple(
        size + before + after
        for size, (before, after) in zip(x.shape, widths, strict=True)
    )
    # Not numpy.pad, which takes long to find out what to do.
    result = as_images(np.full_like(x, value, shape=lengths, order="C"), x)
    starts = [max(before, 0) for before, _ in widths]
    middle = zip(starts, inner.shape, strict=True)
    assign(result, tuple([slice(start, start + size) for start, size in middle]), inner)
    return result


def _negative(widths: Widths) -> Widths:
    return tuple((-before, -after) for before, after in widths)


def constant_pad_nd(input: Value, pad: Sequence[int], value: float = 0) -> Value:
    """`input` with a constant around it; negative widths cut.

    Args:
        input: Tensor that is in the middle.
        pad: Numbers of elements before and after the last dimension, then before and
            after the one before it, and so on.
        value: The constant.

    Raises:
        RuntimeError: There are too many widths, or nothing is left.
    """
    shape = raw(input).shape
    if len(pad) % 2:
        raise RuntimeError(
            f"Length of pad must be even but instead it equals {len(pad)}"
        )
    if len(pad) > 2 * len(shape):
        raise RuntimeError(
            f"Length of pad should be no more than twice the number of dimensions of "
            f"the input. Pad length is {len(pad)}while the input has {len(shape)}"
            f"dimensions."
        )
    widths = _widths(pad, len(shape))
    for dim, (size, (before, after)) in enumerate(zip(shape, widths, strict=True)):
        if size + before + after < 0:
            raise RuntimeError(
                f"The input size {size}, plus negative padding {before} and {after} "
                f"resulted in a negative output size, which is invalid. Check "
                f"dimension {dim} of your input."
            )
    return _pad_constant(input, widths, value)


def _widths(pad: Sequence[int], ndim: int) -> Widths:
    """Widths by dimension, from the first; `pad` begins with the last."""
    pairs = [(pad[i], pad[i + 1]) for i in range(0, len(pad), 2)]
    return ((0, 0),) * (ndim - len(pairs)) + tuple(reversed(pairs))


# --- what is taken from the tensor itself ---------------------------------------------


def _sources(mode: str, size: int, before: int, after: int) -> np.ndarray:
    """For each position after padding, which element it shows."""
    position = np.arange(-before, size + after)
    match mode:
        case "replicate":
            return position.clip(0, size - 1)
        case "circular":  # what is cut off does not come in again
            low = max(-before, 0)
            kept = size - low - max(-after, 0)
            return low + (position - low) % kept
        case _:
            mirrored = np.abs(position)
            return np.minimum(mirrored, 2 * (size - 1) - mirrored)


def _shown(x: Array, widths: Widths, mode: str) -> Array:
    for dim, (before, after) in enumerate(widths):
        if before or after:
            source = _sources(mode, x.shape[dim], before, after)
            x = x[at(dim, source)]
    return x.copy()  # in C order


def _folded(x: Array, widths: Widths, mode: str, shape: Shape) -> Array:
    """Return the sum over all copies of each element."""
    for dim, (before, after) in enumerate(widths):
        if before or after:
            size = shape[dim]
            source = _sources(mode, size, before, after)
            lengths = (*x.shape[:dim], size, *x.shape[dim + 1 :])
            inner = slice(
                max(before, 0), max(before, 0) + size - max(-after, 0) - max(-before, 0)
            )
            folded = np.zeros_like(x, shape=lengths)
            assign(folded, at(dim, source[inner]), x[at(dim, inner)])
            for position in (*range(inner.start), *range(inner.stop, len(source))):
                # A border is a few slices, each of which is added at once.
                folded[at(dim, source[position])] += x[at(dim, position)]
            x = folded
    return x


def _padding(name: str) -> Op:
    """The op of a mode of padding and a number of dimensions."""

    @differentiable(
        name,
        joint=lambda _, grad, x, widths, mode: (
            fold(grad, x, widths, mode, raw(x).shape),
        ),
        x=lambda grad, x_shape, widths, mode: fold(grad, None, widths, mode, x_shape),
    )
    def pad_from_itself(x: Array, widths: Widths, mode: str) -> Array:
        return as_images(_shown(x, widths, mode), x)

    @differentiable(
        f"{name[:-1]}Backward0",
        x=lambda grad, widths, mode: pad_from_itself(grad, widths, mode),
        of=without_gradient,
    )
    def fold(x: Array, of: Array, widths: Widths, mode: str, shape: Shape) -> Array:
        del of
        return _folded(x, widths, mode, shape)

    return pad_from_itself


_REFLECT: Final = {n: _padding(f"ReflectionPad{n}DBackward0") for n in (1, 2, 3)}
_REPLICATE: Final = {n: _padding(f"ReplicationPad{n}DBackward0") for n in (1, 2, 3)}


def _circular(x: Value, widths: Widths) -> Value:
    """Padded by copies: of the whole to the middle, then of each side to the other.

    Source: aten/src/ATen/native/PadNd.cpp, _pad_circular_symint.
    """
    if not isinstance(x, Variable):
        return _shown(x, widths, "circular")
    shape = x.array.shape
    padded = [(dim, *pair) for dim, pair in enumerate(widths) if any(pair)]
    lengths = [size + sum(pair) for size, pair in zip(shape, widths, strict=True)]
    result = variable(np.zeros_like(x.array, shape=tuple(lengths)))
    middle, source = result, x
    for dim, before, after in padded:
        stop = lengths[dim] - max(after, 0)
        middle = _slice(middle, dim, max(before, 0), stop)
        source = _slice(source, dim, max(-before, 0), shape[dim] - max(-after, 0))
    copy_(middle, source)
    for dim, before, after in padded:
        start, stop = max(before, 0), lengths[dim] - max(after, 0)
        if before > 0:
            copy_(
                _slice(result, dim, 0, before), _slice(result, dim, stop - before, stop)
            )
        if after > 0:
            source = _slice(result, dim, start, start + after)
            copy_(_slice(result, dim, stop, lengths[dim]), source)
    return result


def _slice(x: Value, dim: int, start: int, stop: int) -> Value:
    return slice_part(x, dim, slice(start, stop, 1))


# --- what users call ----------------------------------------------------------------


def pad(
    input: Value,
    pad: Sequence[int],
    mode: str = "constant",
    value: float | None = None,
) -> Value:
    """`input` with elements around it.

    Args:
        input: Tensor that is in the middle; except for constants, the first one or two
            dimensions stay as they are.
        pad: Numbers of elements before and after the last dimension, then before and
            after the one before it, and so on; negative ones cut.
        mode: ``constant``; ``reflect`` mirrors at the border, which is not repeated;
            ``replicate`` repeats it; ``circular`` goes on at the other side.
        value: The constant; 0 if None.

    Raises:
        NotImplementedError: There is no such mode, or not for so many dimensions.
        RuntimeError: The widths do not fit.
        ValueError: A value was given for another mode.

    Source: aten/src/ATen/native/PadNd.cpp, _pad_enum.
    """
    shape = raw(input).shape
    if len(pad) % 2:
        raise RuntimeError("Padding length must be divisible by 2")
    if len(pad) > 2 * len(shape):
        raise RuntimeError(
            f"Padding length should be less than or equal to two times the input "
            f"dimension but got padding length {len(pad)} and input of dimension "
            f"{len(shape)}"
        )
    if mode == "constant":
        return constant_pad_nd(input, pad, 0 if value is None else value)
    if value:
        raise RuntimeError(f'Padding mode "{mode}" doesn\'t take in value argument')
    num_padded = len(pad) // 2
    if mode not in ("reflect", "replicate", "circular"):
        raise NotImplementedError(f"Unrecognised padding mode {mode}")
    if num_padded not in (1, 2, 3) or len(shape) - num_padded not in (1, 2):
        raise NotImplementedError(
            f"Padding size {len(pad)} is not supported for {len(shape)}D input tensor."
            f"\nSupported combinations for non-constant padding:\n  - 2D or 3D input: "
            f"padding size = 2 (pads last dimension)\n  - 3D or 4D input: padding size "
            f"= 4 (pads last 2 dimensions)\n  - 4D or 5D input: padding size = 6 (pads "
            f"last 3 dimensions)"
        )
    widths = _widths(pad, len(shape))
    _check_widths(shape, widths, mode)
    if mode == "circular":
        return _circular(input, widths)
    return (_REFLECT if mode == "reflect" else _REPLICATE)[num_padded](
        input, widths, mode
    )


def _check_widths(shape: Shape, widths: Widths, mode: str) -> None:
    for dim, (size, (before, after)) in enumerate(zip(shape, widths, strict=True)):
        widest = max(before, after)
        if mode == "reflect" and widest >= size and widest > 0:
            raise RuntimeError(
                f"Argument #4: Padding size should be less than the corresponding "
                f"input dimension, but got: padding ({before}, {after}) at dimension "
                f"{dim} of input {list(shape)}"
            )
        if mode == "circular" and widest > size:
            raise RuntimeError("Padding value causes wrapping around more than once.")
        if size + before + after < 0:
            raise RuntimeError(
                "Negative padding value is resulting in an empty dimension"
            )


PUBLIC = [
    *names("gv.f", constant_pad_nd),
    *names("F.f", pad),
]
