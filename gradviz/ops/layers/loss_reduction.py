"""Reduction of the losses of a batch: their mean, their sum, or none."""

import inspect
import warnings
from collections.abc import Callable, Sequence
from functools import wraps
from typing import Any, Literal, ParamSpec, TypeAlias, TypeVar

from gradviz.backends.base import Array
from gradviz.ops.reductions.reduction import mean, total
from gradviz.ops.reductions.reduction import sum as sum_of
from gradviz.ops.variables.variable import Value

#: Result made of the losses of a batch.
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
    """Return the share of a loss's gradient that each of `size` losses gets."""
    return 1 / size if reduction == "mean" and size else 1


def check_reduction(reduction: str) -> None:
    """Refuse a reduction that there is none of.

    Raises:
        ValueError: It is none of "mean", "sum" and "none".
    """
    if reduction not in ("mean", "sum", "none"):
        raise ValueError(f"{reduction} is not a valid value for reduction")


def old_names(
    *order: str,
) -> Callable[[Callable[P, R]], Callable[..., R]]:
    """Let a loss also be called with ``size_average`` and ``reduce``; a decorator.

    Args:
        *order: Parameters that PyTorch's function takes by position after those of this
            one: the two, and names that are keywords here.

    Source: torch/nn/_reduction.py, legacy_get_string.
    """

    def decorate(function: Callable[P, R]) -> Callable[..., R]:
        own = function.__code__.co_argcount

        @wraps(function)
        def renaming(*args: Any, **kwargs: Any) -> R:  # noqa: ANN401 - as PyTorch
            if len(args) > own or "size_average" in kwargs or "reduce" in kwargs:
                _take_by_name(function.__name__, order, args[own:], kwargs)
                average = kwargs.pop("size_average", None)
                reduce = kwargs.pop("reduce", None)
                given = kwargs.get("reduction", "mean")
                kwargs["reduction"] = chosen_reduction(average, reduce, given)
            return function(*args[:own], **kwargs)

        renaming.__signature__ = _with_old_names(function, order)  # type: ignore[attr-defined]
        return renaming

    return decorate


def chosen_reduction(
    size_average: bool | None, reduce: bool | None, reduction: str
) -> str:
    """The reduction that is meant; the older arguments go first, with a warning."""
    if size_average is None and reduce is None:
        return reduction
    reduction = "sum" if size_average is False else "mean"
    reduction = "none" if reduce is False else reduction
    warnings.warn(
        f"size_average and reduce args will be deprecated, please use "
        f"reduction='{reduction}' instead.",
        UserWarning,
        stacklevel=3,
    )
    return reduction


def _take_by_name(
    function: str, order: Sequence[str], more: Sequence[Any], kwargs: dict[str, Any]
) -> None:
    """Convert positional arguments to keyword arguments."""
    if len(more) > len(order):
        raise TypeError(
            f"{function}() was given {len(more) - len(order)} positional arguments too "
            f"many"
        )
    for name, value in zip(order, more, strict=False):
        if name in kwargs:
            raise TypeError(f"{function}() got multiple values for argument '{name}'")
        kwargs[name] = value


def _with_old_names(
    function: Callable[..., Any], order: Sequence[str]
) -> inspect.Signature:
    """The signature that PyTorch's function has."""
    signature = inspect.signature(function)
    own = dict(signature.parameters)
    later = [
        inspect.Parameter(
            name,
            inspect.Parameter.POSITIONAL_OR_KEYWORD,
            default=own.pop(name).default if name in own else None,
        )
        for name in order
    ]
    return signature.replace(parameters=[*own.values(), *later])
