# ruff: noqa: ANN401 - it stands for methods of any arguments
"""How threads of a program hand over to each other, as far as Python's library knows.

Note [Seen hand-overs]
~~~~~~~~~~~~~~~~~~~~~~
A wait of one thread orders what another one does only if the second knows of it: it was
started or has joined, has taken something from a queue, was woken by an event, got a
lock. Nothing tells of those, so while somebody listens, the methods that do it are
replaced by ones that say so and then do the same:

* Methods of classes written in Python are replaced in the class: of threads, events,
  conditions, semaphores, barriers, queues, futures. That holds for what there is.
* Locks and simple queues are written in C, where nothing can be replaced. The names in
  `threading` and `queue` make ones that tell, for a program and not for the library. A
  lock that a program has made before anybody listened is not seen: see `silent_locks`.

To hand over is reported before it is done, to take over afterwards. What is not seen: a
variable that a thread looks at until another one has set it; pipes and sockets.
"""

import functools
import queue
import sys
import threading
from collections.abc import Callable, Hashable
from concurrent.futures import Future
from concurrent.futures import thread as pools
from types import FrameType
from typing import Any, Final, Protocol, TypeAlias


class Listener(Protocol):
    """Hears of hand-overs, on the thread that does it. Does not raise."""

    def thread_begun(self, thread: threading.Thread) -> None:
        """The calling thread is about to start another one."""

    def thread_joined(self, thread: threading.Thread) -> None:
        """The calling thread knows that another one has ended."""

    def handed_over(self, key: Hashable) -> None:
        """The calling thread is about to leave something there."""

    def taken_over(self, key: Hashable) -> None:
        """The calling thread has taken what was left there."""


#: Methods by their class and their name.
_Methods: TypeAlias = tuple[tuple[type, str], ...]

#: Replaced as a whole, never mutated.
_listeners: tuple[Listener, ...] = ()

#: What was replaced, and what was there. Guarded by `_replacing`, as is the change.
_replaced: Final[list[tuple[Any, str, Any]]] = []
_replacing: Final = threading.Lock()


def listen(listener: Listener) -> None:
    """Tell `listener` of all hand-overs from now on."""
    global _listeners
    with _replacing:
        if not _listeners:
            _replace_all()
        _listeners = (*_listeners, listener)


def unlisten(listener: Listener) -> None:
    """Tell it no more; does nothing if it is told of none."""
    global _listeners
    with _replacing:
        if listener not in _listeners:
            return
        _listeners = tuple(one for one in _listeners if one is not listener)
        if not _listeners:
            while _replaced:
                owner, name, original = _replaced.pop()
                setattr(owner, name, original)


#: What hands over in C, as it was made before it was replaced.
_SILENT: Final = (type(threading.Lock()), type(threading.RLock()), queue.SimpleQueue)

#: What makes them, likewise.
_MAKERS: Final = (threading.Lock, threading.RLock, queue.SimpleQueue)


def is_silent(thing: object) -> bool:
    """Whether threads may hand over by it, or by what it makes, and nobody would hear.

    What makes locks is replaced where it is looked up in `threading` and `queue`, and
    not where a program has it under a name of its own.
    """
    return type(thing) in _SILENT or any(thing is one for one in _MAKERS)


# --- what is replaced ---------------------------------------------------------------


def _replace_all() -> None:
    for owner, name in _LEAVING:
        _replace(owner, name, _leaving)
    for owner, name in _TAKING:
        _replace(owner, name, _taking)
    for owner, name in _DOING_BOTH:
        _replace(owner, name, _doing_both)
    _replace(pools._WorkItem, "run", _taking_first)
    _replace(threading.Thread, "start", _starting)
    _replace(threading.Thread, "join", _joining)
    _replace(threading.Thread, "is_alive", _asking)
    _replace(threading, "Lock", _making_locks)
    _replace(threading, "RLock", _making_locks)
    _replace(queue, "SimpleQueue", _making_queues)


def _replace(owner: Any, name: str, replacement: Callable[[Any], Any]) -> None:
    original = getattr(owner, name, None)
    if original is not None:  # of the library's own affairs, another version has others
        _replaced.append((owner, name, original))
        setattr(owner, name, replacement(original))


#: Whoever calls these leaves something in the object.
_LEAVING: Final[_Methods] = (
    (threading.Event, "set"),
    (threading.Condition, "notify"),
    (threading.Condition, "notify_all"),
    (threading.Condition, "__exit__"),
    (threading.Semaphore, "release"),
    (threading.BoundedSemaphore, "release"),
    (queue.Queue, "put"),
    (queue.Queue, "task_done"),
    (Future, "set_result"),
    (Future, "set_exception"),
    (pools._WorkItem, "__init__"),
)

#: Whoever calls these takes it, if they return anything but False.
_TAKING: Final[_Methods] = (
    (threading.Event, "wait"),
    (threading.Event, "is_set"),
    (threading.Condition, "__enter__"),
    (threading.Semaphore, "acquire"),
    (threading.Semaphore, "__enter__"),
    (queue.Queue, "get"),
    (queue.Queue, "join"),
    (Future, "result"),
    (Future, "exception"),
    (Future, "done"),
)

