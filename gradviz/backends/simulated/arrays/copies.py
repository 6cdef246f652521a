"""Copies between the host and devices, and between devices: work of streams too."""

from functools import partial

import numpy as np

from gradviz.backends.arrays.pinned_array import PinnedArray, pinned_array
from gradviz.backends.arrays.pinning import PinnedMemory
from gradviz.backends.device import Device
from gradviz.backends.simulated.arrays.device_array import DeviceArray
from gradviz.backends.simulated.arrays.kernels import (
    SomeArray,
    launch,
    new_array,
    ready,
    wait,
)
from gradviz.backends.simulated.devices.layouts import in_c_order, poison_for
from gradviz.backends.simulated.devices.machine import machine
from gradviz.backends.simulated.devices.work import LOCK
from gradviz.backends.stream import current_stream


def from_host(
    kind: type[SomeArray], array: np.ndarray, device: Device, *, is_pinned: bool
) -> SomeArray:
    """A copy of an array of the host's, in C order; returns at once.

    Args:
        kind: The class of the result.
        array: Array to copy.
        device: Device to copy to.
        is_pinned: The device reads `array` itself when it has come so far; else it gets
            a copy that is made now.
    """
    there = machine.device(device)
    there.check()
    queue = there.current_queue()
    source = np.asarray(array if is_pinned else array.copy())
    layout = in_c_order(source.shape, source.dtype)
    result = new_array(kind, there, queue, "Memcpy HtoD", layout)
    copy = partial(np.copyto, result.raw, source)
    pinned = array if is_pinned and isinstance(array, PinnedArray) else None
    launch(queue, "Memcpy HtoD", copy, (), (result,), reads_from=pinned)
    return result


def to_host(array: DeviceArray, *, is_awaited: bool) -> np.ndarray:
    """A copy in the host's memory, in C order.

    Args:
        array: Array to copy.
        is_awaited: Return when it is done; else at once: a copy in pinned memory, with
            nonsense in it until the device has come so far.
    """
    raw = array.raw
    if not is_awaited and not raw.dtype.hasobject:
        memory = PinnedMemory(bytes([poison_for(raw.dtype)]) * max(raw.nbytes, 1))
        pinned = pinned_array(memory, raw.shape, raw.dtype)
        into_host(array, pinned)
        return pinned
    queue = ready((array,)).current_queue()
    host = np.empty(raw.shape, raw.dtype)
    copy = partial(np.copyto, host, raw)
    work = launch(queue, "Memcpy DtoH", copy, (array,), (), is_awaited=is_awaited)
    if is_awaited:
        wait(work)
    return host


def into_host(array: DeviceArray, host: PinnedArray) -> None:
    """Copy an array into pinned memory of the same shape and dtype; returns at once."""
    queue = ready((array,)).current_queue()
    copy = partial(np.copyto, np.asarray(host), array.raw)
    launch(queue, "Memcpy DtoH", copy, (array,), (), writes_to=host)


def to_peer(array: SomeArray, device: Device) -> SomeArray:
    """A copy on another simulated device, in C order; returns at once.

    Source: aten/src/ATen/native/cuda/Copy.cu, copy_device_to_device: the copy is work
    of the source's current stream. It waits for the destination's, whose memory it
    writes, and that in turn for the copy.
    """
    here, there = ready((array,)), machine.device(device)
    there.check()
    layout = in_c_order(array.raw.shape, array.raw.dtype)
    name = "Memcpy DtoD" if here is there else "Memcpy PtoP"
    result = new_array(type(array), there, there.current_queue(), name, layout)
    source, target = current_stream(array.device), current_stream(device)
    queue = here.current_queue()
    if source != target:
        source.wait_stream(target)
        # Should Ctrl-C come before the second wait, the copy is still to be written.
        with LOCK:
            result.allocation.used_by |= {queue}
    copy = partial(np.copyto, result.raw, array.raw)
    launch(queue, name, copy, (array,), (result,))
    if source != target:
        target.wait_stream(source)
        with LOCK:
            result.allocation.used_by -= {queue}
    return result
