"""An array in the memory of a simulated device, as kernels see it."""

from collections.abc import Iterable, Iterator
from typing import Any

import numpy as np

from gradviz.backends.arrays.mixing import leaves
from gradviz.backends.arrays.wrapped_array import WrappedArray
from gradviz.backends.device import Device
from gradviz.backends.reports import layout_at
from gradviz.backends.simulated.devices.layouts import ArrayLayout
from gradviz.backends.simulated.devices.memory import Allocation


class DeviceArray(WrappedArray):
    """Metadata of an array whose elements may be still to be computed.

    Attributes:
        raw: Shape, dtype and strides; the elements are for kernels only.
        allocation: Its memory, kept as long as an array uses it.
        device: Its device.
        form: Layout of `raw` there.
        base: The array that it is a view of, as in NumPy; None if the memory was taken
            for this array. The engine counts references to see whether an array is
            shared, so views must have one.
    """

    __slots__ = ("allocation", "base", "device", "form")

    device: Device

    def __init__(
        self,
        raw: np.ndarray,
        allocation: Allocation,
        device: Device,
        form: ArrayLayout,
        base: "DeviceArray | None" = None,
    ) -> None:
        self.raw = raw
        self.allocation = allocation
        self.device = device
        self.form = form
        self.base = base

    def layout(self) -> str:
        """Return the bytes of memory used, in the form of `Probe.array_accessed`."""
        raw = self.raw
        offset = 0  # objects have memory of their own
        if not raw.dtype.hasobject:
            address = raw.__array_interface__["data"][0]
            offset = address - self.allocation.block.address
        return layout_at(offset, raw)


def arrays_in(values: Iterable[Any]) -> Iterator[DeviceArray]:
    """The arrays of devices among values, looked for in lists and tuples."""
    return (value for value in leaves(values) if isinstance(value, DeviceArray))
