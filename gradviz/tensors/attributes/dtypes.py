"""The dtypes under PyTorch's names.

They stand for NumPy's: wherever NumPy takes a dtype it takes one of these, and each is
equal to NumPy's own.
"""

from typing import Any, Final

import numpy as np


class DType:
    """The type of a tensor's elements; there is one object of each.

    Attributes:
        dtype: NumPy's; by this name NumPy looks for it.
        is_floating_point: True if the elements are floats.
        is_complex: True if they are complex numbers.
        is_signed: True if they may be negative.
        itemsize: Bytes of one.
        kind: NumPy's letter for what they are: b, i, u, f or c.
        name: NumPy's name.

    Source: torch.dtype.
    """

    __slots__ = (
        "dtype",
        "is_complex",
        "is_floating_point",
        "is_signed",
        "itemsize",
        "kind",
        "name",
    )

    def __init__(self, dtype: np.dtype[Any]) -> None:
        self.dtype = dtype
        self.kind: str = dtype.kind
        self.name = dtype.name
        self.itemsize = dtype.itemsize
        self.is_floating_point = self.kind == "f"
        self.is_complex = self.kind == "c"
        self.is_signed = self.kind in "ifc"

    def to_complex(self) -> "DType":
        """Return the complex dtype with parts of this one."""
        return dtype_of(np.result_type(self.dtype, np.complex64))

    def to_real(self) -> "DType":
        """The dtype of the parts of a complex one."""
        return dtype_of(np.empty(0, self.dtype).real.dtype)

    def __eq__(self, other: object) -> bool:
        if isinstance(other, DType):
            return self is other
        try:
            return bool(self.dtype == other)
        except TypeError:
            return False

    def __hash__(self) -> int:
        return hash(self.dtype)

    def __repr__(self) -> str:
        return f"gradviz.{self.name}"

    def __reduce__(self) -> tuple[Any, ...]:
        return dtype_of, (self.dtype,)


def dtype_of(dtype: np.dtype[Any]) -> DType:
    """Return the `DType` of one of NumPy's dtypes."""
    known = _KNOWN.get(dtype)
    if known is None:
        known = _KNOWN.setdefault(dtype, DType(dtype))
    return known


_KNOWN: Final[dict[np.dtype[Any], DType]] = {}

float16: Final = dtype_of(np.dtype(np.float16))
float32: Final = dtype_of(np.dtype(np.float32))
float64: Final = dtype_of(np.dtype(np.float64))
half, float_, double = float16, float32, float64
complex64: Final = dtype_of(np.dtype(np.complex64))
complex128: Final = dtype_of(np.dtype(np.complex128))
cfloat, cdouble = complex64, complex128
uint8: Final = dtype_of(np.dtype(np.uint8))
int8: Final = dtype_of(np.dtype(np.int8))
int16: Final = dtype_of(np.dtype(np.int16))
int32: Final = dtype_of(np.dtype(np.int32))
int64: Final = dtype_of(np.dtype(np.int64))
short, int_, long = int16, int32, int64
bool_: Final = dtype_of(np.dtype(np.bool_))
