"""``FloatTensor`` and its like: PyTorch's former types of tensors on the CPU.

Old programs still make tensors with them, and ask for instances.
"""

from typing import Any, Final

import numpy as np

from gradviz.backends.device import CPU
from gradviz.tensors.attributes import dtypes
from gradviz.tensors.attributes.dtypes import DType
from gradviz.tensors.methods.likewise import constructed
from gradviz.tensors.tensor import Tensor


class _OfDtype(type):
    """Such a class; calling it makes a tensor as `Tensor.new` does."""

    dtype: np.dtype[Any]

    def __call__(cls, *data: Any) -> Tensor:  # noqa: ANN401 - lengths, or elements
        return constructed(data, cls.dtype, CPU)

    def __instancecheck__(cls, instance: object) -> bool:
        return (
            isinstance(instance, Tensor)
            and instance.dtype == cls.dtype
            and instance.device is CPU
        )


def _of(name: str, dtype: DType) -> _OfDtype:
    made = _OfDtype(name, (), {"__doc__": f"Tensors of {dtype} on the CPU."})
    made.dtype = dtype.dtype
    return made


HalfTensor: Final = _of("HalfTensor", dtypes.float16)
FloatTensor: Final = _of("FloatTensor", dtypes.float32)
DoubleTensor: Final = _of("DoubleTensor", dtypes.float64)
ByteTensor: Final = _of("ByteTensor", dtypes.uint8)
CharTensor: Final = _of("CharTensor", dtypes.int8)
ShortTensor: Final = _of("ShortTensor", dtypes.int16)
IntTensor: Final = _of("IntTensor", dtypes.int32)
LongTensor: Final = _of("LongTensor", dtypes.int64)
BoolTensor: Final = _of("BoolTensor", dtypes.bool_)
