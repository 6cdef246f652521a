"""What becomes of the losses of a batch: their mean, their sum, or nothing."""

import warnings
from collections.abc import Callable
from functools import wraps
from typing import Literal, ParamSpec, TypeAlias, TypeVar

from gradviz.backends.base import Array
from gradviz.ops.recording.variable import Value
from gradviz.ops.reductions.reduction import mean, total
from gradviz.ops.reductions.reduction import sum as sum_of

#: What is made of the losses of a batch.
Reduction: TypeAlias = Literal["mean", "sum", "none"]

P = ParamSpec("P")
R = TypeVar("R")


def reduced(losses: Value, reduction: str) -> Value:
    """The losses as the caller wants them."""
    match reduction:
        case "mean":
            return mean(losses)
        case "sum":
            return sum_of(losses)
        case _:
            return losses


def reduced_array(losses: Array, reduction: str) -> Array:
    """`reduced` of a raw array, inside a forward."""
    match reduction:
        case "mean":
            return total(losses, None, keepdim=False, dtype=None) / losses.size
        case "sum":
            return total(losses, None, keepdim=False, dtype=None)
        case _:
            return losses


def share(reduction: str, size: int) -> float:
    """What part of the gradient of a loss goes to each of `size` losses."""
    return 1 / size if reduction == "mean" and size else 1


def check_reduction(reduction: str) -> None:
    """Refuse a reduction that there is none of.

    Raises:
        ValueError: It is none of "mean", "sum" and "none".
    """
    if reduction not in ("mean", "sum", "none"):
        raise ValueError(f"{reduction} is not a valid value for reduction")


def old_names(function: Callable[P, R]) -> Callable[P, R]:
    """Let a loss also be called with ``size_average`` and ``reduce``; a decorator.

    Source: torch/nn/_reduction.py, legacy_get_string.
    """

    @wraps(function)
    def renaming(*args: P.args, **kwargs: P.kwargs) -> R:
        if "size_average" in kwargs or "reduce" in kwargs:
            average, reduce = (
                kwargs.pop("size_average", None),
                kwargs.pop("reduce", None),
            )
            if average is not None or reduce is not None:
                kwargs["reduction"] = _named(average, reduce)
        return function(*args, **kwargs)

    return renaming


def _named(average: object, reduce: object) -> str:
    """The reduction that the old arguments mean, with a warning."""
    reduction = "mean" if average is not False else "sum"
    reduction = "none" if reduce is False else reduction
    warnings.warn(
        f"size_average and reduce args will be deprecated, please use "
        f"reduction='{reduction}' instead.",
        UserWarning,
        stacklevel=3,
    )
    return reduction
