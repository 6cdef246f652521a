"""CUDA devices by way of CuPy: the only module that imports it, when first asked.

Copies and memory are CuPy's, as are streams and events, which are in `cuda_streams`;
the arrays are in `cuda_array`.
Nothing waits for a device but what says so.
"""

from collections.abc import Callable, Iterable, Mapping, Sequence
from contextlib import AbstractContextManager
from typing import Any

import numpy as np

from gradviz.backends.arrays.pinned_array import PinnedArray
from gradviz.backends.arrays.pinning import empty_pinned, is_pinned
from gradviz.backends.base import register_maker
from gradviz.backends.cuda.cuda_array import CudaArray
from gradviz.backends.cuda.cuda_memory import Memory
from gradviz.backends.cuda.cuda_reports import Begun
from gradviz.backends.cuda.cuda_streams import CudaStreams
from gradviz.backends.device import Device
from gradviz.backends.protocols import ArrayTypes, MemoryUse, StreamLike
from gradviz.backends.stream import current_stream
from gradviz.errors import OutOfMemoryError
from gradviz.trace import probe


class CudaBackend(CudaStreams):
    """All CUDA devices that CuPy sees.

    Args:
        cupy: CuPy.
        errstate: That of `cupyx`. Without it CuPy ignores that an algorithm failed, as
            for a singular matrix.
    """

    type = "cuda"
    array_types: ArrayTypes = (CudaArray,)

    def __init__(
        self,
        cupy: Any,
        errstate: Callable[..., AbstractContextManager[None]] | None = None,
    ) -> None:
        super().__init__(cupy)
        self._errstate = errstate
        self._device_count: int = self._runtime.getDeviceCount()
        self._is_initialized = False

    # --- devices ----------------------------------------------------------------------

    def device_count(self) -> int:
        """Return the number of devices."""
        return self._device_count

    def device_name(self, device: Device) -> str:
        """Return the maker's name for a device."""
        properties = self._runtime.getDeviceProperties(device.number)
        return properties["name"].decode()

    def is_initialized(self) -> bool:
        """Return whether an array was ever made on one of them."""
        return self._is_initialized

    def device_of(self, array: CudaArray) -> Device:
        """Return the device of an array."""
        return array.device

    # --- arrays -----------------------------------------------------------------------

    def launch(
        self,
        device: Device,
        call: Callable[..., Any],
        args: Sequence[Any],
        kwargs: Mapping[str, Any],
    ) -> Any:
        """Call that on the current stream of `device`.

        The stream stays CuPy's current one of that device and thread, so that kernels
        of the user's own go there too; the current device is afterwards as before.

        Raises:
            OutOfMemoryError: The device has no memory left.
        """
        try:
            return self._at(device, self._on_current, device, call, args, kwargs)
        except MemoryError as error:
            failure = error
        # Memory kept for streams at work may be enough, and is free as soon as they are
        # done. Again from the beginning: what works in place writes last of all.
        if self.account.wait_for_kept(device):
            try:
                return self._at(device, self._on_current, device, call, args, kwargs)
            except MemoryError as error:
                failure = error
        raise OutOfMemoryError(f"{device} is out of memory: {failure}") from failure

    def launch_algebra(
        self,
        device: Device,
        call: Callable[..., Any],
        args: Sequence[Any],
        kwargs: Mapping[str, Any],
    ) -> Any:
        """`launch` for a function of `np.linalg`; waits for the device.

        Raises:
            numpy.linalg.LinAlgError: It found no solution.
        """
        if self._errstate is None:
            return self.launch(device, call, args, kwargs)
        with self._errstate(linalg="raise"):
            return self.launch(device, call, args, kwargs)

    def look_at_index(self, device: Device, name: str, index: Any, size: int) -> None:
        """Check the indices of the next op on the device; see `IndexChecks`.

        Args:
            device: Device of the indices.
            name: Of the function that uses them.
            index: CuPy's array, or one number.
            size: Of the dimension.

        Raises:
            IndexError: The one number is out of range.
        """
        stream = self.stream(device)
        self.launch(device, self._indices.look, (stream, name, index, size), {})

    def begin(self, device: Device) -> Begun | None:
        """Prepare the report of a kernel about to be launched; None if unheard."""
        listener = probe.current
        if listener is None:
            return None
        return Begun(listener, self.record(self.stream(device), enable_timing=True))

    def report(
        self,
        begun: Begun,
        device: Device,
        name: str,
        reads: Iterable[CudaArray | PinnedArray],
        writes: Iterable[CudaArray | PinnedArray],
    ) -> None:
        """Report a kernel that was launched on the current stream."""
        stream = self.stream(device)
        ended = self.record(stream, enable_timing=True)
        self._reports.launched(begun, str(stream), device, name, reads, writes, ended)

    def from_host(
        self, array: np.ndarray, device: Device, *, non_blocking: bool = False
    ) -> CudaArray:
        """A copy in the memory of `device`."""
        pinned = (array,) if non_blocking and isinstance(array, PinnedArray) else ()
        copy = self.upload(array, device, reads=pinned)
        # CUDA has read memory that is not pinned when it returns.
        if non_blocking:
            self.account.keep(array, current_stream(device))
        elif is_pinned(array):
            self.synchronize_stream(current_stream(device))
        return copy

    def to_host(self, array: CudaArray, *, non_blocking: bool = False) -> np.ndarray:
        """Return a copy in host memory; in pinned memory if nobody waits for it."""
        if not non_blocking:
            return self.download(array)
        host = empty_pinned(array.shape, array.dtype, self)
        self.copy_into_host(array, host)
        return host

    def copy_into_host(self, array: CudaArray, host: PinnedArray) -> None:
        """Copy into pinned memory; returns at once."""
        self._copy_out(array, (host,), out=np.asarray(host), blocking=False)
        self.account.keep(host, current_stream(array.device))

    def to_peer(self, array: CudaArray, device: Device) -> CudaArray:
        """A copy on another CUDA device, made by the source's current stream."""
        source, target = current_stream(array.device), current_stream(device)
        dense = self.launch(
            array.device, self._cupy.ascontiguousarray, (array.raw,), {}
        )
        copy = self._empty(array.shape, array.dtype, device)
        # Only now: what it is copied into may be in use by the target's work so far.
        source.wait_stream(target)
        begun = self.begin(array.device)
        self._at(
            array.device,
            copy.raw.data.copy_from_device_async,
            dense.data,
            copy.nbytes,
            self._cupy_stream(source),
        )
        if begun:
            self.report(begun, array.device, "Memcpy PtoP", (array,), (copy,))
        target.wait_stream(source)
        return copy

    def upload(
        self, array: np.ndarray, device: Device, *, reads: Sequence[PinnedArray] = ()
    ) -> CudaArray:
        """An array with the elements of one in host memory."""
        self._is_initialized = True
        copy = self._empty(array.shape, array.dtype, device)
        begun = self.begin(device)
        self.launch(device, copy.raw.set, (np.asarray(array, order="C"),), {})
        if begun:
            self.report(begun, device, "Memcpy HtoD", reads, (copy,))
        return copy

    def download(self, array: CudaArray) -> np.ndarray:
        """The elements in host memory; waits for them.

        Raises:
            IndexError: Work before used an index that was out of range.
        """
        host = self._copy_out(array)
        stream = current_stream(array.device)
        if listener := probe.current:
            listener.stream_synchronized(str(stream))
        self._waited(stream)
        self._tell_of_indices(stream)
        return host

    def _copy_out(
        self, array: CudaArray, writes: Sequence[PinnedArray] = (), **options: Any
    ) -> np.ndarray:
        begun = self.begin(array.device)
        host = self.launch(array.device, array.raw.get, (), options)
        if begun:
            self.report(begun, array.device, "Memcpy DtoH", (array,), writes)
        return host

    def _empty(
        self, shape: tuple[int, ...], dtype: np.dtype[Any], device: Device
    ) -> CudaArray:
        raw = self.launch(device, self._cupy.empty, (shape, dtype), {})
        return CudaArray(raw, Memory(self, self.stream(device), raw.data.mem))

    # --- memory -----------------------------------------------------------------------

    def pinned_memory(self, size_bytes: int) -> Any:
        """Page-locked memory of CuPy's pool."""
        return self._cupy.cuda.alloc_pinned_memory(size_bytes)

    def record_stream(self, array: CudaArray, stream: StreamLike) -> None:
        """Keep the memory of an array, once freed, until that stream's work is done."""
        memory = array.memory
        if stream not in memory.used_by:
            memory.used_by += (stream,)
        if listener := probe.current:
            listener.memory_shared(memory.id, str(stream))

    def memory_use(self, device: Device) -> MemoryUse:
        """Return the memory in use."""
        with self._cupy.cuda.Device(device.number):
            reserved = self._cupy.get_default_memory_pool().total_bytes()
        return MemoryUse(*self.account.use(device), reserved)

    def reset_peak_memory(self, device: Device) -> None:
        """Begin a new peak."""
        self.account.reset_peak(device)

    def empty_cache(self) -> None:
        """Release memory kept in CuPy's pools."""
        self.account.drop_kept()
        for number in range(self._device_count):  # a pool is of the current device
            with self._cupy.cuda.Device(number):
                self._cupy.get_default_memory_pool().free_all_blocks()
        self._cupy.get_default_pinned_memory_pool().free_all_blocks()


def make_backend() -> CudaBackend:
    """The backend, if there are CuPy and a GPU.

    Raises:
        RuntimeError: CuPy or a GPU is missing; the message says how to get it.
    """
    try:
        import cupy  # noqa: PLC0415 - takes a second, and is not there everywhere
    except ImportError as error:
        raise RuntimeError(
            f"CUDA devices need CuPy, which cannot be imported ({error}): "
            f"pip install 'gradviz[cuda]'"
        ) from error
    try:
        return CudaBackend(cupy, _errstate)
    except cupy.cuda.runtime.CUDARuntimeError as error:
        raise RuntimeError(
            f"CuPy is there, but finds no CUDA device ({error}): a device of type "
            f"'cuda' needs an NVIDIA GPU and its driver"
        ) from error


def _errstate(*, linalg: str) -> AbstractContextManager[None]:
    import cupyx  # noqa: PLC0415 - comes with CuPy

    return cupyx.errstate(linalg=linalg)


register_maker("cuda", make_backend)
