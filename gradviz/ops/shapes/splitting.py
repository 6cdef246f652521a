"""One tensor taken apart along a dimension: views of it, all of them."""

from collections.abc import Callable, Sequence
from functools import wraps
from typing import TypeAlias

import numpy as np

from gradviz.backends.base import Array
from gradviz.engine.graph.protocols import Gradient
from gradviz.ops.conventions.dimensions import INTEGERS, Shape, at, wrap_dim
from gradviz.ops.dispatch.differentiable import differentiable
from gradviz.ops.dispatch.public import names
from gradviz.ops.shapes.joining import cat, stack
from gradviz.ops.shapes.slicing import slice_part
from gradviz.ops.variables.variable import Value, Variable, raw

Parts = tuple[Array, ...]
Splitting: TypeAlias = Callable[..., tuple[Value, ...]]


def _joined(grads: Sequence[Gradient], dim: int) -> Gradient:
    return cat(grads, dim)


def _cut(x: Array, sizes: Shape, dim: int) -> Parts:
    parts = []
    stop = 0
    for size in sizes:
        start, stop = stop, stop + size
        parts.append(x[at(dim, slice(start, stop))])
    return tuple(parts)


_split = differentiable(
    "SplitBackward0",
    view=True,
    zeros=True,
    x=_joined,
)(_cut)
_split_with_sizes = differentiable(
    "SplitWithSizesBackward0",
    view=True,
    zeros=True,
    x=_joined,
)(_cut)
_unsafe_split = differentiable("UnsafeSplitBackward0", zeros=True, x=_joined)(_cut)
_unsafe_split_with_sizes = differentiable(
    "UnsafeSplitWithSizesBackward0",
    zeros=True,
    x=_joined,
)(_cut)


@differentiable(
    "UnbindBackward0", view=True, zeros=True, x=lambda grads, dim: stack(grads, dim)
)
def _unbind(x: Array, dim: int) -> Parts:
    return tuple([x[at(dim, i)] for i in range(x.shape[dim])])


def split(
    input: Value, split_size: int | Sequence[int], dim: int = 0
) -> tuple[Value, ...]:
    """Parts of a length, the last of which may be shorter; or of several lengths.

    Raises:
        IndexError: There is no such dimension.
        RuntimeError: The lengths are negative, or their sum is not the dimension's.
    """
    if not isinstance(split_size, INTEGERS):
        return split_with_sizes(input, split_size, dim)
    dim, length = _dim_to_split("split", input, dim)
    return _split(input, _sizes(length, split_size), dim)


def split_with_sizes(
    input: Value, split_sizes: Sequence[int], dim: int = 0
) -> tuple[Value, ...]:
    """Parts of these lengths.

    Raises:
        IndexError: There is no such dimension.
        RuntimeError: The lengths are negative, or their sum is not the dimension's.
    """
    dim, length = _dim_to_split("split", input, dim)
    sizes = _checked_sizes(split_sizes, length, dim)
    return _split_with_sizes(input, sizes, dim)


def unsafe_split(input: Value, split_size: int, dim: int = 0) -> tuple[Value, ...]:
    """Split into parts that may be changed in place: they count as no views."""
    dim, length = _dim_to_split("split", input, dim)
    return _unsafe_split(input, _sizes(length, split_size), dim)


def unsafe_split_with_sizes(
    input: Value, split_sizes: Sequence[int], dim: int = 0
) -> tuple[Value, ...]:
    """Split like `split_with_sizes` into parts that count as no views."""
    dim, length = _dim_to_split("split", input, dim)
    sizes = _checked_sizes(split_sizes, length, dim)
    return _unsafe_split_with_sizes(input, sizes, dim)


def chunk(input: Value, chunks: int, dim: int = 0) -> tuple[Value, ...]:
    """At most so many parts of one length, the last of which may be shorter.

    Raises:
        IndexError: There is no such dimension.
        RuntimeError: The number is not positive.
    """
    return _chunks(input, chunks, dim, is_view=True)


