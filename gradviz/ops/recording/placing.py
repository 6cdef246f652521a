"""Tables that an op computes on the host, put where its arrays are."""

import numpy as np

from gradviz.backends.base import Array, copy_to, device_of
from gradviz.backends.device import CPU


def beside(array: Array, table: np.ndarray) -> Array:
    """`table` on the device of `array`."""
    device = device_of(array)
    return table if device is None or device is CPU else copy_to(table, device)
