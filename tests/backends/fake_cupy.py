"""The part of CuPy that gradviz uses, over NumPy, for machines without a GPU.

It is as strict as CuPy and a GPU are: an array is used on its own device only, host
arrays are no operands, what CuPy lacks is not there. Work is done at once, though
events say otherwise of streams that are behind; `log` has what was asked for, in its
order. Wherever CuPy may be interrupted by a collection, `state.collect` is called.
"""

import threading
import types
from collections.abc import Iterator
from contextlib import contextmanager

import numpy as np

from gradviz.backends.cuda.cuda_indices import OUTSIDE

#: Functions that CuPy 14 does not have.
LACKS = {
    *("block", "einsum_path", "frompyfunc", "geomspace", "histogram_bin_edges"),
    *("matvec", "nanpercentile", "nanquantile", "polydiv", "polyint", "spacing"),
    *("unstack", "vecdot", "vecmat"),
}

#: Those of `np.linalg`.
LACKS_IN_LINALG = {
    *("diagonal", "matrix_norm", "multi_dot", "outer", "svdvals", "tensordot"),
    *("trace", "vecdot", "vector_norm"),
}

#: The ufuncs that have a method in CuPy 14.
METHODS = {
    "reduce": {"add", "multiply"},
    "accumulate": {"add", "multiply"},
    "reduceat": {"add"},
    "at": {"add", "subtract", "maximum", "minimum"},
}

#: The types of elements that ``ufunc.at`` takes there.
AT = {
    "add": set("iefdIQL"),
    "subtract": set("iefdIQL"),
    "maximum": set("ifdIQL"),
    "minimum": set("ifdIQL"),
}

#: Kernels written in CUDA's language, and the same as functions of NumPy's arrays.
KERNELS = {
    OUTSIDE: lambda index, size, number, found: found.__setitem__(
        ..., np.where(((index < -size) | (index >= size)).any(), number, found)
    ),
}

#: Arguments that those of CuPy 14 do not take.
TAKES_NOT = {"max": {"initial", "where"}, "min": {"initial", "where"}}


class CUDARuntimeError(RuntimeError):
    pass


class Pointer:
    def __init__(self, array, block):
        self._array = array
        self.mem = block
        self.ptr = array.__array_interface__["data"][0]
        self.device_id = block.device

    def copy_from_device_async(self, source, size, stream):
        assert size == self._array.nbytes == source._array.nbytes
        assert source._array.flags.c_contiguous
        stream._note("copy")
        np.copyto(self._array, source._array.reshape(self._array.shape))

    def memset_async(self, value, size, stream):
        assert size == self._array.nbytes
        stream._note("memset")
        self._array.view(np.uint8)[...] = value


class State:
    """Of the GPUs.

    Attributes:
        log: What was asked for, by all threads.
        launches: The name of each call and the stream that it went to.
        is_behind: Say that nothing is done yet.
        slow: The streams of which nothing is done yet.
        memory_left: Bytes, on all devices together.
        collect: Called at each point where a collection may run finalizers.
    """

    def __init__(self):
        self._own = threading.local()
        self.log = []
        self.launches = []
        self.is_behind = False
        self.slow = set()
        self.memory_left = 1 << 30
        self.collect = lambda: None

    @property
    def device(self):
        """The current one of the calling thread."""
        return getattr(self._own, "device", 0)

    @device.setter
    def device(self, value):
        self._own.device = value

    @property
    def current(self):
        """The current streams of the calling thread, by device."""
        return self._own.__dict__.setdefault("current", {})

    def is_done(self, stream):
        return not self.is_behind and stream not in self.slow


