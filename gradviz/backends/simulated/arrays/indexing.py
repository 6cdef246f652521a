"""Elements of an array by index: views where NumPy has views."""

import operator
from typing import Any

import numpy as np

from gradviz.backends.simulated.arrays.device_array import DeviceArray, arrays_in
from gradviz.backends.simulated.arrays.kernels import view_of
from gradviz.backends.simulated.arrays.numpy_calls import call, change, wait_for


def get(array: DeviceArray, index: Any) -> Any:
    """``array[index]``: a view, unless there are arrays in `index`."""
    if is_basic(index):
        index = index if isinstance(index, tuple) else (index,)
        if not any(one is Ellipsis for one in index):
            index = (*index, Ellipsis)  # an array even where no dimension is left
        return view_of(array, array.raw[index])
    arrays = tuple(arrays_in((index,)))
    if any(one.raw.dtype.kind == "b" for one in arrays):
        return wait_for(operator.getitem, "index", (array, index), {})
    return call(operator.getitem, "index", (array, index), {}, may_view=not arrays)


def put(array: DeviceArray, index: Any, value: Any) -> None:
    """``array[index] = value``."""
    if is_basic(index):
        array, index = get(array, index), ...
    change(operator.setitem, "index_put", (array, index, value), {})


def is_basic(index: Any) -> bool:
    """Return whether an index makes views: of numbers, slices, None and an ellipsis."""
    if type(index) is tuple:
        return all(map(is_basic, index))
    return (
        index is None
        or index is Ellipsis
        or type(index) in (int, slice)
        or isinstance(index, np.integer)
    )
