"""Questions about tensors and dtypes, and the numbers that PyTorch has by name."""

import math
from typing import Any, Final

import numpy as np

from gradviz.ops.recording.promotion import DTypeLike, result_dtype
from gradviz.tensors.tensor import Tensor

#: Limits of floating-point and integer dtypes.
finfo, iinfo = np.finfo, np.iinfo

#: The class of dtypes.
dtype = np.dtype

pi: Final = math.pi
e: Final = math.e
inf: Final = math.inf
nan: Final = math.nan
newaxis: Final = None


def is_tensor(obj: object) -> bool:
    """Whether `obj` is a tensor."""
    return isinstance(obj, Tensor)


def is_floating_point(input: Tensor) -> bool:  # noqa: A002 - PyTorch's name
    """Whether the elements are floats."""
    return input.dtype.kind == "f"


def numel(input: Tensor) -> int:  # noqa: A002 - PyTorch's name
    """Number of elements."""
    return input.numel()


def promote_types(type1: DTypeLike, type2: DTypeLike) -> np.dtype[Any]:
    """The smallest dtype of the higher kind of the two that holds both."""
    return result_dtype(np.empty(1, type1), np.empty(1, type2))


def result_type(tensor1: Any, tensor2: Any) -> np.dtype[Any]:  # noqa: ANN401 - or a number
    """The dtype in which an op on the two computes.

    Args:
        tensor1: A tensor or a Python number.
        tensor2: Likewise.
    """
    one, other = (x.array if isinstance(x, Tensor) else x for x in (tensor1, tensor2))
    return result_dtype(one, other)


def can_cast(from_: DTypeLike, to: DTypeLike) -> bool:
    """Whether a result of one dtype may go into memory of the other."""
    kinds = "buifc"
    source, target = np.dtype(from_), np.dtype(to)
    if source.kind == "i" and target.kind == "u":
        return False
    return kinds.index(source.kind) <= kinds.index(target.kind) or (
        source.kind in "ui" and target.kind in "ui"
    )
