"""Simulated accelerators: ``sim:0`` to ``sim:N-1``, each an array type over NumPy.

A simulated device keeps its arrays apart from the host's as a GPU would: mixing them is
an error, copies are explicit, and backward work for a device runs on the device's
thread. Kernels run at once, in the thread that calls them.
"""

import os
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from typing import Any, Final

import numpy as np
from numpy.lib.mixins import NDArrayOperatorsMixin

from gradviz.backends.base import ArrayTypes, register
from gradviz.backends.device import CPU, Device
from gradviz.errors import UserError

#: How many simulated devices there are, unless `set_device_count` says otherwise.
ENVIRONMENT_VARIABLE: Final = "GRADVIZ_SIM_DEVICES"
DEFAULT_DEVICE_COUNT: Final = 2


class SimulatedArray(NDArrayOperatorsMixin):
    """An array in the memory of a simulated device.

    NumPy's functions and ufuncs take it and return arrays of the same device (NEP 13
    and 18). Reading an element to Python (``item``, ``tolist``, ``float``) copies it to
    the host.

    Attributes:
        host: The elements. Only the simulation itself may touch them.
        device: Where the array is.
    """

    __slots__ = ("device", "host")

    def __init__(self, host: np.ndarray, device: Device) -> None:
        self.host = host
        self.device = device

    @property
    def shape(self) -> tuple[int, ...]:
        """Length of each dimension."""
        return self.host.shape

    @property
    def dtype(self) -> np.dtype[Any]:
        """Type of the elements."""
        return self.host.dtype

    @property
    def ndim(self) -> int:
        """Number of dimensions."""
        return self.host.ndim

    @property
    def size(self) -> int:
        """Number of elements."""
        return self.host.size

    @property
    def nbytes(self) -> int:
        """Bytes of all elements."""
        return self.host.nbytes

    @property
    def strides(self) -> tuple[int, ...]:
        """Bytes from one element to the next, for each dimension."""
        return self.host.strides

    @property
    def flags(self) -> Any:
        """What NumPy says of the memory: ``owndata``, ``writeable``, ..."""
        return self.host.flags

    @property
    def T(self) -> "SimulatedArray":  # noqa: N802 - NumPy's name
        """The array with its dimensions reversed."""
        return SimulatedArray(self.host.T, self.device)

    @property
    def real(self) -> "SimulatedArray":
        """The real parts of the elements."""
        return SimulatedArray(self.host.real, self.device)

    def astype(self, dtype: object, *, copy: bool = True) -> "SimulatedArray":
        """The array with elements of another type."""
        return self._wrap(self.host.astype(dtype, copy=copy))  # type: ignore[call-overload]

    def copy(self) -> "SimulatedArray":
        """A copy on the same device."""
        return self._wrap(self.host.copy())

    def sum(self, *args: Any, **kwargs: Any) -> "SimulatedArray":
        """The sum of elements, as NumPy's method of that name."""
        return self._wrap(self.host.sum(*args, **kwargs))

    def reshape(self, *shape: Any) -> "SimulatedArray":
        """The same elements in another shape."""
        return self._wrap(self.host.reshape(*shape))

    def view(self, dtype: object) -> "SimulatedArray":
        """The same memory as elements of another type."""
        return SimulatedArray(self.host.view(dtype), self.device)  # type: ignore[call-overload]

    def item(self) -> Any:
        """The only element, as a Python number."""
        return self.host.item()

    def tolist(self) -> Any:
        """The elements as nested lists of Python numbers."""
        return self.host.tolist()

    def __getitem__(self, index: object) -> "SimulatedArray":
        return self._wrap(self.host[_unwrap_index(index)])

    def __setitem__(self, index: object, value: object) -> None:
        _check_devices((self, value))
        self.host[_unwrap_index(index)] = _unwrap(value)

    def __len__(self) -> int:
        return len(self.host)

    def __bool__(self) -> bool:
        return bool(self.host)

    def __float__(self) -> float:
        return float(self.host)

    def __int__(self) -> int:
        return int(self.host)

    def __repr__(self) -> str:
        text = np.array2string(self.host, separator=", ", prefix="SimulatedArray(")
        return f"SimulatedArray({text}, dtype={self.dtype}, device='{self.device}')"

    def __array__(self, *args: object, **kwargs: object) -> np.ndarray:
        raise TypeError(
            f"can't convert {self.device} device type tensor to numpy. "
            f"Use Tensor.cpu() to copy the tensor to host memory first."
        )

    def __array_ufunc__(
        self, ufunc: np.ufunc, method: str, *inputs: object, **kwargs: Any
    ) -> Any:
        out = kwargs.get("out", ())
        # Indices, the second argument of `ufunc.at`, may stay on the host.
        arrays = (inputs[0], *inputs[2:]) if method == "at" else inputs
        _check_devices((*arrays, *out))
        if out:
            kwargs["out"] = tuple(_unwrap(array) for array in out)
        result = getattr(ufunc, method)(*map(_unwrap, inputs), **kwargs)
        if result is None:  # ufunc.at works in place
            return None
        if out:
            return out[0] if len(out) == 1 else out
        return self._wrap(result)

    def __array_function__(
        self,
        function: Callable[..., Any],
        types: Iterable[type],
        args: Sequence[Any],
        kwargs: Mapping[str, Any],
    ) -> Any:
        del types
        _check_devices(_flatten((args, tuple(kwargs.values()))))
        result = function(
            *map(_unwrap, args), **{name: _unwrap(v) for name, v in kwargs.items()}
        )
        return self._wrap(result)

    def _wrap(self, result: Any) -> Any:
        """A result of a kernel, put on this device where it is an array."""
        if isinstance(result, np.ndarray | np.generic):
            return SimulatedArray(np.asarray(result), self.device)
        if isinstance(result, tuple) and hasattr(result, "_make"):  # a named tuple
            return result._make(map(self._wrap, result))
        if isinstance(result, tuple | list):
            return type(result)(map(self._wrap, result))
        return result


