"""The rule that one device does an op's work, and its error."""

from collections.abc import Iterable
from operator import call
from typing import Any

import numpy as np

from gradviz.backends.device import CPU, Device


class MixedDevicesError(RuntimeError):
    """Arrays of two devices were given to one op.

    Args:
        expected: The device of the first.
        got: That of another.
        op: Op whose arguments they are, once that is known.
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
    """Return the device of arrays; numbers and host arrays of no dimensions fit any.

    Args:
        values: Arrays and other arguments of a function, searched in lists and
            tuples too. At least one array is on a device.

    Raises:
        MixedDevicesError: They are on two devices, of which the host may be one.
    """
    found = _device_of_all(values, None)
    assert found is not None
    return found


def leaves(values: Iterable[Any]) -> list[Any]:
    """Return the items of lists and tuples, to any depth."""
    found = []
    for value in values:
        if type(value) in (list, tuple):
            found += call(leaves, value)  # when compiled: depth
        else:
            found.append(value)
    return found


def _device_of_all(values: Iterable[Any], expected: Device | None) -> Device | None:
    for value in values:
        if type(value) in (list, tuple):
            expected = call(_device_of_all, value, expected)
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
