"""Options of optimizers, and checks of their values."""

from collections.abc import Sequence
from typing import Any, TypedDict


class Implementation(TypedDict, total=False):
    """PyTorch's options of how a step is computed, which make no difference here.

    Attributes:
        foreach: All parameters at once.
        fused: All that a step does at once.
        capturable: So that it can be captured in a CUDA graph.
        differentiable: As part of a graph; refused.
    """

    foreach: bool | None
    fused: bool | None
    capturable: bool
    differentiable: bool


def all_options(
    kind: str, known: Sequence[str], implementation: Implementation
) -> dict[str, Any]:
    """All options of `Implementation` that an optimizer has, given or not.

    Args:
        kind: Of optimizer.
        known: Options that it has.
        implementation: Options that are given.

    Raises:
        TypeError: One is given that there is not.
        ValueError: A differentiable step is wanted.
    """
    for name in implementation:
        if name not in known:
            raise TypeError(
                f"{kind}.__init__() got an unexpected keyword argument '{name}'"
            )
    if implementation.get("differentiable"):
        raise ValueError(
            f"{kind}: differentiable=True is not supported, for a step is no part of "
            f"any graph"
        )
    nothing = {"foreach": None, "fused": None}
    return {name: implementation.get(name, nothing.get(name, False)) for name in known}


def check_adam(
    lr: float, betas: tuple[float, float], eps: float, weight_decay: float
) -> None:
    """Refuse values with which no kind of Adam works.

    Raises:
        ValueError: An option is out of range.
    """
    check_not_negative("learning rate", lr)
    check_not_negative("epsilon value", eps)
    check_betas(betas)
    check_not_negative("weight_decay value", weight_decay)


def check_betas(betas: tuple[float, float]) -> None:
    """Refuse values that are no weight of a running mean.

    Raises:
        ValueError: One is out of range.
    """
    for index, beta in enumerate(betas):
        if not 0.0 <= beta < 1.0:
            raise ValueError(f"Invalid beta parameter at index {index}: {beta}")


def check_not_negative(what: str, value: float) -> None:
    """Refuse a negative option.

    Raises:
        ValueError: It is negative.
    """
    if not value >= 0:
        raise ValueError(f"Invalid {what}: {value}")
