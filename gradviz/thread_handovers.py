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
import itertools
import queue
import sys
import threading
from collections.abc import Callable
from concurrent.futures import Future
from concurrent.futures import thread as pools
from types import FrameType
from typing import Any, Final, TypeAlias

from gradviz.trace import probe

#: Methods by their class and their name.
_Methods: TypeAlias = tuple[tuple[type, str], ...]

#: How many listen, and what was replaced, with what was there. Guarded by `_replacing`.
_num_listeners = 0
_replaced: Final[list[tuple[Any, str, Any]]] = []
_replacing: Final = threading.Lock()

#: What threads are called, from 1.
_keys: Final = itertools.count(1)


def listen() -> None:
    """Report all hand-overs from now on, to whoever is installed; see `Probe`."""
    global _num_listeners
    with _replacing:
        if not _num_listeners:
            _replace_all()
        _num_listeners += 1


def unlisten() -> None:
    """End what a call of `listen` began."""
    global _num_listeners
    with _replacing:
        _num_listeners = max(_num_listeners - 1, 0)
        while _replaced and not _num_listeners:
            owner, name, original = _replaced.pop()
            setattr(owner, name, original)


#: What hands over in C, as it was made before it was replaced.
_SILENT: Final = (type(threading.Lock()), type(threading.RLock()), queue.SimpleQueue)

#: What makes them, by identity, as it was before it was replaced.
_MAKERS: Final = {
    id(one): one for one in (threading.Lock, threading.RLock, queue.SimpleQueue)
}


def is_silent(thing: object) -> bool:
    """Whether threads may hand over by it, or by what it makes, and nobody would hear.

    What makes locks is replaced where it is looked up in `threading` and `queue`, and
    not where a program has it under a name of its own.
    """
    return type(thing) in _SILENT or id(thing) in _MAKERS


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
        listener = probe.current
        # The engine's threads report what they do.
        if (
            listener is None
            or self.ident is not None
            or _is_ours(sys._getframe().f_back)
        ):
            original(self)
            return
        own = vars(self)
        key = own["_gradviz_key"] = next(_keys)
        listener.program_thread_begun(key)
        own["run"] = _running(self, key, self.run)
        try:
            original(self)
        except BaseException:
            own.pop("run", None)
            raise

    return start


def _running(
    thread: threading.Thread, key: int, original: Callable[[], None]
) -> Callable[[], None]:
    """What a thread does in place of its `run`."""

    def run() -> None:
        vars(thread).pop("run", None)
        if listener := probe.current:
            listener.program_thread_entered(key)
        try:
            original()
        finally:
            if listener := probe.current:
                listener.program_thread_left(key)

    return run


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
        if not is_alive and (key := vars(self).get("_gradviz_key")) is not None:
            _tell_taken(key)
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
        return lock if _is_librarys(sys._getframe().f_back) else _Lock(lock)

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
        return original() if _is_ours(sys._getframe().f_back) else _Queue()

    return make


# --- what is told -------------------------------------------------------------------


def _left_in(thing: object) -> None:
    if (listener := probe.current) and not _is_threadings(sys._getframe(1).f_back):
        listener.handed_over(id(thing))


def _taken_from(thing: object) -> None:
    if not _is_threadings(sys._getframe(1).f_back):
        _tell_taken(id(thing))


def _tell_taken(key: int) -> None:
    if listener := probe.current:
        listener.taken_over(key)


def _is_threadings(frame: FrameType | None) -> bool:
    """Whether `threading` calls its own methods: of a part of what was told already.

    And of a thread that begins, and is not known to `threading` itself yet.
    """
    return _package(frame) == "threading"


def _package(frame: FrameType | None) -> str:
    """Whose code it is; nobody's if there is no frame, for C may call from a thread."""
    if frame is None:
        return ""
    return str(frame.f_globals.get("__name__", "")).partition(".")[0]


def _is_ours(frame: FrameType | None) -> bool:
    return _package(frame) == "gradviz"


def _is_librarys(frame: FrameType | None) -> bool:
    return _is_ours(frame) or _package(frame) in sys.stdlib_module_names
