"""Streams and events of CUDA devices, which are CuPy's under numbers of ours.

Note [A collection at any point]
~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~
CuPy launches a kernel on its current stream, which is per-thread state: the stream is
set, then the call is made. In between, as between any two steps of Python, a garbage
collection or a signal may run code of the program that itself uses streams: an array
that another stream uses is freed, and an event is recorded there; a finalizer enters a
stream. So all code leaves CuPy's state as the code around it needs it, by two rules:

* Only code that launches work sets CuPy's stream, and always to the current one of
  the calling context, to which a ``with stream:`` also returns. Two such pieces of
  code that meet want the same stream. Records, waits, queries and synchronization
  make no stream current.
* Code that changes the current device restores it.
"""

from collections import defaultdict, deque
from collections.abc import Callable, Mapping, Sequence
from functools import partial
from typing import Any, Final

from gradviz.backends.cuda.cuda_indices import IndexChecks
from gradviz.backends.cuda.cuda_memory import Account
from gradviz.backends.cuda.cuda_reports import KernelReports
from gradviz.backends.device import Device
from gradviz.backends.protocols import StreamLike
from gradviz.backends.stream import Stream, default_stream, stream_at, stream_id_for
from gradviz.locks import SafeRLock

#: Number of streams of a device and a priority. Source: c10/cuda/CUDAStream.cpp,
#: kStreamsPerPool.
POOL_SIZE: Final = 32


class CudaStreams:
    """All streams of CUDA devices, and their work.

    Args:
        cupy: CuPy.
    """

    def __init__(self, cupy: Any) -> None:
        self._cupy = cupy
        self._runtime = cupy.cuda.runtime
        # An RLock, because a finalizer may make a stream while its thread makes one.
        self._lock = SafeRLock()
        #: Those besides the default one, from number 1. Appended to under _lock.
        self._streams: defaultdict[Device, list[Any]] = defaultdict(list)
        #: The numbers of those of a priority, the next one first. Guarded by _lock.
        self._pools: defaultdict[tuple[Device, int], deque[int]] = defaultdict(deque)
        #: Of streams, by number. Two threads may make one: either will do.
        self._handles: dict[tuple[Device, int], Stream] = {}
        self._reports = KernelReports(self.elapsed_ms)
        self._indices = IndexChecks(cupy)
        #: Of the memory in use.
        self.account = Account(partial(self.record, enable_timing=False))

    def stream(self, device: Device) -> Stream:
        """Return the current stream: always the same object, not to be entered."""
        number = stream_id_for(device)
        known = self._handles.get((device, number))
        if known is None:
            known = self._handles[device, number] = stream_at(device, number)
        return known

    def new_stream(self, device: Device, priority: int) -> int:
        """The number of the next stream of the pool for that priority."""
        with self._lock:
            pool = self._pools[device, priority]
            if len(pool) >= POOL_SIZE:
                pool.rotate(-1)
                return pool[-1]
            options = {"priority": priority} if priority else {}
            with self._cupy.cuda.Device(device.number):
                stream = self._cupy.cuda.Stream(non_blocking=True, **options)
            streams = self._streams[device]
            streams.append(stream)
            number = streams.index(stream) + 1  # perhaps not the last one any more
            pool.append(number)
            return number

    def make_current(self, stream: StreamLike) -> None:
        """Launch work of the calling thread there, CuPy's too."""
        self._at(stream.device, self._cupy_stream(stream).use)

    def is_idle(self, stream: StreamLike) -> bool:
        """Return whether all its work is done."""
        return self._at(stream.device, getattr, self._cupy_stream(stream), "done")

    def synchronize_stream(self, stream: StreamLike) -> None:
        """Wait for all work of a stream.

        Raises:
            IndexError: Some of it used an index that was out of range.
        """
        self._at(stream.device, self._cupy_stream(stream).synchronize)
        self._waited(stream)
        self._tell_of_indices(stream)

    def synchronize_device(self, device: Device) -> None:
        """Wait for all streams of a device.

        Raises:
            IndexError: Some work used an index that was out of range.
        """
        self._cupy.cuda.Device(device.number).synchronize()
        self._waited(default_stream(device))
        for number in self._indices.unread(device.number):
            self._tell_of_indices(stream_at(device, number))

    def record(self, stream: StreamLike, enable_timing: bool) -> Any:
        """An event of CuPy, after the work that the stream has so far."""
        return self._at(stream.device, self._recorded, stream, enable_timing)

    def wait(self, stream: StreamLike, marker: Any) -> None:
        """Have the stream's later work wait for an event."""
        self._at(stream.device, self._cupy_stream(stream).wait_event, marker)

    def is_done(self, marker: Any) -> bool:
        """Return whether the event has happened."""
        return marker.done

    def synchronize_marker(self, marker: Any) -> None:
        """Wait for an event."""
        marker.synchronize()
        self.account.drop_kept()

    def elapsed_ms(self, begin: Any, end: Any) -> float:
        """Milliseconds between two events."""
        return self._cupy.cuda.get_elapsed_time(begin, end)

    def _at(
        self, device: Device, call: Callable[..., Any], *args: Any, **kwargs: Any
    ) -> Any:
        """Call that while `device` is the current one; afterwards it is as before."""
        before = self._runtime.getDevice()
        try:
            if before != device.number:
                self._runtime.setDevice(device.number)
            return call(*args, **kwargs)
        finally:
            if before != device.number:
                self._runtime.setDevice(before)

    def _on_current(
        self,
        device: Device,
        call: Callable[..., Any],
        args: Sequence[Any],
        kwargs: Mapping[str, Any],
    ) -> Any:
        """Call that where the current stream of `device` is CuPy's too.

        See Note [A collection at any point].
        """
        self._cupy_stream(self.stream(device)).use()
        return call(*args, **kwargs)

    def _cupy_stream(self, stream: StreamLike) -> Any:
        if stream.stream_id == 0:
            return self._cupy.cuda.Stream.null
        return self._streams[stream.device][stream.stream_id - 1]

    def _recorded(self, stream: StreamLike, enable_timing: bool) -> Any:
        event = self._cupy.cuda.Event(disable_timing=not enable_timing)
        event.record(self._cupy_stream(stream))
        return event

    def _waited(self, stream: StreamLike) -> None:
        """After the host has waited for a stream: report, and let memory go."""
        self._reports.read(
            stream.device, lambda: self.record(stream, enable_timing=True)
        )
        self.account.drop_kept()

    def _tell_of_indices(self, stream: StreamLike) -> None:
        """Raise if work of a stream that was waited for had an index out of range."""
        self._at(stream.device, self._indices.tell, stream, self._cupy_stream(stream))
