# ruff: noqa: ANN401 - it stands for what takes anything
"""Locks and simple queues that report hand-overs between threads.

Those of Python are written in C, where nothing can be replaced. While somebody
listens, the names in `threading` and `queue` make these instead, for a program; see
Note [Seen hand-overs] in `thread_handovers`. They stay what they are when nobody
listens any more, and then cost a call and a look.

They look like what they stand for: `isinstance` takes either for the other, and
`queue.SimpleQueue` can be a base class.
"""

import queue
import sys
import threading
from collections.abc import Callable
from types import FrameType
from typing import Any, NoReturn

from gradviz.stream_check import lock_methods
from gradviz.stream_check.interrupts import starts_unchecked
from gradviz.stream_check.lock_methods import LockMethods
from gradviz.trace.reporting.thread_knowledge import MeetingPlace


class _Heard(type):
    """A class whose instances also belong to the class in C.

    Attributes:
        original: Makes those.
        silent: Their class.
        is_for_libraries: True if a library of Python's gets one that tells, too.
    """

    original: Callable[..., Any]
    silent: type
    is_for_libraries: bool

    def __call__(cls, *args: Any, **kwargs: Any) -> Any:
        caller = sys._getframe().f_back  # C may call, too
        is_silent = is_ours(caller) if cls.is_for_libraries else is_librarys(caller)
        if is_silent and "original" in vars(cls):  # no class derived from it
            return cls.original(*args, **kwargs)
        return super().__call__(*args, **kwargs)

    def __instancecheck__(cls, instance: object) -> bool:
        return type.__instancecheck__(cls, instance) or (
            "original" in vars(cls) and isinstance(instance, cls.silent)
        )

    def __subclasscheck__(cls, subclass: type) -> bool:
        return type.__subclasscheck__(cls, subclass) or (
            "original" in vars(cls) and issubclass(subclass, cls.silent)
        )


for _method in (LockMethods.release, LockMethods.__exit__):
    starts_unchecked(_method)


def _passed_on(lock: type) -> tuple[str, ...]:
    """Return the methods of a lock besides acquire and release."""
    own = {"acquire", "release", "acquire_lock", "release_lock"}
    return tuple(name for name in dir(lock) if name[:2] != "__" and name not in own)


def _refuse_pickling(self: Any) -> NoReturn:
    """Raise the same error as the class in C, also for `copy.copy`."""
    kind = type(self)
    silent = kind.silent if "original" in vars(kind) else kind
    raise TypeError(f"cannot pickle '{silent.__module__}.{silent.__name__}' object")


class _HeardLock(LockMethods, metaclass=_Heard):
    """A lock that reports its previous holder."""

    __slots__ = ()

    def __init__(self) -> None:
        kind = type(self)
        lock = kind.original()
        super().__init__(lock)
        for name in _passed_on(kind.silent):
            setattr(self, name, getattr(lock, name))

    __reduce__ = _refuse_pickling


class HeardLock(_HeardLock):
    """See `threading.Lock`."""

    original = staticmethod(threading.Lock)
    silent = type(threading.Lock())
    is_for_libraries = False

    __slots__ = _passed_on(silent)

    acquire_lock = LockMethods.acquire
    release_lock = LockMethods.release


class HeardRLock(_HeardLock):
    """See `threading.RLock`."""

    original = staticmethod(threading.RLock)
    silent = type(threading.RLock())
    is_for_libraries = False

    __slots__ = _passed_on(silent)


class HeardSimpleQueue(queue.SimpleQueue, metaclass=_Heard):  # type: ignore[type-arg]
    """A queue that reports the thread that put an item."""

    original = queue.SimpleQueue
    silent = queue.SimpleQueue
    is_for_libraries = True

    __slots__ = ("_place",)

    def __init__(self) -> None:
        self._place = MeetingPlace()

    put = lock_methods.put
    get = lock_methods.get

    def put_nowait(self, item: Any) -> None:
        """See `queue.SimpleQueue`."""
        lock_methods.put(self, item)

    def get_nowait(self) -> Any:
        """See `queue.SimpleQueue`."""
        return lock_methods.get(self, False)

    __reduce__ = _refuse_pickling


def package(frame: FrameType | None) -> str:
    """Return the owner of the code; empty without a frame, as in calls by C."""
    if frame is None:
        return ""
    return str(frame.f_globals.get("__name__", "")).partition(".")[0]


def is_ours(frame: FrameType | None) -> bool:
    """Return whether a frame is code of gradviz."""
    return package(frame) == "gradviz"


def is_librarys(frame: FrameType | None) -> bool:
    """Return whether a frame is code of gradviz or of Python's library."""
    return is_ours(frame) or package(frame) in sys.stdlib_module_names