def unsafe_chunk(input: Value, chunks: int, dim: int = 0) -> tuple[Value, ...]:
    """Split like `chunk` into parts that count as no views."""
    return _chunks(input, chunks, dim, is_view=False)


def _chunks(input: Value, chunks: int, dim: int, *, is_view: bool) -> tuple[Value, ...]:
    dim, length = _dim_to_split("chunk", input, dim)
    if chunks <= 0:
        raise RuntimeError(
            f"chunk expects `chunks` to be greater than 0, got: {chunks}"
        )
    size = -(-length // chunks)
    if size == 0:  # nothing to divide, but as many parts of it as asked for
        split_empty = _split_with_sizes if is_view else _unsafe_split_with_sizes
        return split_empty(input, (0,) * chunks, dim)
    return (_split if is_view else _unsafe_split)(input, _sizes(length, size), dim)


def _dim_to_split(name: str, x: Value, dim: int) -> tuple[int, int]:
    shape = raw(x).shape
    if not shape:
        raise RuntimeError(f"{name} expects at least a 1-dimensional tensor")
    dim = wrap_dim(dim, len(shape))
    return dim, shape[dim]


def _sizes(length: int, size: int) -> Shape:
    """Lengths of parts of `size`, the last of which may be shorter."""
    if size < 0:
        raise RuntimeError(
            f"split expects split_size be non-negative, but got split_size={size}"
        )
    if size == 0:
        if length:
            raise RuntimeError(
                f"split_size can only be 0 if dimension size is 0, but got dimension "
                f"size of {length}"
            )
        return (0,)
    whole, rest = divmod(length, size)
    return (size,) * whole + ((rest,) if rest or not whole else ())


def _checked_sizes(sizes: Sequence[int], length: int, dim: int) -> Shape:
    for size in sizes:
        if size < 0:
            raise RuntimeError(
                f"split_with_sizes expects split_sizes have only non-negative entries, "
                f"but got split_sizes={list(sizes)}"
            )
    if sum(sizes) != length:
        raise RuntimeError(
            f"split_with_sizes expects split_sizes to sum exactly to {length} (input "
            f"tensor's size at dimension {dim}), but got split_sizes={list(sizes)}"
        )
    return tuple(sizes)


def unbind(input: Value, dim: int = 0) -> tuple[Value, ...]:
    """The entries of a dimension.

    Raises:
        IndexError: There is no such dimension.
    """
    shape = raw(input).shape
    if not shape:
        raise IndexError("Dimension specified as 0 but tensor has no dimensions")
    return _unbind(input, wrap_dim(dim, len(shape)))


def tensor_split(
    input: Value,
    indices_or_sections: int | Sequence[int] | Variable | None = None,
    dim: int = 0,
    *,
    indices: Sequence[int] | Variable | None = None,
    sections: int | None = None,
) -> tuple[Value, ...]:
    """Return so many parts as equal as can be, or parts that end at certain indices.

    Args:
        input: Tensor that is split.
        indices_or_sections: The number of parts, or where they end.
        dim: Dimension to split along.
        indices: Indices at which they end, by name.
        sections: The number of parts, by name.

    Raises:
        IndexError: There is no such dimension.
        RuntimeError: The number is not positive.
    """
    shape = raw(input).shape
    if not shape:
        raise RuntimeError(
            "tensor_split expected at least a 1-dimensional tensor, but got a tensor "
            "with 0 dims"
        )
    dim = wrap_dim(dim, len(shape))
    length = shape[dim]
    given = _listed(_only("tensor_split", indices_or_sections, indices, sections))
    if isinstance(given, INTEGERS):
        if given <= 0:
            raise RuntimeError(f"number of sections must be larger than 0, got {given}")
        least, longer = divmod(length, given)
        ends = np.cumsum([least + (i < longer) for i in range(given)]).tolist()
    else:
        ends = [*given, length]
    starts = [0, *ends[:-1]]
    return tuple(
        slice_part(input, dim, _within(start, end, length))
        for start, end in zip(starts, ends, strict=True)
    )


def splitting_method(function: Splitting) -> Splitting:
    """`hsplit` and its like as methods, which take indices one by one, too."""

    @wraps(function)
    def method(self: Value, *parts: Value, **named: Value) -> tuple[Value, ...]:
        return function(self, *((parts,) if len(parts) > 1 else parts), **named)

    return method


def _only(function: str, *alternatives: Value) -> Value:
    """The one of several arguments that was given."""
    given = [one for one in alternatives if one is not None]
    if len(given) != 1:
        raise TypeError(
            f"{function}() takes one of indices_or_sections, indices and sections, but "
            f"{len(given)} were given"
        )
    return given[0]


def _listed(indices_or_sections: Value) -> int | list[int]:
    given = raw(indices_or_sections)
    if hasattr(given, "tolist"):
        listed: int | list[int] = given.tolist()
        return listed
    return int(given) if isinstance(given, INTEGERS) else list(given)


def _within(start: int, end: int, length: int) -> slice:
    first, last, step = slice(start, end).indices(length)
    return slice(first, max(first, last), step)


def hsplit(
    input: Value,
    indices_or_sections: int | Sequence[int] | None = None,
    *,
    indices: Sequence[int] | None = None,
    sections: int | None = None,
) -> tuple[Value, ...]:
    """`tensor_split` along the second dimension; of a vector along its only one.

    Raises:
        RuntimeError: There is no dimension, or the parts are not equal.
    """
    parts = _only("hsplit", indices_or_sections, indices, sections)
    return _split_equally("hsplit", input, parts, 1 if raw(input).ndim > 1 else 0, 1)


def vsplit(
    input: Value,
    indices_or_sections: int | Sequence[int] | None = None,
    *,
    indices: Sequence[int] | None = None,
    sections: int | None = None,
) -> tuple[Value, ...]:
    """`tensor_split` along the first of at least two dimensions.

    Raises:
        RuntimeError: There are less, or the parts are not equal.
    """
    parts = _only("vsplit", indices_or_sections, indices, sections)
    return _split_equally("vsplit", input, parts, 0, 2)


def dsplit(
    input: Value,
    indices_or_sections: int | Sequence[int] | None = None,
    *,
    indices: Sequence[int] | None = None,
    sections: int | None = None,
) -> tuple[Value, ...]:
    """`tensor_split` along the third dimension.

    Raises:
        RuntimeError: There is none, or the parts are not equal.
    """
    parts = _only("dsplit", indices_or_sections, indices, sections)
    return _split_equally("dsplit", input, parts, 2, 3)


def _split_equally(
    name: str, x: Value, indices_or_sections: Value, dim: int, least: int
) -> tuple[Value, ...]:
    shape = raw(x).shape
    if len(shape) < least:
        raise RuntimeError(
            f"torch.{name} requires a tensor with at least {least} dimension, but got "
            f"a tensor with {len(shape)} dimensions!"
        )
    if isinstance(indices_or_sections, INTEGERS) and (
        indices_or_sections == 0 or shape[dim] % indices_or_sections
    ):
        raise RuntimeError(
            f"torch.{name} attempted to split along dimension {dim}, but the size of "
            f"the dimension {shape[dim]} is not divisible by the split_size "
            f"{indices_or_sections}!"
        )
    return tensor_split(x, indices_or_sections, dim)


PUBLIC = [
    *names("gv.f", dsplit, hsplit, vsplit),
    *names("gv.f x.f", chunk, split, split_with_sizes, tensor_split, unbind),
    *names("gv.f x.f", unsafe_chunk, unsafe_split, unsafe_split_with_sizes),
    *names("x.f", dsplit=splitting_method(dsplit), hsplit=splitting_method(hsplit)),
    *names("x.f", vsplit=splitting_method(vsplit)),
]
