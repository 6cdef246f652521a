"""The table of backends: which there are, and where arrays are and go."""

from collections.abc import Callable
from typing import Final

from gradviz.backends.arrays.pinning import is_pinned
from gradviz.backends.device import CALLER_TYPES, CPU, Device
from gradviz.backends.protocols import (
    Accelerator,
    Array,
    ArrayTypes,
    Backend,
    CopiesIntoHost,
    MemoryUse,
    StreamLike,
)
from gradviz.backends.third_party import load_backend, third_party_types
from gradviz.locks import SafeRLock

_by_type: dict[str, Backend] = {}
_by_array: dict[type, Backend] = {}
_accelerators: dict[str, Accelerator] = {}
#: The device of all arrays of a class, for backends that have but one.
_only_device: dict[type, Device] = {}

#: Backends that are made when a program first asks for them.
_makers: dict[str, Callable[[], Backend]] = {}

#: Types whose devices stand in for hardware, and what says if a program wants them.
_stand_ins: dict[str, Callable[[], bool]] = {}

#: Held while a backend is made, which may ask for another: so that each is made once.
_making: Final = SafeRLock()

#: The device of all arrays of a class, None if they may be on several.
only_device = _only_device.get


def register(backend: Backend) -> None:
    """Make a backend known under its type, replacing one of the same type."""
    _by_type[backend.type] = backend
    _by_array.update(dict.fromkeys(backend.array_types, backend))
    _accelerators.pop(backend.type, None)
    if isinstance(backend, Accelerator):
        _accelerators[backend.type] = backend
    if backend.type in CALLER_TYPES:
        only_device = Device(backend.type)
        _only_device.update(dict.fromkeys(backend.array_types, only_device))


def register_maker(type: str, make: Callable[[], Backend]) -> None:  # noqa: A002 - as Device has it
    """Have `make` called for the backend of a type when a program asks for it.

    It raises a RuntimeError that says what is missing, if something is.
    """
    _makers[type] = make


def register_stand_in(type: str, is_wanted: Callable[[], bool]) -> None:  # noqa: A002 - as Device has it
    """Have devices of a type be the accelerator, where there is no other.

    Args:
        type: Of a backend that is registered.
        is_wanted: Function that returns True if the program has asked for such devices.
    """
    _stand_ins[type] = is_wanted


def backend_of(device: Device) -> Backend:
    """The backend of a device.

    Raises:
        RuntimeError: There is no such backend, or no device with that index; or the
            backend cannot be had here.
    """
    backend = _by_type.get(device.type) or _made(device)
    if not device.runs_on_caller and device.number >= backend.device_count():
        raise RuntimeError(
            f"no device {str(device)!r}: there are {backend.device_count()} devices "
            f"of type {device.type!r}, with indices from 0"
        )
    return backend


def accelerator_of(device: Device) -> Accelerator:
    """The backend of a device that has streams.

    Raises:
        RuntimeError: There is no such device, or it has none.
    """
    backend_of(device)
    accelerator = _accelerators.get(device.type)
    if accelerator is None:
        raise RuntimeError(
            f"device {str(device)!r} has no streams: its work is done at once"
        )
    return accelerator


def has_streams(device: Device) -> bool:
    """Return whether a device is an accelerator; it need not be present."""
    return device.type in _accelerators


def find_accelerator() -> Device | None:
    """The device that is meant where a program names none: of CUDA, else simulated.

    Returns:
        None if there is no accelerator: no GPU, and nobody has asked for a simulation.

    Source: torch.accelerator.current_accelerator.
    """
    if count_devices("cuda"):
        return Device("cuda")
    for type, is_wanted in _stand_ins.items():  # noqa: A001 - as Device has it
        if is_wanted():
            return Device(type)
    return None


