"""Names of a program's streams and tensors, looked up where it uses them."""

import inspect
import sys
import types
from collections.abc import Callable, Iterator, Mapping
from types import FrameType
from typing import Any, Final, TypeAlias

#: Maximum number of frames of a program examined, and of values of one container.
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
        frame: Frame to look in first; then in those that have called it.
    """
    kind = _class_if_loaded("gradviz.backends.stream", "Stream")
    if kind is None:
        return ""

    def is_it(value: object) -> bool:
        return issubclass(type(value), kind) and kind.__str__(value) == stream

    return _name(is_it, frame)


def name_of_tensor(memory: int, frame: FrameType | None) -> str:
    """The expression that has a tensor in a program; empty if none is found.

    The tensor is in the allocation that reports know by the id `memory`.
    """
    kind = _class_if_loaded("gradviz.ops.variables.variable", "Variable")
    if kind is None:
        return ""

    def is_it(value: Any) -> bool:  # noqa: ANN401 - anything
        if not issubclass(type(value), kind):
            return False
        array = value.array
        place = getattr(array, "allocation", None) or getattr(array, "memory", None)
        return getattr(place, "id", None) == memory

    return _name(is_it, frame)


def _class_if_loaded(module: str, name: str) -> Any:  # noqa: ANN401 - its type is not loaded
    """Return a class of gradviz's; None if no value has it, for it is not loaded.

    To import it would load all backends into a program that may use none of them.
    """
    return getattr(sys.modules.get(module), name, None)


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
            let_go_of(variables, frame, 2)
            del variables
            if all(frame.f_globals is not one for one in modules):
                modules.append(frame.f_globals)
        frame = frame.f_back
    yield from modules


def let_go_of(variables: Mapping[str, Any], frame: FrameType, num_ours: int) -> None:
    """Empty the result of ``frame.f_locals``, so that it keeps no values alive.

    Before Python 3.13 the variables of a function are a copy, which lives with the
    frame. It is also what ``locals()`` of the program gave: if that still has it, it
    stays as it is.

    Args:
        variables: Variables that the frame gave.
        frame: Their frame.
        num_ours: Number of gradviz's variables that have it, that of the caller
            included.
    """
    if type(variables) is not dict or not frame.f_code.co_flags & inspect.CO_OPTIMIZED:
        return
    # Besides ours: the frame's, the parameter here and that of `getrefcount`.
    if sys.getrefcount(variables) <= num_ours + 3:
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
    """Return the attributes of an object or a class, without asking it."""
    get = type.__getattribute__ if issubclass(type(value), type) else _get
    try:
        kept = get(value, "__dict__")
    except AttributeError:
        return {}
    return kept if type(kept) in (dict, types.MappingProxyType) else {}


_get: Final = object.__getattribute__
