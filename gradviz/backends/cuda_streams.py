"""Streams and events of CUDA devices, which are CuPy's under numbers of ours."""

import threading
from collections import defaultdict, deque
from collections.abc import Callable
from typing import Any, Final

from gradviz.backends.cuda_reports import KernelReports
from gradviz.backends.device import Device
from gradviz.backends.protocols import StreamLike
from gradviz.backends.stream import Stream, default_stream, stream_at, stream_id_for
from gradviz.errors import OutOfMemoryError

#: How many streams of a device and a priority there are.
#: Source: c10/cuda/CUDAStream.cpp, kStreamsPerPool.
POOL_SIZE: Final = 32


class CudaStreams:
    """All streams of CUDA devices, and what is done in them.

    Args:
        cupy: CuPy.
    """

    def __init__(self, cupy: Any) -> None:
        self._cupy = cupy
        self._runtime = cupy.cuda.runtime
        self._lock = threading.Lock()
        #: Those besides the default one, from number 1. Appended to under _lock.
        self._streams: defaultdict[Device, list[Any]] = defaultdict(list)
        #: The numbers of those of a priority, the next one first. Guarded by _lock.
        self._pools: defaultdict[tuple[Device, int], deque[int]] = defaultdict(deque)
        #: Of streams, by number. Two threads may make one: either will do.
        self._handles: dict[tuple[Device, int], Stream] = {}
        self._reports = KernelReports(self.elapsed_ms)

    def stream(self, device: Device) -> Stream:
        """The one that is current: always the same object, for nobody to enter."""
        number = stream_id_for(device)
        known = self._handles.get((device, number))
        if known is None:
            known = self._handles[device, number] = stream_at(device, number)
        return known

    def new_stream(self, device: Device, priority: int) -> int:
        """The number of the next stream of the pool for that priority."""
        with self._lock:
            pool = self._pools[device, priority]
            if len(pool) == POOL_SIZE:
                pool.rotate(-1)
                return pool[-1]
            options = {"priority": priority} if priority else {}
            with self._cupy.cuda.Device(device.number):
                stream = self._cupy.cuda.Stream(non_blocking=True, **options)
            streams = self._streams[device]
            streams.append(stream)
            pool.append(len(streams))
            return len(streams)

    def make_current(self, stream: StreamLike) -> None:
        """Launch work of the calling thread there, CuPy's too."""
        self._on(stream, lambda: None)

    def is_idle(self, stream: StreamLike) -> bool:
        """Whether all its work is done."""
        return self._on(stream, lambda: self._cupy_stream(stream).done)

    def synchronize_stream(self, stream: StreamLike) -> None:
        """Wait for all work of a stream."""
        self._on(stream, self._cupy_stream(stream).synchronize)
        self._read_times(stream)

    def synchronize_device(self, device: Device) -> None:
        """Wait for all streams of a device."""
        self._cupy.cuda.Device(device.number).synchronize()
        self._read_times(default_stream(device))

    def record(self, stream: StreamLike, enable_timing: bool) -> Any:
        """An event of CuPy, after the work that the stream has so far."""
        return self._on(stream, self._recorded, stream, enable_timing)

    def wait(self, stream: StreamLike, marker: Any) -> None:
        """Have the stream's later work wait for an event."""
        self._on(stream, self._cupy_stream(stream).wait_event, marker)

    def is_done(self, marker: Any) -> bool:
        """Whether the event has happened."""
        return marker.done

    def synchronize_marker(self, marker: Any) -> None:
        """Wait for an event."""
        marker.synchronize()

    def elapsed_ms(self, begin: Any, end: Any) -> float:
        """Milliseconds between two events."""
        return self._cupy.cuda.get_elapsed_time(begin, end)

    def _on(
        self, stream: StreamLike, call: Callable[..., Any], *args: Any, **kwargs: Any
    ) -> Any:
        number = stream.device.number
        before = self._runtime.getDevice()
        if before != number:
            self._runtime.setDevice(number)
        try:
            self._cupy_stream(stream).use()
            return call(*args, **kwargs)
        except MemoryError as error:
            raise OutOfMemoryError(f"{stream.device} is out of memory: {error}") from (
                error
            )
        finally:
            if before != number:
                self._runtime.setDevice(before)

    def _cupy_stream(self, stream: StreamLike) -> Any:
        if stream.stream_id == 0:
            return self._cupy.cuda.Stream.null
        return self._streams[stream.device][stream.stream_id - 1]

    def _recorded(self, stream: StreamLike, enable_timing: bool) -> Any:
        event = self._cupy.cuda.Event(disable_timing=not enable_timing)
        event.record(self._cupy_stream(stream))
        return event

    def _read_times(self, stream: StreamLike) -> None:
        """Report when kernels ran, now that a stream was waited for."""
        self._reports.read(
            stream.device, lambda: self.record(stream, enable_timing=True)
        )