def make(device_count=2):  # noqa: C901, PLR0915 - a module, and not a short one
    """A module like CuPy, with GPUs of its own."""
    state = State()

    class Block:
        """An allocation of the pool, for the current stream."""

        def __init__(self, host):
            if host.dtype.char not in "?bhilqBHILQefdFD":
                raise ValueError(f"Unsupported dtype {host.dtype}")
            size = host.nbytes
            if size > state.memory_left:
                raise MemoryError(f"Out of memory allocating {size:,} bytes")
            state.memory_left -= size
            self.size = size
            self.ptr = host.__array_interface__["data"][0]
            self.device = state.device
            self.stream = state.current.get(state.device)

        def __del__(self):
            # None has been taken if there was too little.
            state.memory_left += getattr(self, "size", 0)

    class Runtime:
        CUDARuntimeError = CUDARuntimeError

        def getDeviceCount(self):
            if not device_count:
                raise CUDARuntimeError("cudaErrorInsufficientDriver")
            return device_count

        def getDevice(self):
            state.collect()
            return state.device

        def setDevice(self, device):
            assert device < device_count
            state.collect()
            state.device = device
            state.collect()

        def getDeviceProperties(self, device):
            return {"name": f"Fake GPU {device}".encode()}

    runtime = Runtime()

    class Device:
        def __init__(self, device):
            self.id = device

        def __enter__(self):
            self.before, state.device = state.device, self.id

        def __exit__(self, *error):
            state.device = self.before

        def synchronize(self):
            state.log.append(("synchronize", f"device {self.id}"))

    class Stream:
        def __init__(self, null=False, non_blocking=False, ptds=False, priority=None):
            assert non_blocking
            state.collect()
            self.device_id = state.device
            self.priority = priority

        @property
        def done(self):
            return state.is_done(self)

        def _check(self):
            if self.device_id not in (-1, state.device):
                raise RuntimeError("The device that the stream is created on differs")

        def _note(self, what, of=None):
            state.log.append((what, self, of))

        def use(self):
            state.collect()
            self._check()
            state.current[state.device] = self
            state.collect()
            return self

        def synchronize(self):
            self._note("synchronize")

        def wait_event(self, event):
            self._note("wait", event)

    null = Stream(non_blocking=True)
    null.device_id = -1
    Stream.null = null

    class Event:
        def __init__(self, block=False, disable_timing=False, interprocess=False):
            self.device = state.device
            self.disable_timing = disable_timing
            self.stream = None
            self.was_waited_for = False
            state.collect()

        @property
        def done(self):
            return self.was_waited_for or state.is_done(self.stream)

        def record(self, stream):
            state.collect()
            stream._check()
            assert self.device == state.device
            self.stream = stream
            stream._note("record", self)

        def synchronize(self):
            state.log.append(("synchronize", self))
            self.was_waited_for = True

    class Array(np.lib.mixins.NDArrayOperatorsMixin):
        """An ndarray of the fake."""

        def __init__(self, host, block=None):
            self._host = host
            block = block or Block(host)
            self.data = Pointer(host, block)

        shape = property(lambda self: self._host.shape)
        dtype = property(lambda self: self._host.dtype)
        ndim = property(lambda self: self._host.ndim)
        size = property(lambda self: self._host.size)
        nbytes = property(lambda self: self._host.nbytes)
        strides = property(lambda self: self._host.strides)
        flags = property(lambda self: self._host.flags)
        itemsize = property(lambda self: self._host.itemsize)
        T = property(lambda self: Array(self._host.T, self.data.mem))
        real = property(lambda self: Array(self._host.real, self.data.mem))

        def get(self, stream=None, order="C", out=None, blocking=True):
            assert self.data.mem.device == state.device
            stream = stream or state.current[state.device]
            stream._note("synchronize" if blocking else "get")
            if out is None:
                return np.array(self._host, order=order)
            out[...] = self._host
            return out

        def set(self, array, stream=None):
            assert type(array) is np.ndarray
            assert (array.shape, array.dtype) == (self.shape, self.dtype)
            self._host[...] = array

        def __array_ufunc__(self, ufunc, method, *inputs, **kwargs):
            if ufunc.__name__ in LACKS or not hasattr(np, ufunc.__name__):
                return NotImplemented
            if ufunc.__name__ not in METHODS.get(method, {ufunc.__name__}):
                raise NotImplementedError(f"`{ufunc.__name__}.{method}`")
            if method == "at":
                if inputs[0].dtype.char not in AT[ufunc.__name__]:
                    raise TypeError(
                        f"scatter_{ufunc.__name__} only supports int32, ..."
                    )
                inputs = (inputs[0], wrapped_index(*inputs[:2]), *inputs[2:])
            function = ufunc if method == "__call__" else getattr(ufunc, method)
            return call(function, inputs, kwargs)

        def __array_function__(self, function, kinds, args, kwargs):
            is_algebra = function.__module__ == "numpy.linalg"
            if function.__name__ in (LACKS_IN_LINALG if is_algebra else LACKS):
                return NotImplemented
            if function in (np.take, np.take_along_axis, np.put_along_axis):
                array, index, *rest = args
                along = kwargs.get("axis", rest[-1] if rest else None)
                size = array.size if along is None else array.shape[along]
                index = index % size if size else index
                args = (array, index, *rest)
            if is_algebra:
                return call_algebra(function, args, kwargs)
            if unknown := TAKES_NOT.get(function.__name__, set()) & kwargs.keys():
                raise TypeError(f"got an unexpected keyword argument {unknown}")
            return call(function, args, kwargs)

        def __getitem__(self, index):
            index = wrapped_index(self, index)
            return call(lambda a, i: a[i], (self, index), {})

        def __setitem__(self, index, value):
            index = wrapped_index(self, index)
            call(np.ndarray.__setitem__, (self, index, value), {})

        def __len__(self):
            return len(self._host)

    for name in ("astype", "copy", "sum", "reshape", "view"):

        def method(self, *args, _name=name, **kwargs):
            return call(getattr(np.ndarray, _name), (self, *args), kwargs)

        setattr(Array, name, method)

    def call(function, args, kwargs):
        state.collect()
        stream = state.current[state.device]
        state.launches.append((getattr(function, "__name__", ""), stream))
        arrays = list(arrays_in((args, tuple(kwargs.values()))))
        for array in arrays:
            if isinstance(array, np.ndarray):
                raise TypeError("Unsupported type <class 'numpy.ndarray'>")
            assert array.data.mem.device == state.device, "another device is current"
        result = function(*unwrapped(args), **unwrapped(kwargs))
        return wrapped(result, arrays)

    def call_algebra(function, args, kwargs):
        """A failure is ignored, unless the calling thread has asked for it."""
        try:
            return call(function, args, kwargs)
        except np.linalg.LinAlgError:
            if getattr(errors, "linalg", "ignore") == "raise":
                raise
        sound = [
            np.broadcast_to(np.eye(*one.shape[-2:]), one.shape).astype(one.dtype)
            for one in args
            if isinstance(one, Array)
        ]
        result = function(*sound, **kwargs)  # of the right shape
        if isinstance(result, tuple):
            return tuple(Array(np.full_like(one, np.nan)) for one in result)
        return Array(np.full_like(result, np.nan))

    errors = threading.local()

    @contextmanager
    def errstate(*, linalg):
        before, errors.linalg = getattr(errors, "linalg", "ignore"), linalg
        try:
            yield
        finally:
            errors.linalg = before

    def wrapped_index(array, index):
        """An index none of whose arrays is out of range; single numbers may be."""
        entries = index if isinstance(index, tuple) else (index,)

        def width(entry):
            if entry is None or entry is Ellipsis:
                return 0
            is_mask = isinstance(entry, Array) and entry.dtype == np.bool_
            return entry.ndim if is_mask else 1

        dim, result = 0, []
        for one in entries:
            is_array = isinstance(one, Array) and one.dtype.kind in "iu"
            result.append(one % array.shape[dim] if is_array and one.size else one)
            dim += width(one)
            if one is Ellipsis:
                dim += array.ndim - sum(map(width, entries))
        return tuple(result) if isinstance(index, tuple) else result[0]

    class ElementwiseKernel:
        def __init__(self, *of):
            self._carry_out = KERNELS[of]

        def __call__(self, *args):
            call(self._carry_out, args, {})

    def arrays_in(value) -> Iterator:
        if isinstance(value, tuple | list):
            for one in value:
                yield from arrays_in(one)
        elif isinstance(value, Array | np.ndarray):
            yield value

    def unwrapped(value):
        if isinstance(value, tuple | list):
            return type(value)(map(unwrapped, value))
        if isinstance(value, dict):
            return {name: unwrapped(one) for name, one in value.items()}
        return value._host if isinstance(value, Array) else value

    def wrapped(value, arrays):
        if isinstance(value, tuple) and hasattr(value, "_make"):
            return tuple(wrapped(one, arrays) for one in value)  # CuPy's are plain
        if isinstance(value, tuple | list):
            return type(value)(wrapped(one, arrays) for one in value)
        if not isinstance(value, np.ndarray | np.generic):
            return value
        value = np.asarray(value)
        for array in arrays:
            if np.may_share_memory(value, array._host):
                return Array(value, array.data.mem)
        return Array(value)

    class PinnedMemoryPointer(bytearray):
        pass

    class Pool:
        def total_bytes(self):
            return 1 << 20

        def free_all_blocks(self):
            state.log.append(("free_all_blocks",))

    def empty(shape, dtype):
        state.collect()
        return Array(np.empty(shape, dtype))

    pool = Pool()
    cuda = types.SimpleNamespace(
        runtime=runtime,
        Device=Device,
        Stream=Stream,
        Event=Event,
        alloc_pinned_memory=PinnedMemoryPointer,
        get_elapsed_time=lambda begin, end: 0.5,
    )
    return types.SimpleNamespace(
        cuda=cuda,
        empty=empty,
        zeros=lambda shape, dtype: Array(np.zeros(shape, dtype)),
        ElementwiseKernel=ElementwiseKernel,
        ascontiguousarray=lambda array: (
            call(np.asarray, (array,), {"order": "C"})
            if not array.flags.c_contiguous
            else array
        ),
        get_default_memory_pool=lambda: pool,
        get_default_pinned_memory_pool=lambda: pool,
        log=state.log,
        state=state,
        cupyx=types.SimpleNamespace(errstate=errstate),
    )
