"""Arrays of other libraries, with the interface that ops expect of a device's.

An op is written once, in NumPy's words (NEP 13 and 18), and asks an array for little
else: what `WrappedArray` has. A backend whose library answers NumPy's functions says
where they are carried out, and how elements get to the host.
"""

from collections.abc import Callable, Iterable, Mapping, Sequence
from operator import call
from typing import Any, Self

import numpy as np
from numpy.lib.mixins import NDArrayOperatorsMixin

from gradviz.backends.arrays.mixing import common_device
from gradviz.backends.device import Device


class Flags:
    """The library's flags of an array's memory, and whether the array owns it.

    Args:
        flags: The flags of the library's array.
        owns: True if each view of the array holds a reference to it, as NumPy's do, and
            it is not a view itself. The engine overwrites a gradient that nobody else
            has a reference to, and copies one that does not own its memory.

    Attributes:
        owndata: As given.
    """

    __slots__ = ("_flags", "owndata")

    def __init__(self, flags: Any, *, owns: bool) -> None:
        self._flags = flags
        self.owndata = owns

    @property
    def c_contiguous(self) -> bool:
        """True if the elements are contiguous, the last index first."""
        return self._flags.c_contiguous

    @property
    def f_contiguous(self) -> bool:
        """True if the elements are contiguous, the first index first."""
        return self._flags.f_contiguous

    @property
    def writeable(self) -> bool:
        """True if the memory is writable; a library that does not say allows it."""
        return getattr(self._flags, "writeable", True)

    @writeable.setter
    def writeable(self, value: bool) -> None:
        if value != self.writeable:
            self._flags.writeable = value


class WrappedArray(NDArrayOperatorsMixin):
    """An array in the memory of a device: the base of backends' wrappers.

    NumPy's functions and ufuncs take it and return arrays of the same device. Reading
    an element to Python (``item``, ``tolist``, ``float``) waits for it.

    Attributes:
        raw: The array of the library.
    """

    __slots__ = ("raw",)

    def __init__(self, raw: Any) -> None:
        self.raw = raw

    # --- what a backend says ----------------------------------------------------------

    @property
    def device(self) -> Device:
        """Device of the array."""
        raise NotImplementedError

    def call(self, function: Callable[..., Any], /, *args: Any, **kwargs: Any) -> Any:
        """Call `function` on the raw arrays in its arguments; wrap its results.

        Args:
            function: A function of NumPy's, or one for its arrays; may work in place.
            *args: Arguments with arrays of this device, also in lists and tuples.
            **kwargs: As `args`.
        """
        raise NotImplementedError

    def call_whole(
        self, name: str, function: Callable[..., Any], args: tuple[Any, ...]
    ) -> Any:
        """Call a function of our own; see `in_one_kernel`.

        A device that cannot run Python executes its calls one by one, and the host
        waits wherever the function looks at elements.
        """
        del name
        return function(*args)

    def check_elements(
        self, name: str, check: Callable[..., None], args: tuple[Any, ...]
    ) -> None:
        """See that elements are as they have to be; see `check_elements`."""
        self.call_whole(name, check, args)

    def to_host(self) -> np.ndarray:
        """The elements in host memory, once they are there."""
        raise NotImplementedError

    def index_from(self, array: np.ndarray) -> Any:
        """An array of indices, or a mask, of the host's, as `call` takes it."""
        return array

    # --- what follows from it ---------------------------------------------------------

    @property
    def shape(self) -> tuple[int, ...]:
        """Length of each dimension."""
        return self.raw.shape

    @property
    def dtype(self) -> np.dtype[Any]:
        """Type of the elements."""
        return self.raw.dtype

    @property
    def ndim(self) -> int:
        """Number of dimensions."""
        return self.raw.ndim

    @property
    def size(self) -> int:
        """Number of elements."""
        return self.raw.size

    @property
    def nbytes(self) -> int:
        """Bytes of all elements."""
        return self.raw.nbytes

    @property
    def itemsize(self) -> int:
        """Bytes of one element."""
        return self.raw.itemsize

    @property
    def strides(self) -> tuple[int, ...]:
        """Bytes from one element to the next, for each dimension."""
        return self.raw.strides

    @property
    def flags(self) -> Flags:
        """Flags of the memory: ``owndata``, ``c_contiguous``, ..."""
        return Flags(self.raw.flags, owns=False)

    @property
    def T(self) -> Self:  # noqa: N802 - NumPy's name
        """The array with its dimensions reversed."""
        return self.call(_attribute("T"), self)

    @property
    def real(self) -> Self:
        """The real parts of the elements."""
        return self.call(_attribute("real"), self)

    @property
    def imag(self) -> Self:
        """The imaginary parts of the elements."""
        return self.call(np.imag, self)

    def astype(self, dtype: object, *, copy: bool = True) -> Self:
        """The array with elements of another type."""
        return self.call(_method("astype"), self, dtype, copy=copy)

    def copy(self) -> Self:
        """A copy on the same device."""
        return self.call(_method("copy"), self)

    def sum(self, *args: Any, **kwargs: Any) -> Self:
        """The sum of elements, as NumPy's method of that name."""
        return self.call(_method("sum"), self, *args, **kwargs)

    def reshape(self, *shape: Any) -> Self:
        """The same elements in another shape."""
        return self.call(_method("reshape"), self, *shape)

    def view(self, dtype: object) -> Self:
        """The same memory as elements of another type."""
        return self.call(_method("view"), self, dtype)

    def item(self) -> Any:
        """The only element, as a Python number."""
        return self.to_host().item()

    def tolist(self) -> Any:
        """The elements as nested lists of Python numbers."""
        return self.to_host().tolist()

    def __getitem__(self, index: object) -> Self:
        return self.call(_index, self, self._index(index))

    def __setitem__(self, index: object, value: object) -> None:
        common_device((self, value))
        self.call(_index_put, self, self._index(index), value)

    def __deepcopy__(self, memo: object) -> Self:
        del memo
        return self.copy()

    def __index__(self) -> int:
        return self.to_host().__index__()

    def __len__(self) -> int:
        return len(self.raw)

    def __bool__(self) -> bool:
        return bool(self.to_host())

    def __float__(self) -> float:
        return float(self.to_host())

    def __int__(self) -> int:
        return int(self.to_host())

    def __repr__(self) -> str:
        prefix = f"{type(self).__name__}("
        text = np.array2string(self.to_host(), separator=", ", prefix=prefix)
        return f"{prefix}{text}, dtype={self.dtype}, device='{self.device}')"

    def __array__(self, *args: object, **kwargs: object) -> np.ndarray:
        raise TypeError(
            f"can't convert {self.device} device type tensor to numpy. "
            f"Use Tensor.cpu() to copy the tensor to host memory first."
        )

    def __array_ufunc__(
        self, ufunc: np.ufunc, method: str, *inputs: Any, **kwargs: Any
    ) -> Any:
        out = kwargs.get("out", ())
        if method == "at":
            # Indices, the second argument, may stay on the host.
            common_device((inputs[0], *inputs[2:]))
            inputs = (inputs[0], self._index(inputs[1]), *inputs[2:])
        elif out or len(inputs) > 1:
            common_device((*inputs, *out))
        function = ufunc if method == "__call__" else getattr(ufunc, method)
        result = self.call(function, *inputs, **kwargs)
        if out:
            return out[0] if len(out) == 1 else out
        return result

    def __array_function__(
        self,
        function: Callable[..., Any],
        types: Iterable[type],
        args: Sequence[Any],
        kwargs: Mapping[str, Any],
    ) -> Any:
        del types
        common_device((args, tuple(kwargs.values())))
        return self.call(function, *args, **kwargs)

    def _index(self, index: object) -> Any:
        """An index with the host's arrays in it as `call` takes them.

        Raises:
            RuntimeError: Some of it is on another device.
        """

        def taken(value: Any) -> Any:
            if isinstance(value, np.ndarray) and value.ndim:
                return self.index_from(value)
            if isinstance(value, WrappedArray) and value.device is not self.device:
                raise RuntimeError(
                    f"indices should be either on cpu or on the same device as the "
                    f"indexed tensor ({self.device}), but got some on {value.device}"
                )
            return value

        return mapped(taken, index)


