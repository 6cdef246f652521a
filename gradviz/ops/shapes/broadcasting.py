"""Elements seen several times, without a copy; and the sum that undoes it."""

from collections.abc import Sequence

import numpy as np

from gradviz.backends.base import Array
from gradviz.ops.conventions.dimensions import INTEGERS, Shape, kept_shape
from gradviz.ops.conventions.dtype_names import scalar_type_name
from gradviz.ops.conventions.memory_layout import in_c_order
from gradviz.ops.conventions.refusal import check_list
from gradviz.ops.dispatch.differentiable import differentiable
from gradviz.ops.dispatch.public import names
from gradviz.ops.shapes.shape import reshape, view
from gradviz.ops.shapes.unit_dimensions import unsqueeze
from gradviz.ops.variables.variable import Value, Variable, raw


@differentiable(
    "ExpandBackward0", view=True, x=lambda grad, x_shape: sum_to(grad, x_shape)
)
def broadcast_to(x: Array, shape: Shape) -> Array:
    """`expand` without its checks and its -1."""
    return np.broadcast_to(x, shape)


@differentiable("SumBackward1", x=lambda grad, x_shape: broadcast_to(grad, x_shape))
def _sum_keeping(x: Array, dims: Shape) -> Array:
    return in_c_order(x.sum(axis=dims, keepdims=True))


def expand(input: Value, size: Sequence[int]) -> Value:
    """`input` repeated to a larger shape without copying; -1 leaves a length as it is.

    Raises:
        RuntimeError: A length other than 1 would change, or there are too few.
    """
    known = raw(input).shape
    missing = len(size) - len(known)
    if missing < 0:
        raise RuntimeError(
            f"expand({_described(raw(input))}, size={list(size)}): the number of "
            f"sizes provided ({len(size)}) must be greater or equal to the number of "
            f"dimensions in the tensor ({len(known)})"
        )
    wanted = [
        known[i - missing] if length == -1 and i >= missing else length
        for i, length in enumerate(size)
    ]
    for i, length in enumerate(wanted):
        if length < 0:
            raise RuntimeError(
                f"The expanded size of the tensor ({length}) isn't allowed in a "
                f"leading, non-existing dimension {i}"
            )
        if i >= missing and known[i - missing] not in (1, length):
            raise RuntimeError(
                f"The expanded size of the tensor ({length}) must match the existing "
                f"size ({known[i - missing]}) at non-singleton dimension {i}.  "
                f"Target sizes: {list(size)}.  Tensor sizes: {list(known)}"
            )
    return broadcast_to(input, tuple(wanted))


def broadcast_tensors(*tensors: Value) -> tuple[Value, ...]:
    """Tensors expanded to the shape that they have together.

    Raises:
        RuntimeError: They have none.
    """
    if len(tensors) == 1 and isinstance(tensors[0], (list, tuple)):
        tensors = tuple(tensors[0])
    check_list(tensors)
    shape: Shape = ()
    for one in tensors:
        shape = common_shape(shape, raw(one).shape)
    return tuple(
        one if raw(one).shape == shape else broadcast_to(one, shape) for one in tensors
    )


def broadcast_shapes(*shapes: Sequence[int] | int) -> Shape:
    """Return the common shape of arrays of these shapes.

    Raises:
        RuntimeError: Two lengths differ, and neither is 1.
    """
    known = [
        (shape,) if isinstance(shape, INTEGERS) else tuple(shape) for shape in shapes
    ]
    try:
        return np.broadcast_shapes(*known)
    except ValueError:
        raise RuntimeError(
            "Shape mismatch: objects cannot be broadcast to a single shape"
        ) from None


def common_shape(a: Shape, b: Shape) -> Shape:
    """Return the common shape of two arrays of these shapes.

    Raises:
        RuntimeError: Two lengths differ, and neither is 1.
    """
    ndim = max(len(a), len(b))
    for from_end, (one, other) in enumerate(
        zip(reversed(a), reversed(b), strict=False), 1
    ):
        if one != other and 1 not in (one, other):
            raise RuntimeError(
                f"The size of tensor a ({one}) must match the size of tensor b "
                f"({other}) at non-singleton dimension {ndim - from_end}"
            )
    return np.broadcast_shapes(a, b)


def sum_to(x: Value, shape: Shape) -> Value:
    """`x` summed to a shape from which broadcasting leads back to its own."""
    known = raw(x).shape
    if known == shape:
        return x
    added = len(known) - len(shape)
    dims = tuple(
        i
        for i, size in enumerate(known)
        if i < added or (shape[i - added] == 1 and size != 1)
    )
    summed = _sum_keeping(x, dims) if dims else x
    return summed if len(known) == len(shape) else view(summed, shape)


def sum_to_size(x: Value, shape: Shape) -> Value:
    """`sum_to` a shape that users give: the method ``sum_to_size``.

    Raises:
        RuntimeError: Broadcasting leads from there to no tensor of the shape of `x`.
    """
    known = raw(x).shape
    tail = known[len(known) - len(shape) :]
    fits = len(shape) <= len(known) and all(
        wanted in (1, size) for wanted, size in zip(shape, tail, strict=True)
    )
    if not fits:
        raise RuntimeError(
            f"size {{{list(shape)}}} is not expandable to size {{{list(known)}}}."
        )
    return sum_to(x, shape)


def restored(reduced: Value, shape: Shape, dims: Shape) -> Value:
    """Return a reduction of `dims` of `shape`, with the dimensions it lost."""
    wanted = kept_shape(shape, dims)
    if raw(reduced).shape == wanted:
        return reduced
    if not isinstance(reduced, Variable):
        return reshape(reduced, wanted)
    for dim in sorted(dims):
        reduced = unsqueeze(reduced, dim)
    return reduced


def spread(reduced: Value, shape: Shape, dims: Shape) -> Value:
    """Return a reduction of `dims` of `shape`, repeated to that shape again."""
    return broadcast_to(restored(reduced, shape, dims), shape)


def _described(array: Array) -> str:
    return f"torch.{scalar_type_name(array.dtype)}Tensor{{{list(array.shape)}}}"


PUBLIC = [*names("gv.f", broadcast_shapes, broadcast_tensors, broadcast_to=expand)]
