"""The dtypes under PyTorch's names: they are NumPy's."""

from typing import Final

import numpy as np

float16: Final = np.dtype(np.float16)
float32: Final = np.dtype(np.float32)
float64: Final = np.dtype(np.float64)
half, float_, double = float16, float32, float64
complex64: Final = np.dtype(np.complex64)
complex128: Final = np.dtype(np.complex128)
uint8: Final = np.dtype(np.uint8)
int8: Final = np.dtype(np.int8)
int16: Final = np.dtype(np.int16)
int32: Final = np.dtype(np.int32)
int64: Final = np.dtype(np.int64)
long: Final = int64
bool_: Final = np.dtype(np.bool_)
