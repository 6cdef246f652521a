"""Operations that change a tensor in place.

Where no graph is recorded, the memory changes. Where one is, the tensor takes over the
result of the op out of place, with its place in the graph: what earlier ops saved stays
intact. Differs: PyTorch writes to the memory in both cases, finds out by version
counters whether something saved was overwritten, and updates the graph of views.
"""

from typing import Any, TypeAlias, TypeVar

import numpy as np

from gradviz.engine.grad_mode import GRAD_ENABLED
from gradviz.engine.ownership import owns_its_memory
from gradviz.ops.differentiable import Op
from gradviz.ops.promotion import operand
from gradviz.ops.variable import Value, Variable

V = TypeVar("V", bound=Variable)

#: What may stand in brackets.
Index: TypeAlias = Any


def update(
    x: V,
    other: Value,
    op: Op,
    ufunc: np.ufunc,
) -> V:
    """``x op= other``.

    Args:
        x: What changes.
        other: The second operand.
        op: The differentiable op.
        ufunc: What it computes.

    Raises:
        RuntimeError: `x` is a leaf that needs gradients; it is a view and a graph is
            recorded; or the result has another shape or kind of dtype.
    """
    if records(x, other):
        refuse_leaf(x)
        adopt(x, op(x, other))
        return x
    value = other.array if isinstance(other, Variable) else operand(other)
    try:
        ufunc(x.array, value, out=x.array, casting="same_kind")
    except (TypeError, ValueError) as error:
        raise RuntimeError(
            f"the result of {ufunc.__name__} in place does not fit a tensor of shape "
            f"{list(x.array.shape)} and dtype {x.array.dtype}: {error}"
        ) from error
    return x


def write(x: Variable, index: Index, value: Value) -> None:
    """``x[index] = value``, where no graph is recorded.

    Raises:
        RuntimeError: One would be.
    """
    if records(x, value):
        refuse_leaf(x)
        raise RuntimeError(
            "assigning to elements of a tensor while gradients are recorded is not "
            "supported; build the result with where, cat or stack, or assign under "
            "no_grad()"
        )
    x.array[_raw_index(index)] = value.array if isinstance(value, Variable) else value


def records(x: Variable, *others: object) -> bool:
    """Whether an op in place on `x` would become part of a graph."""
    return GRAD_ENABLED.get() and any(
        isinstance(one, Variable) and one.needs_grad for one in (x, *others)
    )


def refuse_leaf(x: Variable) -> None:
    """Raise PyTorch's error if `x` is a leaf that needs gradients."""
    if x.needs_grad and x.is_leaf:
        raise RuntimeError(
            "a leaf Variable that requires grad is being used in an in-place operation."
        )


def adopt(x: Variable, result: Variable) -> None:
    """Make `x` what `result` is: its elements and its place in the graph."""
    if not owns_its_memory(x.array):
        raise RuntimeError(
            "an in-place operation on a view while gradients are recorded is not "
            "supported: the tensor it views would not change; write it out of place"
        )
    if result.array.shape != x.array.shape:
        raise RuntimeError(
            f"output with shape {list(x.array.shape)} doesn't match the broadcast "
            f"shape {list(result.array.shape)}"
        )
    x.array, x.edge, x.needs_grad = result.array, result.edge, result.needs_grad


def _raw_index(index: Index) -> Index:
    if isinstance(index, tuple):
        return tuple(map(_raw_index, index))
    return index.array if isinstance(index, Variable) else index
