"""A function with recorded calls, for recordings that decorate one."""

import functools
import inspect
import os
from collections.abc import Callable
from contextlib import AbstractContextManager
from typing import Any, TypeVar

Function = TypeVar("Function", bound=Callable[..., Any])


def recorded_function(
    function: Function, begin: Callable[[], AbstractContextManager[object]]
) -> Function:
    """Return a function that does the same, each call within a recording of its own.

    The last of them is its attribute `recording`, None before the first call.

    Raises:
        TypeError: It is not a function whose work is done when a call returns.
    """
    _check_is_function(function)

    if inspect.iscoroutinefunction(function):

        @functools.wraps(function)
        async def within(*args: Any, **kwargs: Any) -> Any:  # noqa: ANN401
            with begin() as within.recording:  # type: ignore[attr-defined]
                return await function(*args, **kwargs)

    else:

        @functools.wraps(function)
        def within(*args: Any, **kwargs: Any) -> Any:  # noqa: ANN401
            with begin() as within.recording:  # type: ignore[attr-defined]
                return function(*args, **kwargs)

    within.recording = None  # type: ignore[attr-defined]
    return within  # type: ignore[return-value]


def check_is_no_function(path: object) -> None:
    """Refuse a function where the path of a recording stands.

    Raises:
        TypeError: It is one: a decorator was written without parentheses.
    """
    if callable(path) and not isinstance(path, os.PathLike):
        raise TypeError(
            f"got the function {getattr(path, '__name__', path)} as the path of a "
            f"recording; as a decorator write @gv.record(), with parentheses"
        )


def _check_is_function(function: object) -> None:
    """Refuse an object without recordable calls."""
    if inspect.isgeneratorfunction(function) or inspect.isasyncgenfunction(function):
        what = f"the generator {function.__name__}, whose work is done after the call"
    elif isinstance(function, type):
        what = f"the class {function.__name__}"
    elif callable(function):
        return
    else:
        what = f"{type(function).__name__}"
    raise TypeError(
        f"a recording decorates functions, got {what}; use 'with gv.record(...):' "
        f"around what is to be recorded"
    )
