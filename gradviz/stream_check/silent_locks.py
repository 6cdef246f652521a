"""Locks by which threads may hand over unheard: looked for where a check begins.

A lock that was made before anybody listened does not tell (see `thread_handovers`). If
a program has one, what its threads do may be in an order that nobody knows of. So it is
looked for in what the program's variables lead to, from the calls that are going on:
through lists and the like, attributes, closures, functions and modules of the program.
Not in what is a library's: its own locks are its own affair.
"""

import gc
import sys
import types
from collections import deque
from collections.abc import Iterator
from functools import partial
from itertools import chain
from types import FrameType
from typing import Any, Final

from gradviz.stream_check import thread_handovers
from gradviz.stream_check.stream_names import let_go_of
from gradviz.thread_frames import outwards, variables_of

#: Maximum number of values examined; a program with more counts as one that has a lock.
_MAX_VALUES: Final = 50_000

#: Maximum number of values examined of one container.
_MAX_ITEMS: Final = 1_000

#: Values that lead nowhere.
_ATOMS: Final = frozenset(
    {str, bytes, bytearray, int, float, complex, bool, type(None)}
)

#: Modules of which nothing is the program's: gradviz, and the one that runs tests on
#: other processes (execnet has its source executed under this name).
_OURS: Final = frozenset({"gradviz", "__channelexec__"})

_STANDARD: Final = sys.stdlib_module_names - {"__main__"}

_CONTAINERS: Final = frozenset(
    {dict, list, tuple, set, frozenset, deque, partial, types.CellType}
)


def has_silent_lock(*innermost: FrameType | None) -> bool:
    """Return whether a program seems to have a lock that would not be heard.

    No code of the program is run.

    Args:
        innermost: The innermost frames of the threads to inspect.
    """
    seen: set[int] = set()
    values: deque[object] = deque()
    for frame in chain.from_iterable(map(outwards, innermost)):
        if not _is_library(frame.f_globals.get("__name__")):
            variables = variables_of(frame)
            values += (*variables.values(), frame.f_globals)
            let_go_of(variables, frame, 1)
    while values:
        value = values.popleft()
        if thread_handovers.is_silent(value):
            return True
        if type(value) in _ATOMS or id(value) in seen:
            continue
        seen.add(id(value))
        if len(seen) > _MAX_VALUES:
            return True
        values.extend(_inside(value))
    return False


def _inside(value: Any) -> Iterator[object]:  # noqa: ANN401 - anything
    """Yield the objects that a value of the program leads to."""
    kind = type(value)
    if kind in _CONTAINERS:
        yield from gc.get_referents(value)[:_MAX_ITEMS]
    elif kind is types.FunctionType:
        if not _is_library(value.__module__):
            yield from (value.__globals__, *(value.__closure__ or ()))
    elif kind is types.MethodType:
        yield from (value.__self__, value.__func__)
    elif kind is types.ModuleType:
        name = types.ModuleType.__getattribute__(value, "__dict__").get("__name__")
        if not _is_library(name):
            yield value.__dict__
    else:  # an object, or a class
        owner = value if issubclass(kind, type) else kind
        if not _is_library(type.__getattribute__(owner, "__module__")):
            yield from gc.get_referents(value)[:_MAX_ITEMS]


def _is_library(module: object) -> bool:
    """Return whether a module of that name is Python's, ours or installed."""
    if type(module) is not str:
        return True
    package = module.partition(".")[0]
    if package in _OURS or package in _STANDARD:
        return True
    path = getattr(sys.modules.get(package), "__file__", None) or ""
    return "site-packages" in path or "dist-packages" in path