class SimulatedBackend:
    """All simulated devices of this process."""

    type = "sim"
    array_types: ArrayTypes = (SimulatedArray,)

    def __init__(self) -> None:
        self._device_count: int | None = None
        self._is_initialized = False

    def device_count(self) -> int:
        """How many simulated devices there are.

        Raises:
            UserError: The environment variable is no positive number.
        """
        if self._device_count is None:
            self._device_count = _device_count_from(
                os.environ.get(ENVIRONMENT_VARIABLE, str(DEFAULT_DEVICE_COUNT))
            )
        return self._device_count

    def set_device_count(self, count: int) -> None:
        """Have `count` simulated devices from now on."""
        self._device_count = count

    def is_initialized(self) -> bool:
        """Whether an array was ever made on a simulated device."""
        return self._is_initialized

    def device_of(self, array: SimulatedArray) -> Device:
        """Where the array is."""
        return array.device

    def from_host(self, array: np.ndarray, device: Device) -> SimulatedArray:
        """A copy in the memory of `device`."""
        self._is_initialized = True
        return SimulatedArray(array.copy(), device)

    def to_host(self, array: SimulatedArray) -> np.ndarray:
        """A copy in host memory."""
        return array.host.copy()


def set_device_count(count: int) -> None:
    """Have `count` simulated devices, ``sim:0`` to ``sim:count-1``, from now on.

    Call it before the first backward: the engine starts its device threads then.

    Raises:
        ValueError: `count` is not positive.
    """
    if count < 1:
        raise ValueError(f"got {count} simulated devices, expected at least 1")
    _backend.set_device_count(count)


def _device_count_from(text: str) -> int:
    if not text.isdecimal() or int(text) < 1:
        raise UserError(
            f"{ENVIRONMENT_VARIABLE}={text!r} is no number of devices: "
            f"set it to a positive integer, or unset it for {DEFAULT_DEVICE_COUNT}"
        )
    return int(text)


def _unwrap(value: Any) -> Any:
    """The host arrays of what a kernel was given, looked for in lists and tuples."""
    if isinstance(value, SimulatedArray):
        return value.host
    if type(value) in (list, tuple):
        return type(value)(map(_unwrap, value))
    return value


def _unwrap_index(index: object) -> Any:
    # No check of devices: an index may stay on the host, as in PyTorch.
    return _unwrap(index)


def _flatten(values: Any) -> Iterator[Any]:
    for value in values:
        if type(value) in (list, tuple):
            yield from _flatten(value)
        else:
            yield value


def _check_devices(values: Iterable[object]) -> None:
    """Refuse arrays of two devices; a number or a 0-d host array goes with any."""
    first: Device | None = None
    for value in values:
        if isinstance(value, SimulatedArray):
            device = value.device
        elif isinstance(value, np.ndarray) and value.ndim:
            device = CPU
        else:
            continue
        if first is None:
            first = device
        elif device is not first:
            raise RuntimeError(
                f"Expected all tensors to be on the same device, "
                f"but found at least two devices, {first} and {device}!"
            )


_backend: Final = SimulatedBackend()
register(_backend)
