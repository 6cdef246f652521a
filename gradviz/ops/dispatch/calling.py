"""Other ways to call a function than by its own signature."""

from collections.abc import Callable
from functools import wraps
from typing import Any, ParamSpec, TypeVar

P = ParamSpec("P")
R = TypeVar("R")


def by_input(method: Callable[..., R]) -> Callable[..., R]:
    """Return a method as a function that accepts its first argument as ``input``."""

    @wraps(method)
    def call(input: Any, *args: Any, **kwargs: Any) -> R:  # noqa: ANN401 - whatever `method` takes
        return method(input, *args, **kwargs)

    return call


def numpy_names(function: Callable[P, R]) -> Callable[P, R]:
    """Let `function` be called with ``axis`` and ``keepdims``; a decorator.

    They are NumPy's names of `dim` and `keepdim`.
    Source: torch/csrc/utils/python_arg_parser.cpp, numpy_compatibility_arg_names.
    """

    @wraps(function)
    def renaming(*args: P.args, **kwargs: P.kwargs) -> R:
        if kwargs:
            if "axis" in kwargs:
                kwargs["dim"] = kwargs.pop("axis")
            if "keepdims" in kwargs:
                kwargs["keepdim"] = kwargs.pop("keepdims")
        return function(*args, **kwargs)

    return renaming
