# ruff: noqa: ANN401 - it stands for methods of any arguments
"""Hearing how threads of a program hand over to each other, as far as Python knows.

Note [Seen hand-overs]
~~~~~~~~~~~~~~~~~~~~~~
A wait of one thread orders the work of another only if the second knows of it: it was
started or has joined, has taken something from a queue, was woken by an event, got a
lock. Nothing reports those, so while there is a listener, the methods that do them are
replaced by ones that report them and then do the same:

* Methods of classes written in Python are replaced in the class: of threads, events,
  conditions, semaphores, barriers, queues, futures. That holds for what there is.
* Locks and simple queues are written in C, where nothing can be replaced. The names in
  `threading` and `queue` make those of `heard_locks`, for a program and not for the
  library. A lock that a program has made before anybody listened is not seen: see
  `silent_locks`.

A hand-over is reported before it is done, taking over afterwards, and neither where no
thread can learn anything by it: see Note [Hand-overs that tell nothing] in
`trace.knowledge`. Not seen: a variable that a thread polls until another one has set
it; pipes and sockets. A thread started before the listener does not report its end, so
a thread that joins it counts as knowing everything.

`stream_handovers` decides for a recording, and `stream_check` for a check, when to
listen; `replaced` lists the changes.
"""

import functools
import queue
import sys
import threading
from collections.abc import Callable
from concurrent.futures import Future
from concurrent.futures import thread as pools
from threading import get_ident
from types import FrameType
from typing import Any, Final, TypeAlias

from gradviz.stream_check.heard_locks import (
    HeardLock,
    HeardRLock,
    HeardSimpleQueue,
    is_ours,
    package,
)
from gradviz.stream_check.interrupts import starts_unchecked
from gradviz.trace import probe
from gradviz.trace.reporting.thread_knowledge import (
    EVERYTHING,
    MeetingPlace,
    know_thread,
    learned,
    new_key,
)

#: Methods by their class and their name.
_Methods: TypeAlias = tuple[tuple[type, str], ...]

#: Number of listeners, and the replaced functions with their originals. Guarded by
#: `_replacing`.
_num_listeners = 0
_replaced: Final[list[tuple[Any, str, Any]]] = []
_replacing: Final = threading.Lock()


def listen() -> None:
    """Report all hand-overs from now on to the listener; see `Probe`."""
    global _num_listeners
    with _replacing:
        if not _num_listeners:
            _replace_all()
            know_thread()
        _num_listeners += 1


def unlisten() -> None:
    """Undo a call of `listen`."""
    global _num_listeners
    with _replacing:
        _num_listeners = max(_num_listeners - 1, 0)
        while _replaced and not _num_listeners:
            owner, name, original = _replaced.pop()
            setattr(owner, name, original)


def replaced() -> tuple[tuple[Any, str], ...]:
    """Return the attributes of classes and modules that listening replaces.

    Another version of Python may lack some of it.
    """
    return tuple((owner, name) for owner, name, _ in _REPLACEMENTS)


#: Types that hand over in C, as they were made before they were replaced.
_SILENT: Final = (HeardLock.silent, HeardRLock.silent, queue.SimpleQueue)

#: Functions that make them, by identity, as they were before they were replaced.
_MAKERS: Final = {
    id(one): one for one in (threading.Lock, threading.RLock, queue.SimpleQueue)
}


def is_silent(thing: object) -> bool:
    """Return whether threads may hand over by an object without being heard.

    Constructors of locks are replaced where `threading` and `queue` look them up, and
    not where a program has one under a name of its own. A condition is heard, unless
    some thread is inside of it: a ``with`` block leaves by the method that it found
    when it was entered.
    """
    if type(thing) is threading.Condition:
        return repr(vars(thing).get("_lock")).startswith("<locked")
    return type(thing) in _SILENT or id(thing) in _MAKERS


# --- what is replaced ---------------------------------------------------------------


def _replace_all() -> None:
    for owner in _WITH_PLACE:
        setattr(owner, _PLACE, None)  # for good: calls may outlast whoever listens
    for owner, name, replacement in _REPLACEMENTS:
        original = getattr(owner, name, None)
        if (
            original is not None
        ):  # of the library's own affairs, each version has others
            _replaced.append((owner, name, original))
            setattr(owner, name, replacement(original))


#: Methods whose caller leaves something in the object.
_LEAVING: Final[_Methods] = (
    (queue.Queue, "task_done"),
    (Future, "set_result"),
    (Future, "set_exception"),
    (pools._WorkItem, "__init__"),
)

