"""Pooling: of each window of an image, the largest element or the average.

Windows are never copied out: an op goes through the few positions *in* a window, and
takes the elements at that position in all windows at once. Pooling to a given number of
outputs is in `gradviz.ops.layers.adaptive_pooling`.
"""

from collections.abc import Callable, Iterator, Sequence
from functools import lru_cache
from math import prod
from typing import Any, Literal, NamedTuple, Protocol

import numpy as np

from gradviz.backends.arrays.pinned_array import assign
from gradviz.backends.arrays.wrapped_array import in_one_kernel
from gradviz.backends.base import Array, beside
from gradviz.ops.conventions.dimensions import INTEGERS, Lengths, Shape
from gradviz.ops.conventions.memory_layout import as_images, in_c_order
from gradviz.ops.dispatch.differentiable import Op, differentiable, without_gradient
from gradviz.ops.dispatch.public import names
from gradviz.ops.shapes.unit_dimensions import squeeze, unsqueeze
from gradviz.ops.variables.variable import Value, raw


class Window(NamedTuple):
    """A window that moves over an input, a number for each spatial dimension.

    Attributes:
        size: Number of elements in it.
        stride: Steps between neighboring windows.
        padding: Number of elements by which the first window begins before the input.
        dilation: Steps between neighboring elements of a window.
        outputs: Number of windows.
    """

    size: Shape
    stride: Shape
    padding: Shape
    dilation: Shape
    outputs: Shape

    def places(self) -> Iterator[tuple[Any, ...]]:
        """For each position in a window, the index of the elements there."""
        for offset in np.ndindex(self.size):
            place = tuple(
                slice(start * gap, start * gap + (count - 1) * step + 1, step)
                for start, gap, count, step in zip(
                    offset, self.dilation, self.outputs, self.stride, strict=True
                )
            )
            yield (..., *place)

    def margins(self, lengths: Shape) -> list[tuple[int, int]]:
        """Return the reach of windows beyond both ends of an input of these lengths."""
        return [
            (pad, max(0, (count - 1) * step + gap * (size - 1) + 1 - pad - length))
            for length, size, step, pad, gap, count in zip(lengths, *self, strict=True)
        ]

    @property
    def spatial(self) -> int:
        """The number of spatial dimensions."""
        return len(self.size)

    @property
    def overlaps(self) -> bool:
        """True if an element may be in several windows."""
        return any(
            step < gap * (size - 1) + 1
            for size, step, gap in zip(
                self.size, self.stride, self.dilation, strict=True
            )
        )


def padded(x: Array, window: Window, value: float) -> tuple[Array, Any]:
    """`x` with `value` wherever windows reach beyond it, and the index of `x` in it."""
    lengths = x.shape[-window.spatial :]
    margins = window.margins(lengths)
    if not any(map(any, margins)):
        return x, ...
    longer = [
        before + length + after
        for length, (before, after) in zip(lengths, margins, strict=True)
    ]
    shape = (*x.shape[: -len(lengths)], *longer)
    result: Array = np.full_like(x, value, shape=shape)
    inner = (
        ...,
        *(
            slice(before, before + length)
            for length, (before, _) in zip(lengths, margins, strict=True)
        ),
    )
    assign(result, inner, x)
    return result, inner


# --- the largest --------------------------------------------------------------------


def largest(x: Array, window: Window) -> tuple[Array, Array]:
    """The largest element of each window, and where it is in the flattened image.

    A NaN is larger than anything; of equals the first is taken.
    """
    values, indices = in_one_kernel("max_pool", _largest, x, window)
    return values, indices


def _largest(x: Array, window: Window) -> tuple[Array, Array]:
    lengths = x.shape[-window.spatial :]
    is_float = x.dtype.kind == "f"
    extended, _ = padded(x, window, -np.inf if is_float else np.iinfo(x.dtype).min)
    parts = [extended[place] for place in window.places()]
    values: Array = parts[0].copy()
    for part in parts[1:]:
        np.maximum(part, values, out=values)
    # The number of elements of a window before the chosen one. Counted, not assigned by
    # masks: a processor cannot foresee those.
    precedes = parts[0] != values
    chosen = precedes.astype(np.min_scalar_type(len(parts)))
    for part in parts[1:-1]:
        precedes &= part != values
        chosen += precedes
    if is_float and values.size and bool(np.isnan(np.max(values))):
        for number, part in enumerate(parts):
            np.copyto(chosen, number, where=np.isnan(part))
    begins, in_image, steps = _flattened_windows(window, lengths)
    indices: Array = np.take(beside(x, steps), chosen)
    indices += beside(x, begins)
    if any(window.padding):
        np.copyto(indices, beside(x, in_image), where=chosen == 0)
    return values, indices