#: These do both.
_DOING_BOTH: Final[_Methods] = (
    (threading.Condition, "wait"),
    (threading.Condition, "wait_for"),
    (threading.Barrier, "wait"),
)


def _leaving(original: Callable[..., Any]) -> Callable[..., Any]:
    @functools.wraps(original)
    def call(self: Any, *args: Any, **kwargs: Any) -> Any:
        _left_in(self)
        return original(self, *args, **kwargs)

    return call


def _taking(original: Callable[..., Any]) -> Callable[..., Any]:
    @functools.wraps(original)
    def call(self: Any, *args: Any, **kwargs: Any) -> Any:
        try:
            result = original(self, *args, **kwargs)
        except BaseException:
            _taken_from(self)  # a future's error is a result, too
            raise
        if result is not False:
            _taken_from(self)
        return result

    return call


def _doing_both(original: Callable[..., Any]) -> Callable[..., Any]:
    @functools.wraps(original)
    def call(self: Any, *args: Any, **kwargs: Any) -> Any:
        _left_in(self)
        try:
            return original(self, *args, **kwargs)
        finally:
            _taken_from(self)

    return call


def _taking_first(original: Callable[..., Any]) -> Callable[..., Any]:
    @functools.wraps(original)
    def call(self: Any, *args: Any, **kwargs: Any) -> Any:
        _taken_from(self)
        return original(self, *args, **kwargs)

    return call


def _starting(original: Callable[..., Any]) -> Callable[..., Any]:
    @functools.wraps(original)
    def start(self: threading.Thread) -> None:
        if not _is_ours(sys._getframe(1)):  # the engine's report what they do
            for one in _listeners:
                one.thread_begun(self)
        original(self)

    return start


def _joining(original: Callable[..., Any]) -> Callable[..., Any]:
    @functools.wraps(original)
    def join(self: threading.Thread, *args: Any, **kwargs: Any) -> None:
        original(self, *args, **kwargs)
        self.is_alive()  # which tells

    return join


def _asking(original: Callable[..., Any]) -> Callable[..., Any]:
    @functools.wraps(original)
    def is_alive(self: threading.Thread) -> bool:
        is_alive = bool(original(self))
        if not is_alive and self.ident is not None:
            for one in _listeners:
                one.thread_joined(self)
        return is_alive

    return is_alive


class _Lock:
    """A lock that tells who had it before."""

    def __init__(self, lock: Any) -> None:
        self._lock = lock

    def acquire(self, *args: Any, **kwargs: Any) -> bool:
        is_ours = bool(self._lock.acquire(*args, **kwargs))
        if is_ours:
            _taken_from(self)
        return is_ours

    def release(self) -> None:
        _left_in(self)
        self._lock.release()

    __enter__ = acquire

    def __exit__(self, *error: object) -> None:
        self.release()

    def __getattr__(self, name: str) -> Any:
        return getattr(self._lock, name)


def _making_locks(original: Callable[[], Any]) -> Callable[[], Any]:
    def make() -> Any:
        lock = original()
        return lock if _is_librarys(sys._getframe(1)) else _Lock(lock)

    return make


class _Queue(queue.SimpleQueue):  # type: ignore[type-arg]  # not at run time
    """A queue that tells who has put something in."""

    def put(self, *args: Any, **kwargs: Any) -> None:
        _left_in(self)
        super().put(*args, **kwargs)

    def get(self, *args: Any, **kwargs: Any) -> Any:
        item = super().get(*args, **kwargs)
        _taken_from(self)
        return item

    def put_nowait(self, item: Any) -> None:
        self.put(item, block=False)

    def get_nowait(self) -> Any:
        return self.get(block=False)


def _making_queues(original: Callable[[], Any]) -> Callable[[], Any]:
    def make() -> Any:
        return original() if _is_ours(sys._getframe(1)) else _Queue()

    return make


# --- what is told -------------------------------------------------------------------


def _left_in(thing: object) -> None:
    if not _is_threadings(sys._getframe(2)):
        for one in _listeners:
            one.handed_over(id(thing))


def _taken_from(thing: object) -> None:
    if not _is_threadings(sys._getframe(2)):
        for one in _listeners:
            one.taken_over(id(thing))


def _is_threadings(frame: FrameType) -> bool:
    """Whether `threading` calls its own methods: of a part of what was told already.

    And of a thread that begins, and is not known to `threading` itself yet.
    """
    return _package(frame) == "threading"


def _package(frame: FrameType) -> str:
    return str(frame.f_globals.get("__name__", "")).partition(".")[0]


def _is_ours(frame: FrameType) -> bool:
    return _package(frame) == "gradviz"


def _is_librarys(frame: FrameType) -> bool:
    return _is_ours(frame) or _package(frame) in sys.stdlib_module_names
