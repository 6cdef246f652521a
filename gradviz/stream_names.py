"""What a program calls its streams: looked for where it uses them."""

import inspect
import types
from collections.abc import Iterator, Mapping
from types import FrameType
from typing import Any, Final, cast

from gradviz.backends.stream import Stream

#: So many frames of a program are looked at, and so many values of one container.
_MAX_FRAMES: Final = 16
_MAX_VALUES: Final = 256

_NOT_THE_USERS: Final = frozenset({"gradviz", "numpy", "threading"})


def name_of_stream(stream: str, frame: FrameType | None) -> str:
    """The expression that has a stream in a program, empty if none is found.

    No code of the program is run: only variables are looked at, what is in their lists,
    tuples and dicts, and the attributes that their objects and classes keep.

    Args:
        stream: Such as ``sim:0/1``.
        frame: Where to look first; then in those that have called it.
    """
    found = ""
    for variables in _variables(frame):  # to the end, as it tidies up
        found = found or _name_in(variables, stream)
    return found


def _name_in(variables: Mapping[str, Any], stream: str) -> str:
    for name, value in variables.items():
        if _is(value, stream) and name.isidentifier():  # not a tool's own
            return name
    for name, value in variables.items():
        if found := _inside(name, value, stream):
            return found
    return ""


def _variables(frame: FrameType | None) -> Iterator[Mapping[str, Any]]:
    """Those of each frame of the program, then those of its modules."""
    modules: list[dict[str, Any]] = []
    for _ in range(_MAX_FRAMES):
        if frame is None:
            break
        package = str(frame.f_globals.get("__name__", "")).partition(".")[0]
        if package not in _NOT_THE_USERS:
            variables = frame.f_locals
            yield variables
            if type(variables) is dict and frame.f_code.co_flags & inspect.CO_OPTIMIZED:
                # Before Python 3.13 that is a copy, which lives as long as the frame.
                variables.clear()
            del variables
            if all(frame.f_globals is not one for one in modules):
                modules.append(frame.f_globals)
        frame = frame.f_back
    yield from modules


def _inside(name: str, value: Any, stream: str) -> str:  # noqa: ANN401 - anything
    # By the very type: to ask a value for its class may run code of the program.
    kind = type(value)
    if kind is types.ModuleType:
        return ""
    if kind is list or kind is tuple:
        for place, one in enumerate(value[:_MAX_VALUES]):
            if _is(one, stream):
                return f"{name}[{place}]"
    elif kind is dict:
        for key, one in tuple(value.items())[:_MAX_VALUES]:
            if _is(one, stream) and type(key) in (str, int):
                return f"{name}[{key!r}]"
    else:
        for key, one in tuple(_attributes(value).items())[:_MAX_VALUES]:
            if _is(one, stream):
                return f"{name}.{key}"
    return ""


def _attributes(value: Any) -> Mapping[str, Any]:  # noqa: ANN401 - anything
    """What an object or a class keeps, without asking it."""
    get = type.__getattribute__ if issubclass(type(value), type) else _get
    try:
        kept = get(value, "__dict__")
    except AttributeError:
        return {}
    return kept if type(kept) in (dict, types.MappingProxyType) else {}


_get: Final = object.__getattribute__


def _is(value: object, stream: str) -> bool:
    kind = type(value)
    return issubclass(kind, Stream) and Stream.__str__(cast("Stream", value)) == stream