@lru_cache(maxsize=64)
def _flattened_windows(
    window: Window, lengths: Shape
) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Return the starts of windows in the flattened image, and their elements.

    Layers ask for the same each time.

    Returns:
        The positions of the first elements, as if the image continued in all
        directions; those of the first elements inside the image, chosen where all of a
        window is -inf; the distances of a window's elements from its first.
    """
    rows = [
        np.arange(count) * step - pad
        for count, step, pad in zip(
            window.outputs, window.stride, window.padding, strict=True
        )
    ]
    inside = [
        row + np.maximum(0, -(row // gap)) * gap
        for row, gap in zip(rows, window.dilation, strict=True)
    ]
    offsets = [
        np.arange(size) * gap
        for size, gap in zip(window.size, window.dilation, strict=True)
    ]
    return (
        flattened(rows, lengths),
        flattened(inside, lengths),
        flattened(offsets, lengths).reshape(-1),
    )


def flattened(rows: Sequence[np.ndarray], lengths: Shape) -> np.ndarray:
    """Places in a flattened image, given those along each of its dimensions."""
    total = np.zeros((), np.int64)
    for row, length in zip(rows, lengths, strict=True):
        total = total[..., None] * length + row
    return total


class Windows(Protocol):
    """State that undoes the choice of one element of each window."""

    @property
    def spatial(self) -> int:
        """The number of spatial dimensions, which come last."""

    @property
    def overlaps(self) -> bool:
        """True if an element may be chosen twice."""


def choice(name: str, find: Callable[[Array, Any], tuple[Array, Array]]) -> Op:
    """The op that takes one element of each window of its input, and says where it was.

    Args:
        name: PyTorch's name of the forward.
        find: The forward: from the input and its `Windows` to the chosen elements, and
            where they are in the flattened image.
    """

    def forward(x: Array, windows: Windows) -> tuple[Array, Array]:
        values, indices = find(x, windows)
        return as_images(values, x), as_images(indices, x)

    def scattered(
        x: Array, of: Array, indices: Array, shape: Shape, windows: Windows
    ) -> Array:
        del of
        spatial = windows.spatial
        planes, size = prod(shape[:-spatial]), prod(shape[-spatial:])
        result: Array = np.zeros_like(x, shape=(planes * size,))
        starts = beside(x, np.arange(planes)[:, None] * size)
        per_plane = np.reshape(indices, (planes, prod(indices.shape[-spatial:])))
        places = np.reshape(per_plane + starts, -1)
        if windows.overlaps:
            np.add.at(result, places, np.reshape(x, -1))
        else:
            assign(result, places, np.reshape(x, -1))
        return np.reshape(result, shape)

    def taken(x: Array, indices: Array, windows: Windows) -> Array:
        spatial = windows.spatial
        planes = prod(x.shape[:-spatial])
        flat = np.reshape(x, (planes, prod(x.shape[-spatial:])))
        places = np.reshape(indices, (planes, prod(indices.shape[-spatial:])))
        return np.reshape(np.take_along_axis(flat, places, axis=1), indices.shape)

    take = differentiable(
        f"{name}BackwardBackward0",
        arrays=("indices",),
        x=lambda grad, x_shape, indices, windows: scatter(
            grad, None, indices, x_shape, windows
        ),
    )(taken)
    scatter = differentiable(
        f"{name}BackwardBackward0",
        arrays=("indices",),
        x=lambda grad, indices, windows: take(grad, indices, windows),
        of=without_gradient,
    )(scattered)
    return differentiable(
        f"{name}Backward0",
        results=("values", "indices"),
        plain=("indices",),
        joint=lambda _, grad, x, indices, windows: (
            scatter(grad, x, indices, raw(x).shape, windows),
        ),
        x=lambda grad, x_shape, indices, windows: scatter(
            grad, None, indices, x_shape, windows
        ),
    )(forward)


_max_pool2d = choice("MaxPool2DWithIndices", largest)
_max_pool3d = choice("MaxPool3DWithIndices", largest)


# --- the average --------------------------------------------------------------------


class Divisor(NamedTuple):
    """Divisor of the sum over a window.

    Attributes:
        count_include_pad: True if positions in the padding count.
        override: A number instead of their count.
    """

    count_include_pad: bool = True
    override: int | None = None

    def of(self, window: Window, lengths: Shape) -> np.ndarray | int:
        """The divisor of each window, or of all."""
        if self.override is not None:
            return self.override
        total = np.ones(())
        for axis, length in enumerate(lengths):
            pad = window.padding[axis]
            start = np.arange(window.outputs[axis]) * window.stride[axis] - pad
            stop = np.minimum(start + window.size[axis], length + pad)
            if not self.count_include_pad:
                start, stop = np.maximum(start, 0), np.minimum(stop, length)
            total = total[..., None] * (stop - start)
        return total


def _average_of(x: Array, window: Window, divisor: Divisor) -> Array:
    extended, _ = padded(x, window, 0)
    spatial = window.spatial
    shape = (*x.shape[:-spatial], *window.outputs)
    total: Array = np.zeros_like(x, shape=shape)
    for place in window.places():
        total += extended[place]
    average = _divided(total, divisor.of(window, x.shape[-spatial:]))
    return as_images(average, x) if spatial == 2 else in_c_order(average)


def _average_spread(
    x: Array, of: Array, shape: Shape, window: Window, divisor: Divisor
) -> Array:
    del of
    spatial = window.spatial
    share = _divided(x, divisor.of(window, shape[-spatial:]))
    result, inner = padded(np.zeros_like(x, shape=shape), window, 0)
    for place in window.places():
        result[place] += share
    return result[inner]


def _divided(x: Array, divisor: np.ndarray | int) -> Array:
    if isinstance(divisor, np.ndarray):
        divisor = beside(x, divisor.astype(x.dtype))
    return (x / divisor).astype(x.dtype, copy=False)  # towards 0, of integers


def _averaging(name: str) -> Op:
    """The op that takes the average of windows.

    Args:
        name: PyTorch's name of the forward.
    """
    spread = differentiable(
        f"{name}BackwardBackward0",
        x=lambda grad, window, divisor: average(grad, window, divisor),
        of=without_gradient,
    )(_average_spread)
    average = differentiable(
        f"{name}Backward0",
        joint=lambda _, grad, x, window, divisor: (
            spread(grad, x, raw(x).shape, window, divisor),
        ),
        x=lambda grad, x_shape, window, divisor: spread(
            grad, None, x_shape, window, divisor
        ),
    )(_average_of)
    return average


_avg_pool2d = _averaging("AvgPool2D")
_avg_pool3d = _averaging("AvgPool3D")


# --- what users call ----------------------------------------------------------------


def max_pool1d(
    input: Value,
    kernel_size: Lengths,
    stride: Lengths | None = None,
    padding: Lengths = 0,
    dilation: Lengths = 1,
    ceil_mode: bool = False,
    return_indices: bool = False,
) -> Value:
    """The largest element of each window of a sequence.

    Args:
        input: Shape ``(N, C, L)`` or ``(C, L)``.
        kernel_size: Number of elements in a window.
        stride: Steps between windows; by default there are none in common.
        padding: Number of elements by which the first window begins before the input.
        dilation: Steps between neighboring elements of a window.
        ceil_mode: True if a last window may reach beyond the end.
        return_indices: Return also where the elements were.

    Raises:
        RuntimeError: The shape or the settings do not fit.
    """
    shape = raw(input).shape
    if len(shape) not in (2, 3) or 0 in shape[-2:]:
        raise RuntimeError(
            f"max_pool1d: Expected 2D or 3D (batch mode) tensor with optional 0 dim "
            f"batch size for input, but got:{[*shape]}"
        )
    size, step, pad, gap = (
        _single("max_pool1d", name, value)
        for name, value in (
            ("kernel_size", kernel_size),
            (
                "stride",
                kernel_size if stride is None or _is_default(stride) else stride,
            ),
            ("padding", padding),
            ("dilation", dilation),
        )
    )
    if not return_indices:
        _check_max_pool1d(size, step, pad, gap)
        count = _num_windows(shape[-1], size, step, pad, gap, ceil_mode)
        if count < 1:
            raise RuntimeError(f"max_pool1d() Invalid computed output size: {count}")
    pooled = max_pool2d(
        unsqueeze(input, -2),
        (1, size),
        (1, step),
        (0, pad),
        (1, gap),
        ceil_mode,
        return_indices,
    )
    if return_indices:
        return squeeze(pooled[0], -2), squeeze(pooled[1], -2)
    return squeeze(pooled, -2)


def max_pool2d(
    input: Value,
    kernel_size: Lengths,
    stride: Lengths | None = None,
    padding: Lengths = 0,
    dilation: Lengths = 1,
    ceil_mode: bool = False,
    return_indices: bool = False,
) -> Value:
    """The largest element of each window of an image; see `max_pool1d`.

    `input` has shape ``(N, C, H, W)`` or ``(C, H, W)``; indices count in the flattened
    image.
    """
    window = _window(
        "max_pool2d", 2, input, kernel_size, stride, padding, dilation, ceil_mode
    )
    return _max_pooled(_max_pool2d, input, window, return_indices)


def max_pool3d(
    input: Value,
    kernel_size: Lengths,
    stride: Lengths | None = None,
    padding: Lengths = 0,
    dilation: Lengths = 1,
    ceil_mode: bool = False,
    return_indices: bool = False,
) -> Value:
    """The largest element of each window of a volume; see `max_pool1d`.

    `input` has shape ``(N, C, D, H, W)`` or ``(C, D, H, W)``; indices count in the
    flattened volume.
    """
    window = _window(
        "max_pool3d", 3, input, kernel_size, stride, padding, dilation, ceil_mode
    )
    return _max_pooled(_max_pool3d, input, window, return_indices)


def avg_pool1d(
    input: Value,
    kernel_size: Lengths,
    stride: Lengths | None = None,
    padding: Lengths = 0,
    ceil_mode: bool = False,
    count_include_pad: bool = True,
) -> Value:
    """The average of each window of a sequence.

    Args:
        input: Shape ``(N, C, L)`` or ``(C, L)``.
        kernel_size: Number of elements in a window.
        stride: Steps between windows; by default there are none in common.
        padding: Number of elements by which the first window begins before the input.
        ceil_mode: True if a last window may reach beyond the end.
        count_include_pad: True if the padding counts as zeros; else it does not count
            at all.

    Raises:
        RuntimeError: The shape or the settings do not fit.
    """
    shape = raw(input).shape
    if len(shape) not in (2, 3):
        raise RuntimeError(
            f"Expected 2 to 3 dimensions, but got {len(shape)}-dimensional tensor for "
            f"argument #1 'self' (while checking arguments for avg_pool1d)"
        )
    size, step, pad = (
        _single("avg_pool1d", name, value)
        for name, value in (
            ("kernel_size", kernel_size),
            (
                "stride",
                kernel_size if stride is None or _is_default(stride) else stride,
            ),
            ("padding", padding),
        )
    )
    pooled = avg_pool2d(
        unsqueeze(input, -2),
        (1, size),
        (1, step),
        (0, pad),
        ceil_mode,
        count_include_pad,
    )
    return squeeze(pooled, -2)


def avg_pool2d(
    input: Value,
    kernel_size: Lengths,
    stride: Lengths | None = None,
    padding: Lengths = 0,
    ceil_mode: bool = False,
    count_include_pad: bool = True,
    divisor_override: int | None = None,
) -> Value:
    """The average of each window of an image; see `avg_pool1d`.

    `input` has shape ``(N, C, H, W)`` or ``(C, H, W)``; `divisor_override` replaces the
    number of elements by which sums are divided.
    """
    divisor = _divisor(count_include_pad, divisor_override)
    window = _window("avg_pool2d", 2, input, kernel_size, stride, padding, 1, ceil_mode)
    return _avg_pool2d(input, window, divisor)


def avg_pool3d(
    input: Value,
    kernel_size: Lengths,
    stride: Lengths | None = None,
    padding: Lengths = 0,
    ceil_mode: bool = False,
    count_include_pad: bool = True,
    divisor_override: int | None = None,
) -> Value:
    """The average of each window of a volume; see `avg_pool2d`.

    `input` has shape ``(N, C, D, H, W)`` or ``(C, D, H, W)``.
    """
    divisor = _divisor(count_include_pad, divisor_override)
    window = _window("avg_pool3d", 3, input, kernel_size, stride, padding, 1, ceil_mode)
    return _avg_pool3d(input, window, divisor)


def _max_pooled(op: Op, x: Value, window: Window, return_indices: bool) -> Value:
    values, indices = op(x, window)
    return (values, indices) if return_indices else values


# --- settings, and what is refused --------------------------------------------------


def _window(
    name: str,
    spatial: Literal[2, 3],
    x: Value,
    size: Lengths,
    stride: Lengths | None,
    padding: Lengths,
    dilation: Lengths,
    ceil_mode: bool,
) -> Window:
    """The window that users' settings mean for the input `x`.

    Source: aten/src/ATen/native/Pool.h, pooling_output_shape and pool2d_shape_check.
    """
    sizes = _for_each(name, "kernel_size", "either be", size, spatial)
    strides = (
        sizes
        if _is_default(stride)
        else _for_each(name, "stride", "either be omitted,", stride, spatial)
    )
    paddings = _for_each(name, "padding", "either be", padding, spatial)
    dilations = _for_each(name, "dilation", "be either", dilation, spatial)

    shape = raw(x).shape
    if len(shape) not in (spatial + 1, spatial + 2):
        raise RuntimeError(
            f"non-empty {spatial + 1}D or {spatial + 2}D (batch mode) tensor expected "
            f"for input"
        )
    outputs = tuple(
        _num_windows(*settings, ceil_mode)
        for settings in zip(
            shape[-spatial:], sizes, strides, paddings, dilations, strict=True
        )
    )
    window = Window(sizes, strides, paddings, dilations, outputs)
    _check_window(window, shape, spatial)
    return window


def _num_windows(
    length: int, size: int, stride: int, padding: int, dilation: int, ceil_mode: bool
) -> int:
    if stride == 0:
        raise RuntimeError("stride should not be zero")
    if padding < 0:
        raise RuntimeError(f"pad must be non-negative, but got pad: {padding}")
    extent = (size - 1) * dilation + 1
    if padding > extent // 2:
        raise RuntimeError(
            f"pad should be at most half of effective kernel size, but got "
            f"pad={padding}, kernel_size={size} and dilation={dilation}"
        )
    room = length + 2 * padding - extent
    count = (room + (stride - 1 if ceil_mode else 0)) // stride + 1
    if ceil_mode and (count - 1) * stride >= length + padding:
        count -= 1  # the last window would begin in the padding
    return count


def _check_window(window: Window, shape: Shape, spatial: int) -> None:
    axes = "TDHW"[-spatial:] if spatial == 2 else "THW"
    for what, label, sizes in (
        ("kernel size", "k", window.size),
        ("stride", "d", window.stride),
        ("dilation", "dilation", window.dilation),
    ):
        if min(sizes) <= 0:
            got = " ".join(
                f"{label}{axis}: {size}" for axis, size in zip(axes, sizes, strict=True)
            )
            raise RuntimeError(f"{what} should be greater than zero, but got {got}")
    channels_and_lengths = shape[-spatial - 1 :]
    if 0 in channels_and_lengths:
        raise RuntimeError(
            f"Expected {spatial + 1}D or {spatial + 2}D (batch mode) tensor with "
            f"optional 0 dim batch size for input, but got:{[*shape]}"
        )
    if min(window.outputs) < 1:
        given = "x".join(map(str, channels_and_lengths))
        got = "x".join(map(str, (channels_and_lengths[0], *window.outputs)))
        raise RuntimeError(
            f"Given input size: ({given}). Calculated output size: ({got}). "
            f"Output size is too small"
        )


def _check_max_pool1d(size: int, stride: int, padding: int, dilation: int) -> None:
    """Source: aten/src/ATen/native/MaxPooling.cpp, check_max_pool1d."""
    for what, value in (("kernel_size", size), ("stride", stride)):
        if value <= 0:
            raise RuntimeError(
                f"max_pool1d() {what} must be greater than zero, but got {value}"
            )
    if padding < 0:
        raise RuntimeError(
            f"max_pool1d() padding must be non-negative, but got {padding}"
        )
    if padding > size // 2:
        raise RuntimeError(
            f"max_pool1d() padding should be at most half of kernel size, but got "
            f"padding={padding} and kernel_size={size}"
        )
    if dilation <= 0:
        raise RuntimeError(
            f"max_pool1d() dilation must be greater than zero, but got {dilation}"
        )


def _divisor(count_include_pad: bool, override: int | None) -> Divisor:
    if override == 0:
        raise RuntimeError("divisor must be not zero")
    return Divisor(count_include_pad, override)


def _is_default(stride: Lengths | None) -> bool:
    return stride is None or (not isinstance(stride, INTEGERS) and not len(stride))


def _single(name: str, what: str, value: Lengths) -> int:
    values = (value,) if isinstance(value, INTEGERS) else tuple(value)
    if len(values) != 1:
        raise RuntimeError(
            f"{name}() argument '{what}' should contain one int (got {len(values)})"
        )
    return values[0]


def _for_each(
    name: str, what: str, must: str, value: Lengths | None, spatial: int
) -> Shape:
    if value is None:
        raise TypeError(
            f"{name}(): argument '{what}' (position 2) must be tuple of ints, "
            f"not NoneType"
        )
    values = (value,) if isinstance(value, INTEGERS) else tuple(value)
    if len(values) == 1:
        return values * spatial
    if len(values) != spatial:
        number = {2: "two", 3: "three"}[spatial]
        raise RuntimeError(
            f"{name}: {what} must {must} a single int, or a tuple of {number} ints"
        )
    return values


PUBLIC = [
    *names("gv.f F.f", avg_pool1d, max_pool1d, max_pool2d, max_pool3d),
    *names("F.f", avg_pool2d, avg_pool3d),
]