def in_one_kernel(name: str, function: Callable[..., Any], *args: Any) -> Any:
    """Call a function that looks at elements, without having the host wait for them.

    For what decides by elements what to do, but not the shape or dtype of what it
    returns. On the CPU it is a call like any other.

    Args:
        name: Name of the kernel in traces and errors.
        function: Of NumPy's arrays and plain values; changes none of them. It may be
            tried on zeros first. What it raises, a device tells of later.
        *args: Its arguments; arrays may be in tuples.
    """
    for arg in args:
        if isinstance(arg, WrappedArray):
            return arg.call_whole(name, function, args)
    return function(*args)


def check_elements(name: str, check: Callable[..., None], *args: Any) -> None:
    """Call a function that raises on invalid elements.

    At once on the CPU. An accelerator does it in its own time, and what it raises is
    told of at a later call: so does PyTorch, by device-side asserts. What is computed
    from such elements meanwhile is undefined.

    Args:
        name: Name of the kernel in traces and errors.
        check: Of NumPy's arrays and plain values.
        *args: Its arguments.
    """
    for arg in args:
        if isinstance(arg, WrappedArray):
            arg.check_elements(name, check, args)
            return
    check(*args)


def mapped(function: Callable[[Any], Any], value: Any) -> Any:
    """`function` of a value, or of those in a list, a tuple, a dict of it.

    `call` counts how deep it is, also compiled.
    """
    if isinstance(value, tuple) and hasattr(value, "_make"):  # a named tuple
        return value._make(call(mapped, function, one) for one in value)
    if type(value) in (list, tuple):
        return type(value)(call(mapped, function, one) for one in value)
    if type(value) is dict:
        return {name: call(mapped, function, one) for name, one in value.items()}
    return function(value)


def _method(name: str) -> Callable[..., Any]:
    def call(array: Any, *args: Any, **kwargs: Any) -> Any:
        return getattr(array, name)(*args, **kwargs)

    call.__name__ = name
    return call


def _attribute(name: str) -> Callable[[Any], Any]:
    def call(array: Any) -> Any:
        return getattr(array, name)

    call.__name__ = name
    return call


def _index(array: Any, index: Any) -> Any:
    return array[index]


def _index_put(array: Any, index: Any, value: Any) -> None:
    array[index] = value
