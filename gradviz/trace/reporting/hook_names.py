"""Names of hooks: which function one is, and where it is defined and was registered.

A hook is a callable of the program. Nothing here calls it, compares it or asks it for
an attribute that the program may compute.
"""

import functools
from collections.abc import Callable
from types import BuiltinFunctionType, CodeType, FunctionType, MethodType
from typing import Any, Final, NamedTuple

from gradviz.trace.reporting.location import Locations

#: Finds the line that registers a hook. Any thread.
LINES: Final[Locations[str]] = Locations(lambda text: text)

#: The attribute of a wrapper of gradviz with the line that registered what it wraps.
REGISTERED_AT: Final = "registered_at"

#: A function that Cython has compiled; its attributes are those of a function.
_COMPILED: Final = "cython_function_or_method"

#: Reads the function of a partial, whatever a subclass of it computes.
_FUNC_OF_PARTIAL: Final = vars(functools.partial)["func"].__get__

#: No more wrappers are looked through.
_MAX_WRAPPERS: Final = 20


class RegisteredHook(NamedTuple):
    """A hook of a module.

    Attributes:
        call: The hook itself.
        registered_at: The line that registered it.
    """

    call: Callable[..., Any]
    registered_at: str = ""


class HookName(NamedTuple):
    """Names of a hook, each empty where it is not known.

    Attributes:
        function: Its qualified name.
        defined_at: The line of its definition, ``path:line``.
        registered_at: The line that registered it.
        target: The module that it was registered on, if it was one.
    """

    function: str = ""
    defined_at: str = ""
    registered_at: str = ""
    target: str = ""


def name_of(hook: Any, target: str = "") -> HookName:  # noqa: ANN401 - anything callable
    """Return the names of a hook as the engine has it. Any thread."""
    registered_at = ""
    if type(hook) is RegisteredHook:
        hook, registered_at = hook
    elif _is_function(hook):
        registered_at = vars(hook).get(REGISTERED_AT, "")
    function, code = _function_of(unwrapped(hook))
    defined_at = "" if code is None else f"{code.co_filename}:{code.co_firstlineno}"
    return HookName(function, defined_at, registered_at, target)


def unwrapped(hook: Any) -> Any:  # noqa: ANN401 - anything callable
    """Return the function that the program wrote, below partials and decorators."""
    for _ in range(_MAX_WRAPPERS):
        if issubclass(type(hook), functools.partial):
            hook = _FUNC_OF_PARTIAL(hook)
        elif _is_function(hook) and "__wrapped__" in vars(hook):
            hook = vars(hook)["__wrapped__"]
        else:
            break
    return hook


def _function_of(hook: Any) -> tuple[str, CodeType | None]:  # noqa: ANN401
    if type(hook) is MethodType:
        hook = hook.__func__
    if type(hook) is FunctionType:
        return hook.__qualname__, hook.__code__
    if type(hook) is BuiltinFunctionType or _is_function(hook):
        return str(hook.__qualname__), None
    kind = type(hook)
    methods = (vars(one).get("__call__") for one in kind.__mro__)
    call = next(filter(None, methods), None)
    code = call.__code__ if isinstance(call, FunctionType) else None
    return kind.__qualname__, code


def _is_function(hook: object) -> bool:
    return type(hook) is FunctionType or type(hook).__name__ == _COMPILED
