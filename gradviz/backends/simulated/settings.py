"""Settings of simulated devices: how many, how late, with how much memory."""

from collections.abc import Iterator
from contextlib import contextmanager

from gradviz.backends.base import backend_of
from gradviz.backends.device import Device
from gradviz.backends.simulated.backend import backend
from gradviz.backends.simulated.devices.latency import Latency
from gradviz.backends.simulated.devices.machine import machine
from gradviz.backends.simulated.devices.work import WAITED_UNTIL_NS


def device_count() -> int:
    """Return the number of simulated devices.

    Raises:
        UserError: ``GRADVIZ_SIM`` is no positive number.
    """
    return backend.device_count()


def set_device_count(count: int) -> None:
    """Have `count` simulated devices, ``sim:0`` to ``sim:count-1``, from now on.

    Call it before the first backward: the engine starts its device threads then. Of
    devices that there are no more, work is dropped, and arrays, streams and events are
    errors from now on.

    Raises:
        ValueError: `count` is not positive.
        RuntimeError: There would be fewer, and the process was forked from one that had
            used them.
    """
    if count < 1:
        raise ValueError(f"got {count} simulated devices, expected at least 1")
    machine.keep(count)
    backend.set_device_count(count)


def set_executor(name: str, *, seed: int = 0) -> None:
    """Choose the executor of simulated devices' work; wait for all pending work.

    Args:
        name: ``"threads"``, a thread for each stream, unless this was called; or
            ``"stepped"``, whoever waits, in an order that `seed` says: the same every
            time, and as late as possible.
        seed: Number that chooses that order.

    Raises:
        ValueError: There is no such executor.
    """
    backend.is_configured = True
    match name:
        case "threads":
            machine.use_threads()
        case "stepped":
            machine.use_steps(seed)
        case _:
            raise ValueError(f"got {name!r}, expected 'threads' or 'stepped'")


@contextmanager
def stepped(seed: int = 0) -> Iterator[None]:
    """A block in which no thread carries out work: see `set_executor`.

    What is pending at its end is done there.
    """
    backend.is_configured = True
    before = machine.executor
    machine.use_steps(seed)
    try:
        yield
    finally:
        machine.use(before)


def set_latency(latency: Latency | None) -> None:
    """Have kernels take as long as a model says, in traces and between events.

    Threads sleep until then, and may be late: what NumPy computes takes what it takes.
    Stepped devices do not sleep. Of a kernel that was launched before, a model knows
    the name alone. When streams were done by the model before is forgotten.

    Args:
        latency: `fixed`, `randomly`, `by_kernel`, `preset`, or a function of a stream's
            text and a `Kernel` (a name that knows sizes) that answers in nanoseconds;
            None for as long as kernels take.
    """
    backend.is_configured = True
    machine.latency = latency
    WAITED_UNTIL_NS[0] = 0
    for device in machine.devices():
        for queue in device.queues():
            queue.ended_ns = 0  # a model's time, for which no thread should sleep


def set_memory_limit(device: str | Device, num_bytes: int | None) -> None:
    """Have so much memory on a device; None for as much as the host gives.

    Raises:
        ValueError: `num_bytes` is negative.
        RuntimeError: There is no such device.
    """
    if num_bytes is not None and num_bytes < 0:
        raise ValueError(f"got a memory limit of {num_bytes} bytes, expected 0 or more")
    machine.set_memory_limit(_device(device), num_bytes)


def reset(device: str | Device) -> None:
    """Drop all work of a device and have a new one of its name.

    Arrays, streams and events of before are errors from now on; no thread is left.

    Raises:
        RuntimeError: There is no such device, or the process was forked from one that
            had used it.
    """
    machine.reset(_device(device))


def lose(device: str | Device, reason: str = "it was unplugged") -> None:
    """Have a device fail for good: its work is dropped, its use an error until `reset`.

    Raises:
        RuntimeError: There is no such device.
    """
    machine.lose(_device(device), reason)


def empty_cache() -> None:
    """Release memory kept for later to the host."""
    backend.empty_cache()


def _device(device: str | Device) -> Device:
    device = Device(device)
    if device.type != backend.type:
        raise RuntimeError(
            f"Expected a simulated device, but got {device}: this is for 'sim:0', ..."
        )
    backend_of(device)
    return device
