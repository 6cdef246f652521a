"""The arguments of a call, looked through once for all that a launch has to know."""

from collections.abc import Callable, Mapping, Sequence
from operator import call
from types import EllipsisType
from typing import Any, Final

import numpy as np
from numpy import generic, ndarray  # in one step: each launch asks

from gradviz.backends.simulated.arrays.device_array import DeviceArray

#: Types of which a key has the value.
_PLAIN: Final = (int, str, type, np.dtype, EllipsisType)

#: In a key, what is more than a key could say: it cannot be hashed.
_NO_KEY: Final[list[Any]] = []

_NONE: Final[dict[str, Any]] = {}


class Operands:
    """The arguments of a call.

    Attributes:
        arrays: Those of devices, also in lists and tuples.
        args: The arguments as the kernel gets them: memory of the device, copies of
            the host's,
        kwargs: and by name.
        key: The function and what the form of its result depends on: first `args`,
            then `kwargs`. It can be hashed unless that is more than a key could say.
    """

    __slots__ = ("args", "arrays", "key", "kwargs")

    arrays: list[DeviceArray]
    args: list[Any]
    kwargs: Mapping[str, Any]
    key: tuple[Any, ...]


def operands(
    function: Callable[..., Any], args: tuple[Any, ...], kwargs: Mapping[str, Any]
) -> Operands:
    """The arguments of a call of `function`."""
    arrays: list[DeviceArray] = []
    key: list[Any] = [function]
    given = Operands.__new__(Operands)  # when compiled: new
    given.arrays = arrays
    given.args = [_taken(value, arrays, key) for value in args]
    given.kwargs = _NONE
    if kwargs:
        named = {}
        for name, value in kwargs.items():
            key.append(name)
            named[name] = _taken(value, arrays, key)
        given.kwargs = named
    given.key = tuple(key)
    return given


def raw_value(value: Any) -> Any:
    """Return a value as a kernel gets it."""
    return _taken(value, [], [])


def _taken(value: Any, arrays: list[DeviceArray], key: list[Any]) -> Any:
    """Return a value as a kernel gets it, and note its arrays and key."""
    if isinstance(value, DeviceArray):
        arrays.append(value)
        key.append(value.form)
        return value.raw
    kind = type(value)
    if kind is tuple or kind is list:
        inner: list[Any] = [kind]
        raws = call(_each, value, arrays, inner)  # when compiled: depth
        key.append(tuple(inner))
        return kind(raws)
    key.append(_key(value, kind))
    return value.copy() if isinstance(value, ndarray) else value


def _each(
    values: Sequence[Any], arrays: list[DeviceArray], key: list[Any]
) -> list[Any]:
    """Values that a kernel gets for those in a list or a tuple."""
    return [_taken(one, arrays, key) for one in values]


def _key(value: Any, kind: type) -> Any:
    """Return the part of a key for a value that is not an array of a device's."""
    if kind is float or kind is complex:
        return kind
    if value is None or isinstance(value, _PLAIN):
        return kind, value
    if isinstance(value, generic) or (kind is ndarray and not value.ndim):
        return kind, value.dtype, value.item() if value.dtype.kind in "iub" else None
    inner: list[Any] = [kind]
    if kind is slice:
        value = value.start, value.stop, value.step
    elif not isinstance(value, tuple):  # a named one: NumPy's
        return _NO_KEY
    call(_each, value, [], inner)
    return tuple(inner)
