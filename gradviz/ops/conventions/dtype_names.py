"""Names of dtypes in PyTorch's messages."""

from typing import Any, Final, Protocol

import numpy as np


class NamedDType(Protocol):
    """A dtype: NumPy's, or a stand-in for one."""

    @property
    def name(self) -> str:
        """NumPy's name."""


_SCALAR_TYPES: Final = {
    "bool": "Bool",
    "uint8": "Byte",
    "int8": "Char",
    "int16": "Short",
    "int32": "Int",
    "int64": "Long",
    "float16": "Half",
    "float32": "Float",
    "float64": "Double",
    "complex64": "ComplexFloat",
    "complex128": "ComplexDouble",
}

_CPP_TYPES: Final = {
    "bool": "bool",
    "uint8": "unsigned char",
    "int8": "signed char",
    "int16": "short int",
    "int32": "int",
    "int64": "long int",
    "float16": "c10::Half",
    "float32": "float",
    "float64": "double",
    "complex64": "c10::complex<float>",
    "complex128": "c10::complex<double>",
}


def scalar_type_name(dtype: NamedDType) -> str:
    """The name of a ScalarType: float32 is ``Float``."""
    return _SCALAR_TYPES.get(dtype.name, dtype.name)


def cpp_name(dtype: np.dtype[Any]) -> str:
    """The name of the C++ type of an element: float32 is ``float``."""
    return _CPP_TYPES.get(dtype.name, dtype.name)