#: Methods whose caller takes it, if they return anything but False.
_TAKING: Final[_Methods] = (
    (threading.Event, "wait"),
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
        _leave(self)
        return original(self, *args, **kwargs)

    return call


def _taking(original: Callable[..., Any]) -> Callable[..., Any]:
    @functools.wraps(original)
    def call(self: Any, *args: Any, **kwargs: Any) -> Any:
        try:
            result = original(self, *args, **kwargs)
        except BaseException:
            _take(self)  # a future's error is a result, too
            raise
        if result is not False:
            _take(self)
        return result

    return call


def _doing_both(original: Callable[..., Any]) -> Callable[..., Any]:
    @functools.wraps(original)
    def call(self: Any, *args: Any, **kwargs: Any) -> Any:
        _leave(self)
        try:
            return original(self, *args, **kwargs)
        finally:
            _take(self)

    return call


# Programs call those that follow in loops. They take what the originals take, by name,
# and look whether there is news before they call anything. What takes and gives back is
# written as Note [Interrupts at a lock] says.


def _putting(original: Callable[..., None]) -> Callable[..., None]:
    # It may be full, and who puts something in have waited for who has got something.
    @functools.wraps(original)
    def put(
        self: Any, item: Any, block: bool = True, timeout: float | None = None
    ) -> None:
        place, ident = self._gradviz_place, get_ident()
        if place is None or place.left_version.ident != ident:
            _leave(self)
        original(self, item, block, timeout)
        if place is None or place.taken_version.ident != ident:
            _take(self)

    return put


def _getting(original: Callable[..., Any]) -> Callable[..., Any]:
    @functools.wraps(original)
    def get(self: Any, block: bool = True, timeout: float | None = None) -> Any:
        place, ident = self._gradviz_place, get_ident()
        if place is None or place.left_version.ident != ident:
            _leave(self)
        item = original(self, block, timeout)
        if place is None or place.taken_version.ident != ident:
            _take(self)
        return item

    return get


def _telling_all(original: Callable[[Any], None]) -> Callable[[Any], None]:
    @functools.wraps(original)
    def tell_all(self: Any) -> None:
        place = self._gradviz_place
        if place is None or place.left_version.ident != get_ident():
            _leave(self)
        original(self)

    return tell_all


def _asking_event(original: Callable[[Any], bool]) -> Callable[[Any], bool]:
    @functools.wraps(original)
    def is_set(self: Any) -> bool:
        is_set: bool = self._flag  # all that the original does, but for its call
        if is_set:
            place = self._gradviz_place
            if place is not None and place.taken_version.ident != get_ident():
                _take(self)
        return is_set

    return is_set


def _adding(original: Callable[[Any, int], None]) -> Callable[..., None]:
    @starts_unchecked
    @functools.wraps(original)
    def add(self: Any, n: int = 1) -> None:
        try:
            place = self._gradviz_place
            if place is None or place.left_version.ident != get_ident():
                _leave(self)
        except BaseException:
            original(self, n)
            raise
        original(self, n)

    return add


def _releasing(original: Callable[..., None]) -> Callable[..., None]:
    """Leave the ``with`` block of a semaphore."""

    @starts_unchecked
    @functools.wraps(original)
    def release(self: Any, *error: Any) -> None:
        try:
            _leave(self)
        except BaseException:
            original(self, *error)
            raise
        original(self, *error)

    return release


def _acquiring(original: Callable[..., bool]) -> Callable[..., bool]:
    @functools.wraps(original)
    def acquire(self: Any, blocking: bool = True, timeout: float | None = None) -> bool:
        ident = get_ident()  # now: no call is to come between that it has it and `try`
        is_mine = original(self, blocking, timeout)
        try:
            if is_mine:
                place = self._gradviz_place
                if place is not None and place.taken_version.ident != ident:
                    _take(self)
        except BaseException:
            self.release()
            raise
        return is_mine

    return acquire


def _entering(original: Callable[[Any], Any]) -> Callable[[Any], Any]:
    @functools.wraps(original)
    def enter(self: Any) -> Any:
        lock = self._lock
        for result in iter(lock.__enter__, False):
            try:
                place = self._gradviz_place
                if place is not None and place.taken_version.ident != get_ident():
                    _take(self)
            except BaseException:
                lock.__exit__(None, None, None)
                raise
            return result
        return False

    return enter


def _exiting(original: Callable[..., Any]) -> Callable[..., Any]:
    """Leave the ``with`` block of a condition.

    One whose block is the library's is a part of something that tells by itself, and
    need not be looked at again.
    """

    @starts_unchecked
    @functools.wraps(original)
    def leave(
        self: Any, kind: Any = None, error: Any = None, traceback: Any = None
    ) -> Any:
        try:
            place = self._gradviz_place
            if place is None or place.left_version.ident != get_ident():
                if type(self) is threading.Condition and _is_part(
                    self, sys._getframe().f_back
                ):
                    self.__class__ = _InnerCondition
                else:
                    _leave(self)
        except BaseException:
            self._lock.__exit__(kind, error, traceback)
            raise
        return self._lock.__exit__(kind, error, traceback)

    return leave


class _InnerCondition(threading.Condition):
    """A condition that is a part of an event, a queue or the like: as it always was."""

    __enter__ = threading.Condition.__enter__
    __exit__ = threading.Condition.__exit__
    wait = threading.Condition.wait
    wait_for = threading.Condition.wait_for
    notify = threading.Condition.notify
    notify_all = threading.Condition.notify_all


for _name in ("__name__", "__qualname__", "__module__"):
    setattr(_InnerCondition, _name, getattr(threading.Condition, _name))


def _taking_first(original: Callable[..., Any]) -> Callable[..., Any]:
    @functools.wraps(original)
    def call(self: Any, *args: Any, **kwargs: Any) -> Any:
        _take(self)
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
            or is_ours(sys._getframe().f_back)
        ):
            original(self)
            return
        own = vars(self)
        key = own["_gradviz_key"] = new_key()
        listener.program_thread_begun(key)
        own["run"] = _running(self, key, self.run)
        try:
            original(self)
        except BaseException:
            own.pop("run", None)
            raise

    return start


