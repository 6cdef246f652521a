"""What a program calls its streams and tensors: looked for where it uses them."""

import inspect
import types
from collections.abc import Callable, Iterator, Mapping
from types import FrameType
from typing import Any, Final, TypeAlias, cast

from gradviz.backends.stream import Stream
from gradviz.ops.recording.variable import Variable

#: So many frames of a program are looked at, and so many values of one container.
_MAX_FRAMES: Final = 16
_MAX_VALUES: Final = 256

_NOT_THE_USERS: Final = frozenset({"gradviz", "numpy", "threading"})


#: Says whether a value is what is looked for; runs no code of the program.
Test: TypeAlias = Callable[[object], bool]


def name_of_stream(stream: str, frame: FrameType | None) -> str:
    """The expression that has a stream in a program, empty if none is found.

    No code of the program is run: only variables are looked at, what is in their lists,
    tuples and dicts, and the attributes that their objects and classes keep.

    Args:
        stream: Such as ``sim:0/1``.
        frame: Where to look first; then in those that have called it.
    """

    def is_it(value: object) -> bool:
        kind = type(value)
        return (
            issubclass(kind, Stream) and Stream.__str__(cast("Stream", value)) == stream
        )

    return _name(is_it, frame)


def name_of_tensor(memory: int, frame: FrameType | None) -> str:
    """The expression that has a tensor in a program; empty if none is found.

    The tensor is in the allocation that reports know by the id `memory`.
    """

    def is_it(value: object) -> bool:
        if not issubclass(type(value), Variable):
            return False
        array = cast("Variable", value).array
        place = getattr(array, "allocation", None) or getattr(array, "memory", None)
        return getattr(place, "id", None) == memory

    return _name(is_it, frame)


def _is_users(frame: FrameType) -> bool:
    package = str(frame.f_globals.get("__name__", "")).partition(".")[0]
    return package not in _NOT_THE_USERS


def _name(is_it: Test, frame: FrameType | None) -> str:
    found = ""
    for variables in _variables(frame):  # to the end, as it tidies up
        found = found or _name_in(variables, is_it)
    return found


def _name_in(variables: Mapping[str, Any], is_it: Test) -> str:
    for name, value in variables.items():
        if is_it(value) and name.isidentifier():  # not a tool's own
            return name
    for name, value in variables.items():
        if found := _inside(name, value, is_it):
            return found
    return ""


def _variables(frame: FrameType | None) -> Iterator[Mapping[str, Any]]:
    """Those of each frame of the program, then those of its modules."""
    modules: list[dict[str, Any]] = []
    for _ in range(_MAX_FRAMES):
        if frame is None:
            break
        if _is_users(frame):
            variables = frame.f_locals
            yield variables
            _let_go_of(variables, frame)
            del variables
            if all(frame.f_globals is not one for one in modules):
                modules.append(frame.f_globals)
        frame = frame.f_back
    yield from modules


def _let_go_of(variables: Mapping[str, Any], frame: FrameType) -> None:
    """Before Python 3.13 those of a function are a copy, which lives with the frame."""
    if type(variables) is dict and frame.f_code.co_flags & inspect.CO_OPTIMIZED:
        variables.clear()


def _inside(name: str, value: Any, is_it: Test) -> str:  # noqa: ANN401 - anything
    # By the very type: to ask a value for its class may run code of the program.
    kind = type(value)
    if kind is types.ModuleType:
        return ""
    if kind is list or kind is tuple:
        for place, one in enumerate(value[:_MAX_VALUES]):
            if is_it(one):
                return f"{name}[{place}]"
    elif kind is dict:
        for key, one in tuple(value.items())[:_MAX_VALUES]:
            if is_it(one) and type(key) in (str, int):
                return f"{name}[{key!r}]"
    else:
        for key, one in tuple(_attributes(value).items())[:_MAX_VALUES]:
            if is_it(one):
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
