"""Arrays in pinned memory: the program's reads and writes of them are reported.

A device copies from pinned memory, or into it, while the program goes on. Whether the
program leaves it alone until then can be told only by who sees what it does there.

Note [Watched arrays]
~~~~~~~~~~~~~~~~~~~~~
A CPU op, ``tensor.numpy()`` and everything a program does with its result end in a
NumPy array. So arrays in pinned memory have a class of their own, and no other array
has to be watched: watching costs nothing where no memory is pinned. The class
intercepts NumPy's calls (NEP 13 and 18) and the methods that look at elements, runs
them on plain arrays, and reports the reads and writes. A view of the memory is of the
class again, and counts as unread; any other result is a plain array.

NumPy does not report its C code's accesses to such an array: ``plain[:] = array``,
``np.array(array)``, ``np.asarray(array)``, `memoryview`. But a caller of
``tensor.numpy()`` wants to read it. So an array that was handed to a program
(`handed_out`), and is dropped without any observed access, counts as read when it is
dropped, unless the program only asked for its shape or the like. That needs the count
of references, which from Python 3.14 on is the same whether a local variable has the
array or nothing has: there it counts as read.
"""

import sys
from collections.abc import Callable, Iterable, Mapping
from typing import Any, Final

import numpy as np

from gradviz.backends.arrays.numpy_functions import FILLS, IN_PLACE, METADATA
from gradviz.backends.device import CPU, Device
from gradviz.backends.reports import layout_at, memory_ids
from gradviz.trace import probe

#: Attributes that look at none.
_SHAPE: Final = ("dtype", "itemsize", "nbytes", "ndim", "shape", "size", "strides")

#: Methods that look at elements, or make a view if they can.
_READING: Final = (
    *("all", "any", "argmax", "argmin", "argpartition", "argsort", "astype", "choose"),
    *("clip", "compress", "conj", "conjugate", "copy", "cumprod", "cumsum", "dot"),
    *("dump", "dumps", "flatten", "max", "mean", "min", "nonzero", "prod", "ravel"),
    *("repeat", "reshape", "round", "searchsorted", "std", "sum", "tobytes"),
    *("tofile", "tolist", "trace", "var", "__bool__", "__complex__", "__copy__"),
    *("__deepcopy__", "__dlpack__", "__float__", "__format__", "__index__"),
    *("__int__", "__reduce__", "__reduce_ex__", "__repr__", "__str__"),
)

#: Methods that change elements.
_WRITING: Final = ("byteswap", "fill", "partition", "put", "setfield", "sort")


#: An index with more parts than that is taken for all from its first to its last.
_MANY_PARTS: Final = 64


class HostMemory:
    """An allocation of pinned memory, as reports have it; lives as long as its arrays.

    Attributes:
        id: Unique in the process, among those of devices as well.
        address: Of the first byte.
        end: Of the byte after the last.
    """

    __slots__ = ("address", "end", "id")

    def __init__(self, address: int, size_bytes: int) -> None:
        self.id = next(memory_ids)
        self.address = address
        self.end = address + size_bytes

    def __del__(self) -> None:
        if listener := probe.current:
            listener.memory_freed(self.id, "")


