"""The rule that work is for one device, and what is said where it is broken."""

from collections.abc import Iterable, Iterator
from typing import Any

import numpy as np

from gradviz.backends.device import CPU, Device


class MixedDevicesError(RuntimeError):
    """Arrays of two devices were given to one op.

    Args:
        expected: The device of the first.
        got: That of another.
        op: Whose arguments they are, once that is known.
    """

    def __init__(self, expected: Device, got: Device, op: str = "") -> None:
        where = f" (when checking the arguments of {op})" if op else ""
        super().__init__(
            f"Expected all tensors to be on the same device, but found at least two "
            f"devices, {expected} and {got}!{where}"
        )
        self.expected = expected
        self.got = got
        self.op = op

    def of(self, op: str) -> "MixedDevicesError":
        """The same error, of that op, unless it is of one already."""
        return self if self.op else MixedDevicesError(self.expected, self.got, op)


def common_device(values: Iterable[Any]) -> Device:
    """Where arrays are; a number, or a host array without dimensions, goes with any.

    Args:
        values: Arrays and whatever else a function is given, looked for in lists and
            tuples. One array at least is on a device.

    Raises:
        MixedDevicesError: They are on two devices, of which the host may be one.
    """
    found = _device_of_all(values, None)
    assert found is not None
    return found


def leaves(values: Iterable[Any]) -> Iterator[Any]:
    """What is in lists and tuples, to any depth."""
    for value in values:
        if type(value) in (list, tuple):
            yield from leaves(value)
        else:
            yield value


def _device_of_all(values: Iterable[Any], expected: Device | None) -> Device | None:
    for value in values:
        if type(value) in (list, tuple):
            expected = _device_of_all(value, expected)
            continue
        if isinstance(value, np.ndarray):
            device = CPU if value.ndim else None
        else:
            device = getattr(value, "device", None)
        if device is expected or type(device) is not Device:
            continue
        if expected is not None:
            raise MixedDevicesError(expected, device)
        expected = device
    return expected
