"""The interface of a backend, and the table of those that are there."""

from collections.abc import Iterator
from typing import Any, Protocol, TypeAlias

from gradviz.backends.device import CALLER_TYPES, CPU, Device

Array = Any  # an array of some library: NumPy's, CuPy's, a simulated device's
ArrayTypes: TypeAlias = tuple[type, ...]


class Backend(Protocol):
    """A kind of device: how many there are, and how arrays get there and back.

    Attributes:
        type: The part of a device's name before the colon.
        array_types: The classes of its arrays. They answer NumPy's functions and
            ufuncs (NEP 13 and 18), so that an op is written once, in NumPy's words.
    """

    array_types: ArrayTypes
    type: str

    def device_count(self) -> int:
        """How many devices of this kind there are."""

    def is_initialized(self) -> bool:
        """Whether a device of this kind has been used, so that it wants a thread."""

    def device_of(self, array: Array) -> Device:
        """Where one of this backend's arrays is."""

    def from_host(self, array: Array, device: Device) -> Array:
        """Copy a NumPy array to `device`."""

    def to_host(self, array: Array) -> Array:
        """Copy an array of this backend into a NumPy array."""


_by_type: dict[str, Backend] = {}
_by_array: dict[type, Backend] = {}
#: Where all arrays of a class are, for backends that have but one device.
_only_device: dict[type, Device] = {}


#: The device of all arrays of a class, None if they may be on several.
only_device = _only_device.get


def register(backend: Backend) -> None:
    """Make a backend known under its type, replacing one of the same type."""
    _by_type[backend.type] = backend
    _by_array.update(dict.fromkeys(backend.array_types, backend))
    if backend.type in CALLER_TYPES:
        only_device = Device(backend.type)
        _only_device.update(dict.fromkeys(backend.array_types, only_device))


def backends() -> Iterator[Backend]:
    """All that are registered."""
    return iter(tuple(_by_type.values()))


def backend_of(device: Device) -> Backend:
    """The backend of a device.

    Raises:
        ValueError: There is no such backend, or no device with that index.
    """
    backend = _by_type.get(device.type)
    if backend is None:
        raise ValueError(
            f"unknown device {str(device)!r}: expected one of "
            f"{', '.join(sorted(_by_type)) or 'no backends at all'}"
        )
    if not device.runs_on_caller and device.index >= backend.device_count():
        raise ValueError(
            f"no device {str(device)!r}: there are {backend.device_count()} devices "
            f"of type {device.type!r}, with indices from 0"
        )
    return backend


def device_of(array: object) -> Device | None:
    """Where an array or tensor is, None for what is neither."""
    only_device = _only_device.get(type(array))
    if only_device is not None:
        return only_device
    backend = _by_array.get(type(array))
    if backend is not None:
        return backend.device_of(array)
    device = getattr(array, "device", None)
    return device if isinstance(device, Device) else None


def copy_to(array: Array, device: Device) -> Array:
    """An array, or tensor, copied to `device`."""
    source = _by_array.get(type(array))
    if source is None:  # a tensor: it knows how, and remembers it for its gradient
        return array.to(device)
    return backend_of(device).from_host(source.to_host(array), device)


def num_device_threads() -> int:
    """How many device threads the engine needs for the devices in use.

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


__all__ = [
    "CPU",
    "Array",
    "Backend",
    "backend_of",
    "backends",
    "copy_to",
    "device_of",
    "num_device_threads",
    "only_device",
    "register",
]
