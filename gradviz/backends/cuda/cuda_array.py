"""Arrays of CUDA devices: CuPy's, which answer NumPy's functions themselves.

Around each is a `CudaArray` that puts the work on the current stream of the right
device, has done on the host what CuPy cannot do, and tells who uses which memory.
"""

import warnings
from collections.abc import Callable
from typing import Any, Final

import numpy as np

from gradviz.backends.arrays.mixing import leaves
from gradviz.backends.arrays.wrapped_array import Flags, WrappedArray, mapped
from gradviz.backends.cuda.cuda_indices import indices_in
from gradviz.backends.cuda.cuda_memory import Memory
from gradviz.backends.device import Device
from gradviz.backends.reports import layout_at


class CudaArray(WrappedArray):
    """An array in the memory of a CUDA device.

    Attributes:
        raw: The array of CuPy.
        memory: Memory that it lies in.
        base: The array that it is a view of, None if it is none.
    """

    __slots__ = ("base", "memory")

    def __init__(
        self, raw: Any, memory: Memory, base: "CudaArray | None" = None
    ) -> None:
        super().__init__(raw)
        self.memory = memory
        self.base = base

    @property
    def device(self) -> Device:
        """Device of the array."""
        return self.memory.stream.device

    @property
    def T(self) -> "CudaArray":  # noqa: N802 - NumPy's name
        """The array with its dimensions reversed; no kernel is needed."""
        return self._view(self.raw.T)

    @property
    def flags(self) -> Flags:
        """Flags of the memory: ``owndata``, ``c_contiguous``, ..."""
        return Flags(self.raw.flags, owns=self.base is None)

    @property
    def __cuda_array_interface__(self) -> dict[str, Any]:
        """The memory, for other libraries on the same device."""
        return self.raw.__cuda_array_interface__

    def layout(self) -> str:
        """Return the bytes of memory used, in the form of `Probe.array_accessed`."""
        return layout_at(self.raw.data.ptr - self.memory.block.ptr, self.raw)

    def call(self, function: Callable[..., Any], /, *args: Any, **kwargs: Any) -> Any:
        """Call `function` on CuPy's arrays in its arguments; wrap its results."""
        owner, device = self.memory.owner, self.device
        begun = owner.begin(device)
        raws = [
            one.raw if type(one) is CudaArray else mapped(_raw, one) for one in args
        ]
        options = mapped(_raw, kwargs) if kwargs else kwargs
        for index, size in indices_in(function, raws, options):
            owner.look_at_index(device, _name(function), index, size)
        launch = owner.launch
        if getattr(function, "__module__", "") == "numpy.linalg":
            launch = owner.launch_algebra
        way = _OTHER_WAYS.get(function, function)
        try:
            result = launch(device, way, raws, options)
        except (TypeError, NotImplementedError) as error:
            return self._on_host(error, function, args, kwargs)
        is_new = isinstance(function, np.ufunc) and "out" not in kwargs
        # An array that is not new may be a view of one of these.
        known = [] if is_new else _arrays_in(args, kwargs)
        if type(result) is type(self.raw):
            result = self._wrapped(result, known)
        else:
            result = mapped(lambda value: self._wrapped(value, known), result)
        if begun:
            arrays = _arrays_in(args, kwargs)
            writes = _written(arrays, args, kwargs, result)
            reads = [one for one in arrays if all(one is not other for other in writes)]
            if writes:  # else it made views, and no kernel ran
                owner.report(begun, device, _name(function), reads, writes)
        return result

    def to_host(self) -> np.ndarray:
        """The elements in host memory; waits for them."""
        return self.memory.owner.download(self)

    def index_from(self, array: np.ndarray) -> "CudaArray":
        """An array of indices of the host's, brought to the device."""
        return self.memory.owner.upload(array, self.device)

    def _wrapped(self, value: Any, known: "list[CudaArray]") -> Any:
        """An array of CuPy as one of ours, perhaps a view of one in `known`."""
        if isinstance(value, np.ndarray | np.generic):
            host = np.asarray(value)
            if host.dtype.hasobject:  # numbers of Python's, from `np.frompyfunc`
                host = np.array(host.tolist())
            return self.memory.owner.upload(host, self.device)
        if type(value) is not type(self.raw):
            return value
        block = value.data.mem
        for array in known:
            if array.memory.block is block:
                return array._view(value)
        owner = self.memory.owner
        return CudaArray(value, Memory(owner, owner.stream(self.device), block))

    def _view(self, raw: Any) -> "CudaArray":
        return CudaArray(raw, self.memory, self if self.base is None else self.base)

    def _on_host(
        self, error: Exception, function: Callable[..., Any], args: Any, kwargs: Any
    ) -> Any:
        """Use NumPy where CuPy cannot; wrong arguments raise NumPy's errors."""
        host_args, host_kwargs = mapped(_hosted, args), mapped(_hosted, kwargs)
        result = function(*host_args, **host_kwargs)
        warnings.warn(
            f"CuPy cannot do {_name(function)} with these arguments ({error}): it is "
            f"done on the host, which waits for {self.device}",
            stacklevel=5,
        )
        if result is None:  # it works in place, on its first argument
            changed = zip(args[:1], host_args[:1], strict=True)
        else:
            outs = kwargs.get("out", ()), host_kwargs.get("out", ())
            changed = zip(*outs, strict=True)
        for array, host in changed:
            array[...] = self.memory.owner.upload(host, self.device)
        return mapped(lambda value: self._wrapped(value, []), result)


