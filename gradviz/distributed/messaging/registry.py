"""The functions that other workers may call, by their names."""

from collections.abc import Callable
from typing import Any, Final, TypeVar

from gradviz.distributed.messaging.values import ValueNotSentError

F = TypeVar("F", bound=Callable[..., Any])

_FUNCTIONS: Final[dict[str, Callable[..., Any]]] = {}
_NAMES: Final[dict[Callable[..., Any], str]] = {}


def register(function: F, name: str | None = None) -> F:
    """Let other workers call `function`; a decorator.

    Args:
        function: Or a class; at the top level of a module, the same on all workers.
        name: Name that messages call it by; the names of its module and its own, if
            None.

    Raises:
        ValueError: Another function has that name.
    """
    if name is None:
        name = f"{function.__module__}.{function.__qualname__}"
    known = _FUNCTIONS.setdefault(name, function)
    if known is not function and _code(known) is not _code(function):
        raise ValueError(f"another function is registered as {name!r}: name one anew")
    _FUNCTIONS[name] = function
    _NAMES[function] = name
    return function


def name_of_function(function: Callable[..., Any] | str) -> str:
    """Return the name of a function in messages.

    Raises:
        ValueNotSentError: It is not registered.
    """
    if isinstance(function, str):
        return function
    name = _NAMES.get(function)
    if name is None:
        raise ValueNotSentError(
            f"{getattr(function, '__qualname__', function)!r} is not registered, so no "
            f"other worker knows it: put @gradviz.distributed.rpc.register before it"
        )
    return name


def function_named(name: str) -> Callable[..., Any]:
    """The function that messages call so.

    Raises:
        LookupError: There is none.
    """
    found = _FUNCTIONS.get(name)
    if found is None:
        raise LookupError(
            f"no function is registered as {name!r} here: import its module on this "
            f"worker too"
        )
    return found


def _code(function: Callable[..., Any]) -> object:
    """Return the identity of a function, also if its module is imported twice."""
    return getattr(function, "__code__", function)
