"""Indices of arrays on CUDA devices: a kernel finds those out of range.

CuPy wraps such an index around, without a word. So a small kernel looks at indices
before they are used, and notes in the device's memory what it has found; the host reads
the note when a program waits for the stream anyway, and raises.
"""

from collections.abc import Callable, Iterator
from typing import Any, Final, TypeAlias

import numpy as np

from gradviz.backends.arrays.wrapped_array import _index, _index_put
from gradviz.backends.protocols import StreamLike

#: CuPy's kernel that notes a number if an index is out of range: its arguments, its
#: result, what it does for each index, and its name.
OUTSIDE: Final = (
    "S index, int64 size, int32 number",
    "raw int32 found",
    "if ((long long)index < -size || (long long)index >= size) found[0] = number",
    "gradviz_outside",
)


class IndexChecks:
    """Index errors that the kernels have noted.

    Args:
        cupy: CuPy.
    """

    def __init__(self, cupy: Any) -> None:
        self._cupy = cupy
        self._kernel: Any = None
        #: Of functions, from 1 on; entries are never removed.
        self._numbers: dict[str, int] = {}
        #: By index of a device and number of a stream: one number in its memory, not 0
        #: if an index was out of range. Entries are never removed.
        self._notes: dict[tuple[int, int], Any] = {}
        #: Indices that a kernel has checked and the host has not read since. A kernel
        #: is launched before it is noted here, and the host forgets it before it reads:
        #: nothing is missed.
        self._unread: set[tuple[int, int]] = set()

    def look(self, stream: StreamLike, name: str, index: Any, size: int) -> None:
        """Have the device look at indices; in a launch on that stream.

        Args:
            stream: The current one of the array's device.
            name: Of the function that uses them.
            index: CuPy's array, or one number.
            size: Of the dimension.

        Raises:
            IndexError: The one number is out of range.
        """
        if isinstance(index, int | np.integer):
            if not -size <= index < size:
                raise IndexError(
                    f"index {index} is out of bounds for a dimension of size {size}"
                )
            return
        if not index.size:
            return
        if self._kernel is None:
            self._kernel = self._cupy.ElementwiseKernel(*OUTSIDE)
        key = stream.device.number, stream.stream_id
        note = self._notes.get(key)
        if note is None:
            note = self._notes.setdefault(key, self._cupy.zeros(1, np.int32))
        number = self._numbers.setdefault(name, len(self._numbers) + 1)
        self._kernel(index, size, number, note)
        self._unread.add(key)

    def unread(self, device: int) -> list[int]:
        """The numbers of a device's streams that have something unread."""
        return [stream for number, stream in list(self._unread) if number == device]

    def tell(self, stream: StreamLike, cupy_stream: Any) -> None:
        """Raise if an index was out of range, now that a stream was waited for.

        Args:
            stream: Stream that was waited for.
            cupy_stream: CuPy's.

        Raises:
            IndexError: One was.
        """
        key = stream.device.number, stream.stream_id
        if key not in self._unread:
            return
        self._unread.discard(key)
        note = self._notes[key]
        found = int(note.get(stream=cupy_stream)[0])
        if not found:
            return
        note.data.memset_async(0, note.nbytes, cupy_stream)
        name = next(name for name, one in self._numbers.items() if one == found)
        raise IndexError(
            f"index out of range in {name} on {stream}: a kernel found it, and it is "
            f"told now that the program waits; what was computed with it is wrong. "
            f"gv.cuda.synchronize() after each suspect shows which it was"
        )


Found: TypeAlias = Iterator[tuple[Any, int]]


def indices_in(function: Callable[..., Any], args: Any, kwargs: Any) -> Found:
    """The indices that a function is to use, each with the size of its dimension."""
    find = _FINDERS.get(function)
    if find is None and getattr(function, "__name__", "") == "at":  # of a ufunc
        find = _in_subscript
    return iter(()) if find is None else find(*args, **kwargs)


def _in_subscript(array: Any, index: Any, *_: Any) -> Found:
    entries = index if isinstance(index, tuple) else (index,)
    num_free = array.ndim - sum(map(_num_dims, entries))
    if num_free < 0:
        return  # too many indices: CuPy says so
    dim = 0
    for one in entries:
        if isinstance(one, type(array)) and one.dtype.kind in "iu":
            yield one, array.shape[dim]
        dim += num_free if one is Ellipsis else _num_dims(one)


def _num_dims(entry: Any) -> int:
    """Return how many dimensions a subscript's entry takes, unless an ellipsis."""
    if entry is None or entry is Ellipsis or isinstance(entry, bool | np.bool_):
        return 0
    is_mask = hasattr(entry, "dtype") and entry.dtype.kind == "b"
    return entry.ndim if is_mask else 1


def _in_take(array: Any, index: Any, axis: int | None = None, **_: Any) -> Found:
    yield index, array.size if axis is None else array.shape[axis]


def _along_axis(array: Any, index: Any, *rest: Any, **named: Any) -> Found:
    return _in_take(array, index, named.get("axis", rest[-1] if rest else -1))


_FINDERS: Final[dict[Callable[..., Any], Callable[..., Found]]] = {
    _index: _in_subscript,
    _index_put: _in_subscript,
    np.take: _in_take,
    np.take_along_axis: _along_axis,
    np.put_along_axis: _along_axis,
}
