"""The array of a simulated device, as NumPy and programs see it."""

import warnings
from collections.abc import Callable
from typing import Any

import numpy as np

from gradviz.backends.arrays.mixing import common_device
from gradviz.backends.arrays.wrapped_array import Flags
from gradviz.backends.simulated.arrays import copies, indexing, numpy_calls
from gradviz.backends.simulated.arrays.device_array import DeviceArray
from gradviz.backends.simulated.arrays.kernels import view_of


class SimulatedArray(DeviceArray):
    """An array in the memory of a simulated device.

    NumPy's functions and ufuncs take it and return arrays of the same device (NEP 13
    and 18), as soon as they have launched what computes them. Reading an element to
    Python (``item``, ``tolist``, ``float``) waits for that and copies to the host.
    """

    __slots__ = ()

    def call(self, function: Callable[..., Any], /, *args: Any, **kwargs: Any) -> Any:
        """Call a function of NumPy's; return arrays yet to be computed, or views."""
        return numpy_calls.call_function(function, args, kwargs)

    def call_whole(
        self, name: str, function: Callable[..., Any], args: tuple[Any, ...]
    ) -> Any:
        """Call a function of our own as one kernel."""
        common_device(args)
        return numpy_calls.call(function, name, args, {})

    def check_elements(
        self, name: str, check: Callable[..., None], args: tuple[Any, ...]
    ) -> None:
        """Have a kernel see that elements are as they have to be."""
        common_device(args)
        numpy_calls.check(check, name, args)

    def to_host(self) -> np.ndarray:
        """A copy in host memory, once it is there."""
        return copies.to_host(self, is_awaited=True)

    @property
    def flags(self) -> Flags:
        """Flags of the memory: ``owndata``, ``writeable``, ..."""
        return Flags(self.raw.flags, owns=self.base is None)

    @property
    def T(self) -> "SimulatedArray":  # noqa: N802 - NumPy's name
        """The array with its dimensions reversed."""
        return view_of(self, self.raw.T)

    @property
    def real(self) -> "SimulatedArray":
        """The real parts of the elements."""
        return view_of(self, self.raw.real)

    def astype(self, dtype: Any, *, copy: bool = True) -> "SimulatedArray":
        """The array with elements of another type."""
        dtype = np.dtype(dtype)
        if dtype == self.dtype and not copy:
            return self
        if self.dtype.kind == "c" and dtype.kind not in "cbO":
            # The kernel runs on a thread that has nobody to warn.
            warnings.warn(
                "Casting complex values to real discards the imaginary part",
                np.exceptions.ComplexWarning,
                stacklevel=2,
            )
            return self.real.astype(dtype)
        return numpy_calls.call(np.ndarray.astype, "astype", (self, dtype), {})

    def copy(self) -> "SimulatedArray":
        """A copy on the same device, in C order."""
        return numpy_calls.call(np.ndarray.copy, "copy", (self,), {})

    def sum(self, *args: Any, **kwargs: Any) -> "SimulatedArray":
        """The sum of elements, as NumPy's method of that name."""
        return self.call(np.sum, self, *args, **kwargs)

    def reshape(self, *shape: Any) -> "SimulatedArray":
        """The same elements in another shape."""
        return self.call(np.reshape, self, shape[0] if len(shape) == 1 else shape)

    def view(self, dtype: Any) -> "SimulatedArray":
        """The same memory as elements of another type."""
        return view_of(self, self.raw.view(dtype))

    def __getitem__(self, index: object) -> "SimulatedArray":
        return indexing.get(self, self._index(index))

    def __setitem__(self, index: object, value: object) -> None:
        common_device((self, value))
        indexing.put(self, self._index(index), value)
