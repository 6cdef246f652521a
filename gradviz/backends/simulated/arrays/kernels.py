"""Launching: how a call of NumPy's becomes work of a stream."""

from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Any, TypeVar

import numpy as np
from numpy import ndarray  # in one step: each launch makes one

from gradviz.backends.arrays.pinned_array import PinnedArray
from gradviz.backends.reports import kernel_ids
from gradviz.backends.simulated.arrays.device_array import DeviceArray
from gradviz.backends.simulated.devices.latency import kernel_of
from gradviz.backends.simulated.devices.layouts import ArrayLayout, layout_of
from gradviz.backends.simulated.devices.machine import SimulatedDevice, machine
from gradviz.backends.simulated.devices.work import LOCK, StreamQueue, Work, new_work
from gradviz.trace import probe
from gradviz.trace.probe import LISTENERS

SomeArray = TypeVar("SomeArray", bound=DeviceArray)
Kwargs = Mapping[str, Any]


def launch(
    queue: StreamQueue,
    name: str,
    run: Callable[[], object],
    reads: Iterable[DeviceArray],
    writes: Iterable[DeviceArray],
    reads_from: PinnedArray | None = None,
    writes_to: PinnedArray | None = None,
    is_awaited: bool = False,
) -> Work:
    """Put a kernel into a stream, and report it.

    Args:
        queue: The stream's.
        name: Its name in traces and errors.
        run: On any thread, later, with memory that it holds itself.
        reads: Arrays that it reads,
        writes: and writes.
        reads_from: Pinned memory of the host that it reads,
        writes_to: and writes.
        is_awaited: True if the caller waits for it, to raise its error.
    """
    work = new_work(queue, name, run, None, is_awaited)
    if machine.latency is not None:
        reads, writes = tuple(reads), tuple(writes)
        work.size = kernel_of(
            name, [one.raw for one in reads], [one.raw for one in writes]
        )
    if not LISTENERS or (listener := probe.current) is None:
        queue.put(work)
        return work
    with LOCK:
        work.kernel = next(kernel_ids)
        listener.kernel_launched(work.kernel, queue.text, name)
        for arrays, is_written in ((reads, False), (writes, True)):
            for array in arrays:
                if array.raw.size:
                    memory = array.allocation.id
                    listener.array_accessed(
                        work.kernel, memory, array.layout(), is_written
                    )
        for pinned, is_written in ((reads_from, False), (writes_to, True)):
            if pinned is not None and (place := pinned.place()):
                listener.array_accessed(work.kernel, *place, is_written)
        queue.add(work)
    return work


def ready(arrays: Sequence[DeviceArray]) -> SimulatedDevice:
    """Return the common device of arrays, after all pending errors.

    Raises:
        RuntimeError: It is lost, a kernel has failed, or an array is of before a reset.
    """
    device = machine.device(arrays[0].device)
    if device.lost or device.failures:
        device.check()
    for array in arrays:
        allocation = array.allocation
        owner = allocation.queue.device
        if owner is not device:
            raise RuntimeError(owner.lost)
    if device.memory.freed:
        device.memory.collect()
    return device


def new_array(
    kind: type[SomeArray],
    device: SimulatedDevice,
    queue: StreamQueue,
    name: str,
    layout: ArrayLayout,
) -> SomeArray:
    """An array that the kernel of that name is to write.

    Args:
        kind: Its class.
        device: Device that the array is on.
        queue: Of that device's current stream, for which its memory is taken.
        name: The kernel's.
        layout: Layout of the array there.

    Raises:
        OutOfMemoryError: The device has no memory left.
    """
    allocation = device.memory.allocate(queue, layout, name)
    dtype = layout.dtype
    if dtype.hasobject:  # bytes cannot hold objects: they live in memory of their own
        raw = np.empty(layout.shape, dtype)
        layout = layout_of(raw.shape, dtype, raw.strides)
    else:
        memory = allocation.block.memory
        raw = ndarray(layout.shape, dtype, memory, 0, layout.strides)
    return kind(raw, allocation, device.device, layout)


def view_of(array: SomeArray, raw: np.ndarray) -> SomeArray:
    """Other elements, or an order of them, in the memory of an array."""
    base = array if array.base is None else array.base
    layout = layout_of(raw.shape, raw.dtype, raw.strides)
    return type(array)(raw, array.allocation, array.device, layout, base)


def wait(work: Work) -> None:
    """Wait for an awaited kernel, for which its stream has come so far.

    Raises:
        Exception: The exception that the kernel raised.
    """
    machine.wait(work)
    if listener := probe.current:
        listener.stream_synchronized(work.queue.text)
    if work.error is not None:
        raise work.error
    work.queue.device.check()
