"""The limits of dtypes: `finfo` of floats, `iinfo` of integers."""

from typing import Any, Final

import numpy as np

from gradviz.ops.conventions.promotion import DTypeLike, get_default_dtype


class Limits:
    """Base of `finfo` and `iinfo`, which are equal if their dtypes are."""

    __slots__ = ("dtype",)

    #: Instances are compared, and were never hashed.
    __hash__: Final = None  # type: ignore[assignment]

    dtype: str

    @property
    def bits(self) -> int:
        """Number of bits; of a complex dtype, of each part."""
        return 8 * np.dtype(self.dtype).itemsize

    def __eq__(self, other: object) -> bool:
        return type(other) is type(self) and other.dtype == self.dtype


class finfo(Limits):  # noqa: N801 - PyTorch's name
    """Limits of a dtype of floats, or of the parts of a complex one.

    Args:
        type: The dtype; the default one if it is left out.

    Attributes:
        dtype: The name of the floats' dtype.
        max: The largest number.
        min: The smallest number.
        eps: The distance from 1 to the next number.
        smallest_normal: The smallest positive number of full precision.
        tiny: The same.
        resolution: Ten to the number of exact decimal digits, negative.

    Raises:
        TypeError: It is not a dtype of floats.

    Source: torch/csrc/TypeInfo.cpp.
    """

    __slots__ = ("eps", "max", "min", "resolution", "smallest_normal", "tiny")

    def __init__(self, type: DTypeLike = None) -> None:  # noqa: A002 - PyTorch's name
        dtype = get_default_dtype() if type is None else _dtype("finfo", type)
        if dtype.kind not in "fc":
            raise TypeError(
                "finfo() requires a floating point input type. Use iinfo to handle "
                f"'{dtype.name}'"
            )
        limits = np.finfo(dtype)
        self.dtype = limits.dtype.name
        self.max, self.min = float(limits.max), float(limits.min)
        self.eps = float(limits.eps)
        self.smallest_normal = self.tiny = float(limits.smallest_normal)
        self.resolution = 10.0**-limits.precision

    def __repr__(self) -> str:
        names = ("resolution", "min", "max", "eps", "smallest_normal", "tiny")
        limits = ", ".join(f"{name}={getattr(self, name):g}" for name in names)
        return f"finfo({limits}, dtype={self.dtype})"


class iinfo(Limits):  # noqa: N801 - PyTorch's name
    """Limits of a dtype of integers.

    Args:
        type: The dtype.

    Attributes:
        dtype: Its name.
        max: The largest number.
        min: The smallest number.

    Raises:
        TypeError: It is not a dtype of integers.

    Source: torch/csrc/TypeInfo.cpp.
    """

    __slots__ = ("max", "min")

    def __init__(self, type: DTypeLike) -> None:  # noqa: A002 - PyTorch's name
        dtype = _dtype("iinfo", type)
        if dtype.kind == "b":
            raise TypeError(f"{dtype.name} is not supported by iinfo")
        if dtype.kind not in "iu":
            raise TypeError(
                "iinfo() requires an integer input type. Use finfo to handle "
                f"'{dtype.name}'"
            )
        limits = np.iinfo(dtype)
        self.dtype = dtype.name
        self.max, self.min = int(limits.max), int(limits.min)

    def __repr__(self) -> str:
        return f"iinfo(min={self.min:g}, max={self.max:g}, dtype={self.dtype})"


def _dtype(function: str, given: DTypeLike) -> np.dtype[Any]:
    if isinstance(given, str):  # NumPy would take some
        raise TypeError(
            f"{function}(): argument 'type' (position 1) must be gradviz.dtype, not str"
        )
    return np.dtype(given)
