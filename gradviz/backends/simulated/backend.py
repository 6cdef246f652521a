"""Simulated devices as the rest of gradviz sees them: ``sim:0`` to ``sim:N-1``."""

import os
from typing import Final

import numpy as np

from gradviz.backends.arrays.pinned_array import PinnedArray
from gradviz.backends.arrays.pinning import PinnedMemory
from gradviz.backends.base import register, register_stand_in
from gradviz.backends.device import Device, is_named
from gradviz.backends.protocols import ArrayTypes, MemoryUse, StreamLike
from gradviz.backends.simulated.arrays import copies
from gradviz.backends.simulated.arrays.array import SimulatedArray
from gradviz.backends.simulated.arrays.kernels import ready
from gradviz.backends.simulated.devices.machine import machine
from gradviz.backends.simulated.devices.work import StreamQueue, Work, new_work
from gradviz.errors import UserError

#: Number of simulated devices, unless `set_device_count` says otherwise.
ENVIRONMENT_VARIABLE: Final = "GRADVIZ_SIM"
DEFAULT_DEVICE_COUNT: Final = 2


class SimulatedBackend:
    """All simulated devices of this process; see `Accelerator`.

    A marker is work that does nothing: it is done when all before it is.

    Note [Asking for a simulation]
    ~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~
    A program that takes any accelerator must not find a simulated one, which is slower
    than the CPU, on every machine. So there is none until it is requested: the
    environment says so, the program changes how simulated devices behave, or it names
    one, as in ``device="sim"``. From then on it is the accelerator if there is no GPU.
    Asking `gradviz.sim` for its devices is no such request.

    Attributes:
        is_configured: True if the program has said how simulated devices behave.
    """

    type = "sim"
    array_types: ArrayTypes = (SimulatedArray,)

    def __init__(self) -> None:
        self.is_configured = False
        self._device_count: int | None = None
        self._is_initialized = False

    def device_count(self) -> int:
        """Return the number of simulated devices.

        Raises:
            UserError: The environment variable is no positive number.
        """
        if self._device_count is None:
            text = _environment()
            self._device_count = _count_from(text) if text else DEFAULT_DEVICE_COUNT
        return self._device_count

    def is_asked_for(self) -> bool:
        """See Note [Asking for a simulation]."""
        return self.is_configured or is_named(self.type) or bool(_environment())

    def set_device_count(self, count: int) -> None:
        """Have `count` simulated devices from now on."""
        self._device_count = count
        self.is_configured = True

    def is_initialized(self) -> bool:
        """Return whether an array was ever made on a simulated device."""
        return self._is_initialized

    def device_name(self, device: Device) -> str:
        """Return the display name of a device."""
        return f"Simulated accelerator {device.number}"

    # --- arrays -------------------------------------------------------------------

    def device_of(self, array: SimulatedArray) -> Device:
        """Return the device of an array."""
        return array.device

    def from_host(
        self, array: np.ndarray, device: Device, *, non_blocking: bool = False
    ) -> SimulatedArray:
        """A copy in the memory of `device`; returns at once.

        Args:
            array: Array to copy.
            device: Device to copy to.
            non_blocking: `array` is read when the device has come so far, not now.

        Raises:
            OutOfMemoryError: The device has no memory left.
        """
        self._is_initialized = True
        return copies.from_host(SimulatedArray, array, device, is_pinned=non_blocking)

    def to_host(
        self, array: SimulatedArray, *, non_blocking: bool = False
    ) -> np.ndarray:
        """A copy in host memory.

        Args:
            array: Array to copy.
            non_blocking: Return at once: until the device has come so far, there are
                NaNs or huge numbers in the copy.

        Raises:
            RuntimeError: A kernel has failed, or the device is lost.
        """
        return copies.to_host(array, is_awaited=not non_blocking)

    def copy_into_host(self, array: SimulatedArray, host: PinnedArray) -> None:
        """Copy into pinned memory; returns at once.

        Raises:
            RuntimeError: A kernel has failed, or the device is lost.
        """
        copies.into_host(array, host)

    def to_peer(self, array: SimulatedArray, device: Device) -> SimulatedArray:
        """A copy on another simulated device; returns at once."""
        return copies.to_peer(array, device)

    def pinned_memory(self, size_bytes: int) -> PinnedMemory:
        """Return host memory that `from_host` may read later."""
        return PinnedMemory(size_bytes)

    # --- streams ------------------------------------------------------------------

    def new_stream(self, device: Device, priority: int) -> int:
        """The number of a stream: of 32 of each priority, high or not, in turn."""
        return machine.device(device).new_stream(priority)

    def make_current(self, stream: StreamLike) -> None:
        """See that there is such a stream; each launch asks which one is current.

        Raises:
            RuntimeError: The device is lost, or was reset after the stream was made.
        """
        _queue(stream)

    def is_idle(self, stream: StreamLike) -> bool:
        """Return whether all its work is done.

        Raises:
            RuntimeError: It is, and a kernel of the device has failed; or the device is
                lost.
        """
        tail = _queue(stream).tail
        if tail is not None and not machine.executor.poll(tail):
            return False
        machine.device(stream.device).check()
        return True

    def synchronize_stream(self, stream: StreamLike) -> None:
        """Wait for all work of a stream.

        Raises:
            RuntimeError: A kernel of the device has failed, or the device is lost.
        """
        machine.wait(_queue(stream).mark())
        machine.device(stream.device).check()

    def synchronize_device(self, device: Device) -> None:
        """Wait for all streams of a device.

        Raises:
            RuntimeError: A kernel of the device has failed, or the device is lost.
        """
        found = machine.device(device)
        found.synchronize()
        found.check()

    def record(self, stream: StreamLike, enable_timing: bool) -> Work:
        """A marker of the work that the stream has so far."""
        del enable_timing  # all work notes when it ended
        return _queue(stream).mark()

    def wait(self, stream: StreamLike, marker: Work) -> None:
        """Have the stream's later work wait for a marker.

        Raises:
            RuntimeError: One of the devices is lost.
        """
        queue = _queue(stream)
        if marker.queue.device.lost:
            raise RuntimeError(marker.queue.device.lost)
        if not marker.is_done and marker.queue is not queue:
            queue.put(new_work(queue, before=marker))

    def is_done(self, marker: Work) -> bool:
        """Return whether the work before a marker is done.

        Raises:
            RuntimeError: It is, and a kernel of the device has failed; or the device is
                lost.
        """
        device = marker.queue.device
        if not device.lost and not machine.executor.poll(marker):
            return False
        device.check()
        return True

    def synchronize_marker(self, marker: Work) -> None:
        """Wait for a marker.

        Raises:
            RuntimeError: A kernel of the device has failed, or the device is lost.
        """
        machine.wait(marker)
        marker.queue.device.check()

    def elapsed_ms(self, begin: Work, end: Work) -> float:
        """Milliseconds between two markers that keep time and are done."""
        return (end.ended_ns - begin.ended_ns) / 1e6

    # --- memory -------------------------------------------------------------------

    def record_stream(self, array: SimulatedArray, stream: StreamLike) -> None:
        """Keep the memory of an array, once freed, until that stream's work is done."""
        ready((array,)).memory.record_stream(array.allocation, _queue(stream))

    def memory_use(self, device: Device) -> MemoryUse:
        """Return the memory in use."""
        return machine.device(device).memory.use()

    def reset_peak_memory(self, device: Device) -> None:
        """Begin a new `MemoryUse.peak`."""
        machine.device(device).memory.reset_peak()

    def empty_cache(self) -> None:
        """Give back the memory that is kept for later but in no use."""
        for device in machine.devices():
            device.memory.empty_cache()


def _queue(stream: StreamLike) -> StreamQueue:
    device = machine.device(stream.device)
    if device.lost:
        raise RuntimeError(device.lost)
    if device.memory.freed:  # what is gone by now was freed before what comes now
        device.memory.collect()
    return device.queue(stream.stream_id)


def _environment() -> str:
    """Return the environment's setting of simulated devices; empty for none."""
    text = os.environ.get(ENVIRONMENT_VARIABLE, "")
    return "" if text == "0" else text


def _count_from(text: str) -> int:
    if not text.isdecimal() or int(text) < 1:
        raise UserError(
            f"{ENVIRONMENT_VARIABLE}={text!r} is not a number of devices: "
            f"set it to a positive integer, or to 0 for none unless the program asks"
        )
    return int(text)


#: Of this process.
backend: Final = SimulatedBackend()
register(backend)
register_stand_in(backend.type, backend.is_asked_for)