class PinnedArray(np.ndarray):
    """An array in pinned memory; see Note [Watched arrays]."""

    __slots__ = ("_is_untouched", "_memory")

    #: None for an array that NumPy has put elsewhere.
    _memory: HostMemory | None
    #: True while a program that got it, or its base, has done nothing with it.
    _is_untouched: bool

    def __array_finalize__(self, source: object) -> None:
        self._memory, self._is_untouched = None, False
        if isinstance(source, PinnedArray) and (memory := source._memory) is not None:
            if memory.address <= _address(self) < memory.end:
                self._memory, self._is_untouched = memory, source._is_untouched
            source._is_untouched = False

    def __del__(self) -> None:
        if self._is_untouched:
            _report(self, writes=False)

    @property
    def device(self) -> Device:  # type: ignore[override]  # NumPy says "cpu"
        """The CPU."""
        return CPU

    def place(self) -> tuple[int, str] | None:
        """The memory, and which bytes of it, as reports have them; None for none."""
        memory = self._memory
        if memory is None or not self.size:
            return None
        return memory.id, layout_at(_address(self) - memory.address, self)

    def __array_ufunc__(
        self, ufunc: np.ufunc, method: str, *inputs: Any, **kwargs: Any
    ) -> Any:
        changed = inputs[:1] if method == "at" else ()
        return _called(getattr(ufunc, method), inputs, kwargs, changed)

    def __array_function__(
        self,
        func: Callable[..., Any],
        types: Iterable[Any],
        args: Any,
        kwargs: Any,
    ) -> Any:
        del types
        if func in METADATA or func in FILLS:
            self._is_untouched = False
            return func(*map(_plain, args), **_plain_values(kwargs))
        if func is np.take and args and isinstance(args[0], PinnedArray):
            return args[0].take(*args[1:], **kwargs)
        return _called(func, args, kwargs, args[:1] if func in IN_PLACE else ())

    def __getitem__(self, index: Any) -> Any:
        found = super().__getitem__(_plain(index))
        for array in _pinned_in((index,)):
            _report(array, writes=False)
        if not isinstance(found, PinnedArray):
            self._report_at(index, writes=False)
        elif found._memory is None:  # a copy, or nothing
            self._report_at(index, writes=False)
            return found.view(np.ndarray)
        return found

    def view(self, *args: Any, **kwargs: Any) -> Any:
        """The same memory, as NumPy's method of that name.

        As another dtype by way of a plain array: NumPy 2.5 gives that of a subclass by
        setting its dtype, and warns of itself.
        """
        if kwargs or len(args) != 1 or _is_array_type(args[0]):
            return super().view(*args, **kwargs)
        found = super().view(np.ndarray).view(args[0]).view(PinnedArray)
        found._memory, found._is_untouched = self._memory, self._is_untouched
        self._is_untouched = False
        return found

    def __setitem__(self, index: Any, value: Any) -> None:
        _plain(self)[_plain(index)] = _plain(value)
        for array in _pinned_in((index, value)):
            _report(array, writes=False)
        self._report_at(index, writes=True)

    def item(self, *args: Any) -> Any:
        """An element as a Python number; the only one if none is named."""
        found = self.view(np.ndarray).item(*args)
        at = args[0] if len(args) == 1 else args
        if isinstance(at, int | np.integer):
            at = np.unravel_index(at, self.shape)
        self._report_at(at, writes=False)
        return found

    def take(
        self, indices: Any, axis: Any = None, out: Any = None, mode: Any = "raise"
    ) -> Any:
        """See `numpy.ndarray.take`."""
        options = {"axis": axis, "out": out, "mode": mode}
        found = _called(np.ndarray.take, (_plain(self), indices), options)
        whole = self if axis is not None else self.reshape(-1)
        before = (slice(None),) * (axis % self.ndim if axis else 0)
        if mode == "raise" and isinstance(whole, PinnedArray):
            whole._report_at((*before, indices), writes=False)
        else:
            _report(self, writes=False)
        return found

    @property
    def flat(self) -> Any:
        """The elements in C order; counts as a read and a write of all."""
        _report(self, writes=True)
        return self.view(np.ndarray).flat

    def _report_at(self, index: Any, *, writes: bool) -> None:
        """Report a read, or a write, of the elements at an index."""
        self._is_untouched = False
        if probe.current and self._memory is not None:
            for part in _parts(self, _plain(index)):
                _report(part, writes=writes)


def pinned_array(
    memory: Any, shape: tuple[int, ...], dtype: np.dtype[Any]
) -> PinnedArray:
    """An array in C order at the beginning of pinned memory.

    Args:
        memory: Has a buffer.
        shape: Of the array.
        dtype: Of the elements.
    """
    array = PinnedArray(shape, dtype, buffer=memory)
    array._memory = HostMemory(_address(array), max(array.nbytes, 1))
    return array


def handed_out(array: np.ndarray) -> np.ndarray:
    """An array of the host, for a program that asked for it."""
    if not isinstance(array, PinnedArray):
        return array
    view = array.view()
    view._is_untouched = True
    return view


def _is_array_type(kind: object) -> bool:
    return isinstance(kind, type) and issubclass(kind, np.ndarray)


def read_at_once(array: np.ndarray) -> np.ndarray:
    """An array of the host that goes to NumPy, which takes its elements."""
    if isinstance(array, PinnedArray):
        _report(array, writes=False)
    return array


def reads(array: PinnedArray) -> None:
    """Report a read of all elements by code that does not report itself."""
    _report(array, writes=False)


def _parts(array: Any, index: Any) -> list[PinnedArray]:
    """Return views of the elements at an index."""
    index = index if isinstance(index, tuple) else (index,)
    if not any(one is Ellipsis for one in index):
        index = (*index, Ellipsis)  # a view, of an element too
    take: Any = np.ndarray.__getitem__
    found = take(array, index)
    if not found.size or found._memory is not None:
        return [found]
    named: Any = np.zeros(array.shape, bool)
    named[index] = True
    if named.all():
        return [array]
    if array.flags.c_contiguous:
        array, named = array.reshape(-1), named.reshape(-1)
    else:  # rows of which something is named
        named = named.reshape(len(array), -1).any(1)
    places = np.flatnonzero(named)
    breaks = np.flatnonzero(np.diff(places) != 1) + 1
    runs = [places] if len(breaks) >= _MANY_PARTS else np.split(places, breaks)
    return [take(array, slice(run[0], run[-1] + 1)) for run in runs]


