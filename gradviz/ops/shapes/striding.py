"""Views that step through memory in their own way: sliding windows, any strides."""

from collections.abc import Sequence

import numpy as np
from numpy.lib.stride_tricks import sliding_window_view

from gradviz.backends.base import Array
from gradviz.ops.conventions.dimensions import Shape, at, wrap_dim
from gradviz.ops.dispatch.differentiable import differentiable
from gradviz.ops.dispatch.public import names
from gradviz.ops.shapes.view_in_place import becoming
from gradviz.ops.variables.variable import Value, raw

# --- sliding windows ------------------------------------------------------------------


@differentiable(
    "UnfoldBackward0",
    view=True,
    x=lambda grad, x_shape, dim, size, step: _unfold_backward(
        grad, x_shape, dim, size, step
    ),
)
def _unfold(x: Array, dim: int, size: int, step: int) -> Array:
    if not x.ndim:
        return x.reshape(1)[:size]
    windows = sliding_window_view(x, size, dim, writeable=True)
    return windows[at(dim, slice(None, None, step))]


@differentiable(
    "UnfoldBackwardBackward0",
    x=lambda grad, dim, size, step: _unfold(grad, dim, size, step),
)
def _unfold_backward(x: Array, shape: Shape, dim: int, size: int, step: int) -> Array:
    """Return the sum over all copies of each element in the windows."""
    result = np.zeros_like(x, shape=shape)
    if not shape:
        return result + x.sum()
    # One window position after the other: within one, no element is there twice.
    for offset in range(size):
        part = at(dim, slice(offset, offset + step * x.shape[dim], step))
        result[part] += x[..., offset]
    return result


def unfold(input: Value, dimension: int, size: int, step: int) -> Value:
    """Windows that slide along a dimension; a new last dimension goes through one.

    Args:
        input: Tensor that is looked at.
        dimension: Dimension along which the windows slide.
        size: Length of a window.
        step: Distance from one window to the next.

    Raises:
        IndexError: There is no such dimension.
        RuntimeError: The window is too long, or does not move.
    """
    shape = raw(input).shape
    dim = wrap_dim(dimension, len(shape))
    length = shape[dim] if shape else 1
    if size > length:
        raise RuntimeError(
            f"maximum size for tensor at dimension {dim} is {length} but size is {size}"
        )
    if size < 0:
        raise RuntimeError(f"size is {size} but must be >= 0")
    if step <= 0:
        raise RuntimeError(f"step is {step} but must be > 0")
    return _unfold(input, dim, size, step)


# --- any strides ----------------------------------------------------------------------


@differentiable(
    "AsStridedBackward0",
    view=True,
    x=lambda grad, x_shape, size, stride, offset: _as_strided_backward(
        grad, x_shape, _places(size, stride, offset)
    ),
)
def _as_strided(x: Array, size: Shape, stride: Shape, offset: int) -> Array:
    # Not numpy's function of this name, which knows host memory only: a window as long
    # as all inner dimensions slides along each dimension.
    x = x.reshape(-1)[offset:]
    if 0 in size:  # nothing is seen, wherever it is looked for
        return x[:0].reshape(size)
    for dim, (length, step) in enumerate(zip(size, stride, strict=True)):
        inner = zip(size[dim + 1 :], stride[dim + 1 :], strict=True)
        window = 1 + sum((n - 1) * s for n, s in inner)
        x = sliding_window_view(x, window, axis=-1, writeable=True)
        x = x[..., : (length - 1) * step + 1 : step or 1, :]
        if not step:
            x = np.broadcast_to(x, (*x.shape[:-2], length, window))
    return x[..., 0] if size else x[:1].reshape(())


def _places(size: Shape, stride: Shape, offset: int) -> np.ndarray:
    """Return the position of each element in the flattened input."""
    places = np.full(size, offset)
    for dim, (length, step) in enumerate(zip(size, stride, strict=True)):
        steps = np.arange(length) * step
        places += steps.reshape(-1, *(1,) * (len(size) - dim - 1))
    return places


@differentiable(
    "AsStridedBackward0",
    x=lambda grad, x_shape, places: _as_strided_backward(grad, x_shape, places),
)
def _taken(x: Array, places: np.ndarray) -> Array:
    return x.reshape(-1)[places]


@differentiable(
    "AsStridedBackwardBackward0", x=lambda grad, places: _taken(grad, places)
)
def _as_strided_backward(x: Array, shape: Shape, places: np.ndarray) -> Array:
    result = np.zeros_like(x, shape=shape, order="C")  # so that `reshape` is a view
    np.add.at(result.reshape(-1), places, x)
    return result


def as_strided(
    input: Value,
    size: Sequence[int],
    stride: Sequence[int],
    storage_offset: int | None = None,
) -> Value:
    """A view with any lengths and strides, counted in elements.

    Args:
        input: Tensor whose elements lie in C order.
        size: The lengths.
        stride: Number of elements in one step, for each dimension.
        storage_offset: Start of the view; the beginning if None.

    Raises:
        RuntimeError: The view would leave the tensor's memory, or the elements of
            `input` do not lie in C order.

    Differs: counts from the first element of `input`, not of the memory it views.
    """
    x, offset = raw(input), storage_offset or 0
    if len(size) != len(stride):
        raise RuntimeError("mismatch in length of strides and shape")
    if not x.flags.c_contiguous:
        raise RuntimeError(
            "as_strided of a tensor whose elements do not lie in C order is not "
            "supported: call contiguous() first"
        )
    if min(stride, default=0) < 0:
        raise RuntimeError(
            f"as_strided: Negative strides are not supported at the moment, got "
            f"strides: {list(stride)}"
        )
    last = offset + sum(
        (length - 1) * step for length, step in zip(size, stride, strict=True)
    )
    if 0 not in size and last >= x.size:
        raise RuntimeError(
            f"setStorage: sizes {list(size)}, strides {list(stride)}, storage offset "
            f"{offset}, and itemsize {x.dtype.itemsize} requiring a storage size of "
            f"{(last + 1) * x.dtype.itemsize} are out of bounds for storage of size "
            f"{x.nbytes}"
        )
    return _as_strided(input, tuple(size), tuple(stride), offset)


PUBLIC = [
    *names("gv.f x.f", as_strided, as_strided_=becoming(as_strided)),
    *names("x.f", unfold),
]