def _written(
    arrays: list[CudaArray], args: Any, kwargs: Any, result: Any
) -> list[CudaArray]:
    """Return the arrays that a call has written to: an argument, or new ones."""
    if result is None:  # it works in place, on its first argument
        return args[:1]
    outs = kwargs.get("out", ())
    known = {id(one.memory) for one in arrays}
    return [
        one
        for one in leaves((outs or result,))
        if isinstance(one, CudaArray) and (outs or id(one.memory) not in known)
    ]


def _arrays_in(args: Any, kwargs: Any) -> list[CudaArray]:
    values = leaves((args, tuple(kwargs.values())))
    return [one for one in values if isinstance(one, CudaArray)]


def _name(call: Callable[..., Any]) -> str:
    """Return the name of a function; for a ufunc's method, the ufunc's too."""
    owner = getattr(call, "__self__", None)
    name = getattr(call, "__name__", repr(call))
    if not isinstance(owner, np.ufunc):
        return name
    return owner.__name__ if name == "__call__" else f"{owner.__name__}.{name}"


def _raw(value: Any) -> Any:
    if isinstance(value, CudaArray):
        return value.raw
    # CuPy takes no array of the host, not even one without dimensions: but a number.
    return value[()] if isinstance(value, np.ndarray) and not value.ndim else value


def _hosted(value: Any) -> Any:
    return value.to_host() if isinstance(value, CudaArray) else value


def _max(array: Any, axis: Any = None, initial: Any = None, **kwargs: Any) -> Any:
    """Return `np.max` with an initial value, which CuPy's does not take."""
    if initial is None:
        return np.max(array, axis, **kwargs)
    if axis is None:
        array, axis = array.reshape(-1), 0
    edge = list(array.shape)
    edge[axis] = 1
    first = np.full_like(array, initial, shape=tuple(edge))
    return np.max(np.concatenate([first, array], axis), axis, **kwargs)


def _reduction(function: Callable[..., Any]) -> Callable[..., Any]:
    """A function as the ``reduce`` of a ufunc, which begins with the first axis."""

    def reduce(array: Any, axis: Any = 0, **kwargs: Any) -> Any:
        return function(array, axis=axis, **kwargs)

    return reduce


def _vecdot(x: Any, y: Any, axis: int = -1, out: Any = (None,)) -> Any:
    products = (np.conj(x) if x.dtype.kind == "c" else x) * y
    return np.sum(products, axis, dtype=products.dtype, out=out[0])


def _accumulation(ufunc: np.ufunc) -> Callable[..., Any]:
    """The ``accumulate`` of an associative ufunc, in as many calls as it has bits.

    After each, an element is that of twice as many of those before it.
    """

    def accumulate(array: Any, axis: int = 0) -> Any:
        result = np.copy(array)
        along = np.moveaxis(result, axis, 0)  # a view
        distance = 1
        while distance < along.shape[0]:
            along[distance:] = ufunc(along[:-distance], along[distance:])
            distance *= 2
        return result

    return accumulate


def _add_at(array: Any, index: Any, values: Any) -> None:
    """Add like `np.add.at`; CuPy adds long integers only unsigned: the same bits."""
    if array.dtype == np.int64:
        if not isinstance(values, type(array)):
            values = np.int64(values)
        values = values.astype(np.int64).view(np.uint64)
        array = array.view(np.uint64)
    np.add.at(array, index, values)


#: Replacements for functions that CuPy lacks, or that take other arguments than
#: NumPy's.
_OTHER_WAYS: Final[dict[Callable[..., Any], Callable[..., Any]]] = {
    np.max: _max,
    np.maximum.reduce: _reduction(np.max),
    np.minimum.reduce: _reduction(np.min),
    np.vecdot: _vecdot,
    np.add.at: _add_at,
    np.maximum.accumulate: _accumulation(np.maximum),
    np.minimum.accumulate: _accumulation(np.minimum),
    np.logaddexp.accumulate: _accumulation(np.logaddexp),
}