def assign(target: Any, index: Any, values: Any) -> None:
    """``target[index] = values``, for arrays of any library that an op has made.

    NumPy asks the array on the left only, which does not tell what is read.
    """
    target[index] = values
    if type(target) is np.ndarray:
        for array in _pinned_in((index, values)):
            reads(array)


def _called(
    function: Callable[..., Any],
    args: tuple[Any, ...],
    kwargs: Mapping[str, Any],
    changed: Iterable[Any] = (),
) -> Any:
    """Call a function on plain arrays in place of pinned ones, and report it."""
    out = kwargs.get("out")
    result = function(*map(_plain, args), **_plain_values(kwargs))
    outs = out if isinstance(out, tuple) else (out,)
    written = [*_pinned_in(outs), *_pinned_in(changed)]
    values = (value for name, value in kwargs.items() if name != "out")
    read = [
        array
        for array in _pinned_in((*args, *values))
        if all(array is not other for other in written)
    ]
    if out is not None and any(one is not None for one in outs):
        result = out[0] if isinstance(out, tuple) and len(out) == 1 else out
    elif _is_view(result, read):
        view = _watched(result, read)
        for array in read:
            array._is_untouched = False
        return view
    for array in read:
        _report(array, writes=False)
    for array in written:
        _report(array, writes=True)
    return result


def _is_view(result: Any, arrays: Iterable[PinnedArray]) -> bool:
    """Return whether all results of a function share the arguments' memory."""
    if isinstance(result, list | tuple):
        return bool(result) and all(_is_view(one, arrays) for one in result)
    return isinstance(result, np.ndarray) and _memory_of(result, arrays) is not None


def _watched(result: Any, arrays: Iterable[PinnedArray]) -> Any:
    if isinstance(result, list | tuple):
        return type(result)(_watched(one, arrays) for one in result)
    view = result.view(PinnedArray)
    view._memory = _memory_of(result, arrays)
    view._is_untouched = any(one._is_untouched for one in arrays)
    return view


def _memory_of(array: np.ndarray, arrays: Iterable[PinnedArray]) -> HostMemory | None:
    address = _address(array)
    for one in arrays:
        memory = one._memory
        if memory is not None and memory.address <= address < memory.end:
            return memory
    return None


def _report(array: PinnedArray, *, writes: bool) -> None:
    array._is_untouched = False
    if (listener := probe.current) and (place := array.place()):
        listener.host_accessed(*place, writes)


def _address(array: np.ndarray) -> int:
    address: int = array.__array_interface__["data"][0]
    return address


def _plain(value: Any) -> Any:
    """The value with plain arrays in place of pinned ones, in lists and tuples too."""
    if isinstance(value, PinnedArray):
        return value.view(np.ndarray)
    if type(value) is tuple or type(value) is list:
        return type(value)(map(_plain, value))
    return value


def _plain_values(kwargs: Mapping[str, Any]) -> dict[str, Any]:
    return {name: _plain(value) for name, value in kwargs.items()}


def _pinned_in(values: Iterable[Any]) -> list[PinnedArray]:
    found = []
    for value in values:
        if isinstance(value, PinnedArray):
            found.append(value)
        elif type(value) is tuple or type(value) is list:
            found += _pinned_in(value)
    return found


def _method(name: str, *, writes: bool) -> Callable[..., Any]:
    function = getattr(np.ndarray, name)

    def call(self: PinnedArray, *args: Any, **kwargs: Any) -> Any:
        return _called(function, (self, *args), kwargs, (self,) if writes else ())

    call.__name__ = call.__qualname__ = name
    call.__doc__ = f"See `numpy.ndarray.{name}`."
    return call


def _attribute(name: str) -> Any:
    own = getattr(np.ndarray, name)

    def look(self: PinnedArray) -> Any:
        if self._is_untouched and sys.getrefcount(self) <= _REFERENCES_IF_DROPPED:
            self._is_untouched = False
        return own.__get__(self)

    return property(look, own.__set__, doc=f"See `numpy.ndarray.{name}`.")


class _Counted:
    """Counts the references to an object during an attribute's access."""

    @property
    def references(self) -> int:
        """With those that asking takes."""
        return sys.getrefcount(self)


def _references_if_dropped() -> int:
    """Return the reference count of a dropped result; 0 if it cannot be told.

    It cannot where a local variable is used without a reference of its own.
    """
    kept = _Counted()
    dropped = _Counted().references
    return dropped if dropped < kept.references else 0


_REFERENCES_IF_DROPPED: Final = _references_if_dropped()

for _name in _SHAPE:
    setattr(PinnedArray, _name, _attribute(_name))
for _name in _READING:
    setattr(PinnedArray, _name, _method(_name, writes=False))
for _name in _WRITING:
    setattr(PinnedArray, _name, _method(_name, writes=True))