def _running(
    started: threading.Thread, key: int, original: Callable[[], None]
) -> Callable[[], None]:
    """Return the replacement of a thread's `run`."""

    def run() -> None:
        vars(started).pop("run", None)
        know_thread()
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
        if not self.is_alive():
            _take_end_of(self, sys._getframe().f_back)

    return join


def _asking(original: Callable[..., Any]) -> Callable[..., Any]:
    @functools.wraps(original)
    def is_alive(self: threading.Thread) -> bool:
        is_alive = bool(original(self))
        if not is_alive:
            _take_end_of(self, sys._getframe().f_back)
        return is_alive

    return is_alive


def _take_end_of(ended: threading.Thread, caller: FrameType | None) -> None:
    """Report that the caller knows of the end of a thread, and so of its work."""
    key = vars(ended).get("_gradviz_key", EVERYTHING)
    # Threads of gradviz have no key, and are nothing that the program waits for.
    if (listener := probe.current) and not is_ours(caller):
        learned()
        listener.taken_over(key)


#: Functions that are replaced, and their replacements.
_REPLACEMENTS: Final[tuple[tuple[Any, str, Callable[[Any], Any]], ...]] = (
    *((owner, name, _leaving) for owner, name in _LEAVING),
    *((owner, name, _taking) for owner, name in _TAKING),
    *((owner, name, _doing_both) for owner, name in _DOING_BOTH),
    (queue.Queue, "put", _putting),
    (queue.Queue, "get", _getting),
    (threading.Event, "set", _telling_all),
    (threading.Event, "is_set", _asking_event),
    (threading.Condition, "__enter__", _entering),
    (threading.Condition, "__exit__", _exiting),
    (threading.Condition, "notify", _adding),
    (threading.Condition, "notify_all", _telling_all),
    (threading.Semaphore, "__enter__", _acquiring),
    (threading.Semaphore, "__exit__", _releasing),
    (threading.Semaphore, "acquire", _acquiring),
    (threading.Semaphore, "release", _adding),
    (threading.BoundedSemaphore, "release", _adding),
    (pools._WorkItem, "run", _taking_first),
    (threading.Thread, "start", _starting),
    (threading.Thread, "join", _joining),
    (threading.Thread, "is_alive", _asking),
    (threading, "Lock", lambda _: HeardLock),
    (threading, "RLock", lambda _: HeardRLock),
    (queue, "SimpleQueue", lambda _: HeardSimpleQueue),
)


# --- what is told -------------------------------------------------------------------

#: The attribute of an object by which threads hand over that says who did; as None,
#: their classes have it as well from the first time on that somebody listens.
_PLACE: Final = "_gradviz_place"
_WITH_PLACE: Final = (
    threading.Event,
    threading.Condition,
    threading.Semaphore,
    threading.Barrier,
    queue.Queue,
    Future,
    pools._WorkItem,
)


def _leave(thing: Any) -> None:
    """Leave something there."""
    place = thing.__dict__.get(_PLACE)
    if place is not None and place.left_version.ident == get_ident():
        return
    if _is_part(thing, sys._getframe(1).f_back):
        return
    if place is None:
        # Two threads may come here at once, and have to find the same one.
        place = thing.__dict__.setdefault(_PLACE, MeetingPlace())
    place.leave()


def _take(thing: Any) -> None:
    """Report that a thread takes over the work left at an object."""
    place = thing.__dict__.get(_PLACE)
    if place is None or place.taken_version.ident == get_ident():
        return
    if not _is_part(thing, sys._getframe(1).f_back):
        place.take()


def _is_part(thing: object, caller: FrameType | None) -> bool:
    """Return whether the library calls its own method inside a reported call.

    And whether a thread begins, which is not known to `threading` itself yet.
    """
    by = package(caller)
    return by == "threading" or (
        by == "queue" and isinstance(thing, threading.Condition)
    )
