"""Hand-overs between threads that are worth reporting; most are redundant.

Note [Hand-overs that tell nothing]
~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~
A program takes and releases a lock a million times, and nearly always the thread that
takes it is the one that released it last. Reporting that would cost more than the lock,
so a thread reports a hand-over only if another thread may learn something by it:

* A thread's *knowledge* changes when it waits for a device, uses memory that a device
  uses, leaves a backward pass, or takes over from another thread. Each time it gets a
  new `Knowledge`, which belongs to no other thread.
* It leaves something at a place only if the last one to do so was not itself, with its
  current version.
* It takes over from a place only if another thread has left something there since it
  last took over, or if it has learned anything else since.

So a checker of streams knows the same of each thread as if all were reported. A thread
without a version reports everything: those of the engine, which learn from the nodes
that they run, and a caller of a pass until it returns.

No lock is held here. A place is changed in an order that makes a thread that comes in
between report too much and never too little.

Note [A version knows its thread]
~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~
A place keeps the version of the last thread that left something there. Each call of a
lock asks whether that is the calling thread's own, and looking up a thread's version in
a `threading.local` takes as long as the lock. So a version holds the number of its
thread (`threading.get_ident`) while it is the newest of that thread, and 0 afterwards:
only ``place.left_version.ident != get_ident()`` has to be compared. In compiled code
that takes 3 ns, because `get_ident` is a C function there.

The system reuses the number of a thread that has ended. `_thread.newest` ends with its
thread, before the number is free, and outdates its version.
"""

import functools
import itertools
import threading
from collections.abc import Callable
from typing import Any, Final

from gradviz.trace import probe
from gradviz.trace.probe import Probe

#: The key of all that anybody knows: of a thread that was never heard to hand over.
EVERYTHING: Final = 0

#: Keys of places and threads, from 1.
_keys: Final = itertools.count(1)


class Knowledge:
    """A state of one thread's knowledge; see Note [A version knows its thread].

    Attributes:
        ident: `threading.get_ident` of the thread; 0 once it knows more, or has ended.
            Only that thread writes it.
    """

    __slots__ = ("ident",)

    def __init__(self, ident: int) -> None:
        self.ident = ident


#: The version of no thread.
NO_VERSION: Final = Knowledge(0)


class _Newest:
    """The newest version of a thread, outdated when the thread ends."""

    __slots__ = ("version",)

    def __init__(self) -> None:
        self.version = NO_VERSION

    def renew(self) -> None:
        """Replace it by a new one. Only the thread itself calls this."""
        self.version.ident = 0
        self.version = Knowledge(threading.get_ident())

    def __del__(self) -> None:
        self.version.ident = 0


class _Thread(threading.local):
    """The calling thread.

    Attributes:
        newest: Holds the version of what it knows; None if it reports everything.
        key: Its own, 0 if it reports everything for good.
    """

    newest: _Newest | None = None
    key = 0


_thread: Final = _Thread()


class MeetingPlace:
    """Something by which threads hand over to each other: a lock, a queue, an event.

    A caller that comes often first asks whether it has news: if the ``ident`` of
    `left_version` is its own, `leave` does nothing, and with `taken_version`, `take`.

    Attributes:
        key: Key that reports use for it.
        left_version: The version of the thread that left something last.
        taken_version: The version of a thread that has taken over all there is.
    """

    __slots__ = ("_first", "_is_shared", "key", "left_version", "taken_version")

    def __init__(self) -> None:
        self.key = next(_keys)
        self.left_version = self.taken_version = NO_VERSION
        #: The key of the thread that left something first, if any has.
        self._first: dict[None, int] = {}
        self._is_shared = False  # whether another one has, too

    def leave(self) -> None:
        """Report that the calling thread is about to leave something, if it is news."""
        if self.left_version.ident == threading.get_ident():
            return
        version = _version()
        if listener := probe.current:
            listener.handed_over(self.key)
        key = _thread.key
        if not key or self._first.setdefault(None, key) != key:
            self._is_shared = True
        if self.taken_version is not version:  # after the report; see `take`
            self.taken_version = NO_VERSION
        self.left_version = version

    def take(self) -> None:
        """Report that the calling thread has taken over all of it, if it is news."""
        if self.taken_version.ident == threading.get_ident():
            return
        # Set before anything is looked at: who leaves something after that resets it.
        self.taken_version = _version()
        first = self._first.get(None, 0)
        if not self._is_shared and first in {0, _thread.key}:
            return
        learned()
        self.taken_version = _version()
        if listener := probe.current:
            listener.taken_over(self.key)


def new_key() -> int:
    """Return a new number for a thread in reports."""
    return next(_keys)


def know_thread() -> None:
    """Make the calling thread, one of the program's, report only news."""
    _thread.key = _thread.key or next(_keys)
    if _thread.newest is None:
        _thread.newest = _Newest()
    _thread.newest.renew()


def learned() -> None:
    """Note that the calling thread knows more from now on."""
    if newest := _thread.newest:
        newest.renew()


def _version() -> Knowledge:
    """Return the version of the calling thread."""
    newest = _thread.newest
    return NO_VERSION if newest is None else newest.version


def _pass_entered() -> None:
    _thread.newest = None  # which outdates its version


def _pass_left() -> None:
    if _thread.key:
        know_thread()


#: Reports after which the thread that makes them knows more, and what to do then.
_NEWS: Final[dict[str, Callable[[], object]]] = {
    "event_synchronized": learned,
    "stream_synchronized": learned,
    "device_synchronized": learned,
    "host_accessed": learned,
    "thread_started": _pass_entered,
    "thread_exited": _pass_left,
}


def note_news(listener: type[Probe]) -> None:
    """Have a class of listeners keep the versions of threads up to date."""
    for name, note in _NEWS.items():
        setattr(listener, name, _noting(getattr(listener, name), note))


def _noting(report: Callable[..., None], note: Callable[[], object]) -> Any:  # noqa: ANN401 - it takes what `report` takes
    @functools.wraps(report)
    def call(*args: object, **kwargs: object) -> None:
        report(*args, **kwargs)
        note()

    return call
