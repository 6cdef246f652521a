"""Questions about tensors and dtypes, and the numbers that PyTorch has by name."""

import math
from typing import Any, Final

import numpy as np

from gradviz.ops.conventions import promotion
from gradviz.ops.conventions.promotion import DTypeLike, result_dtype
from gradviz.ops.dispatch.calling import by_input
from gradviz.tensors.attributes.dtypes import DType, dtype_of
from gradviz.tensors.tensor import Tensor

#: The class of dtypes.
dtype = DType

pi: Final = math.pi
e: Final = math.e
inf: Final = math.inf
nan: Final = math.nan
newaxis: Final = None


is_nonzero = by_input(Tensor.is_nonzero)
is_same_size = by_input(Tensor.is_same_size)
is_signed = by_input(Tensor.is_signed)
is_conj = by_input(Tensor.is_conj)
is_neg = by_input(Tensor.is_neg)


def is_tensor(obj: object) -> bool:
    """Return whether `obj` is a tensor."""
    return isinstance(obj, Tensor)


def is_floating_point(input: Tensor) -> bool:  # noqa: A002 - PyTorch's name
    """Return whether the elements are floats."""
    return input.dtype.kind == "f"


def numel(input: Tensor) -> int:  # noqa: A002 - PyTorch's name
    """Number of elements."""
    return input.numel()


def get_default_dtype() -> DType:
    """The dtype of tensors made from Python's floats."""
    return dtype_of(promotion.get_default_dtype())


def are_deterministic_algorithms_enabled() -> bool:
    """Return whether ops do the same each time: always True."""
    return True


def use_deterministic_algorithms(mode: bool, *, warn_only: bool = False) -> None:
    """Accepted: there are no others.

    Args:
        mode: Makes no difference.
        warn_only: Makes no difference.
    """
    del mode, warn_only


def promote_types(type1: DTypeLike, type2: DTypeLike) -> DType:
    """The smallest dtype of the higher kind of the two that holds both."""
    return dtype_of(result_dtype(np.empty(1, type1), np.empty(1, type2)))


def result_type(tensor1: Any, tensor2: Any) -> DType:  # noqa: ANN401 - or a number
    """The dtype in which an op on the two computes.

    Args:
        tensor1: A tensor or a Python number.
        tensor2: A tensor or a Python number.
    """
    one, other = (x.array if isinstance(x, Tensor) else x for x in (tensor1, tensor2))
    return dtype_of(result_dtype(one, other))


def can_cast(from_: DTypeLike, to: DTypeLike) -> bool:
    """Return whether a result of one dtype may go into memory of the other."""
    kinds = "buifc"
    source, target = np.dtype(from_), np.dtype(to)
    if source.kind == "i" and target.kind == "u":
        return False
    return kinds.index(source.kind) <= kinds.index(target.kind) or (
        source.kind in "ui" and target.kind in "ui"
    )