def current_accelerator() -> Device:
    """Return the accelerator, like `find_accelerator`, but require one.

    Raises:
        RuntimeError: There is none.
    """
    found = find_accelerator()
    if found is None:
        raise RuntimeError(
            "Cannot access accelerator device when none is available. Simulated ones "
            "are there once they are asked for: with gradviz.sim.set_device_count(2), "
            "GRADVIZ_SIM=2 in the environment, or a device's name such as 'sim:0'"
        )
    return found


def count_devices(type: str) -> int:  # noqa: A002 - as Device has it
    """Return the number of usable devices of a type; 0 without its backend."""
    try:
        backend = _by_type.get(type) or backend_of(Device(type, 0))
        return backend.device_count()
    except RuntimeError:
        return 0


def device_of(array: object) -> Device | None:
    """Return the device of an array or tensor, None for anything else."""
    only_device = _only_device.get(type(array))
    if only_device is not None:
        return only_device
    backend = _by_array.get(type(array))
    if backend is not None:
        return backend.device_of(array)
    device = getattr(array, "device", None)
    return device if isinstance(device, Device) else None


def copy_to(array: Array, device: Device, *, non_blocking: bool = False) -> Array:
    """An array, or tensor, copied to `device`.

    Args:
        array: Array to copy.
        device: Device to copy it to.
        non_blocking: Do not wait for a copy to the host; have one from pinned memory
            read it when the device has come so far.
    """
    source = _by_array.get(type(array))
    if source is None:  # a tensor: it knows how, and remembers it for its gradient
        return array.to(device)
    target = backend_of(device)
    peers = _accelerators.get(device.type)
    if target is source and peers is not None:
        return peers.to_peer(array, device)
    if device_of(array) is CPU:
        non_blocking = non_blocking and is_pinned(array)
        return target.from_host(array, device, non_blocking=non_blocking)
    if device is CPU:
        return source.to_host(array, non_blocking=non_blocking)
    return target.from_host(source.to_host(array), device)


def beside(array: Array, table: Array) -> Array:
    """`table`, which is the host's, on the device of `array`."""
    device = device_of(array)
    return table if device is None or device is CPU else copy_to(table, device)


def copy_into_pinned(array: Array, host: Array) -> bool:
    """Have a device copy its array into one of the host's; returns at once.

    Returns:
        False, and nothing is copied, if that needs somebody to wait: `host` is not in
        pinned memory or not in C order, or the device's backend cannot do it.
    """
    source: object = _by_array.get(type(array))
    if (
        not isinstance(source, CopiesIntoHost)
        or not is_pinned(host)
        or not host.flags.c_contiguous
    ):
        return False
    source.copy_into_host(array, host)
    return True


def num_device_threads() -> int:
    """Return the number of device threads needed for the devices in use.

    Devices of different kinds with the same index share a thread (L4).
    """
    return max(
        (
            backend.device_count()
            for backend in _by_type.values()
            if backend.type not in CALLER_TYPES and backend.is_initialized()
        ),
        default=0,
    )


def _made(device: Device) -> Backend:
    """The backend of a type that is not registered yet, and now is."""
    with _making:
        if backend := _by_type.get(device.type):  # another thread was faster
            return backend
        make = _makers.get(device.type)
        backend = load_backend(device.type) if make is None else make()
        if backend is None:
            known = sorted({*_by_type, *_makers, *third_party_types()})
            raise RuntimeError(
                f"unknown device {str(device)!r}: expected one of {', '.join(known)}"
            )
        register(backend)
        return backend


__all__ = [
    "CPU",
    "Accelerator",
    "Array",
    "ArrayTypes",
    "Backend",
    "MemoryUse",
    "StreamLike",
    "accelerator_of",
    "backend_of",
    "beside",
    "copy_into_pinned",
    "copy_to",
    "count_devices",
    "current_accelerator",
    "device_of",
    "find_accelerator",
    "has_streams",
    "num_device_threads",
    "only_device",
    "register",
    "register_maker",
    "register_stand_in",
]
