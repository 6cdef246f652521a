"""The seam: the source of every thread, lock, mailbox and clock of the engine.

Nothing else in `gradviz.engine` imports `threading`, `queue` or `time` for concurrency.
In production the seam is a thin pass-through to the C implementations. A test passes
another `Sync` to the engine and so decides which thread runs next, at every point where
two threads can meet.

Note [Shared fields go through the seam]
~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~
A scheduler that switches threads only at the seam sees only the races that cross it.
So each field that two threads touch is either guarded by a lock made here or is a
`Flag` made here, and its comment says which. A plain attribute shared without either
would hide its races from every test.
"""

import faulthandler
import os
import queue
import re
import sys
import threading
import time
from collections.abc import Callable
from types import TracebackType
from typing import Final, Generic, Protocol, TypeVar

from gradviz.errors import EngineError
from gradviz.locks import SafeLock, SafeRLock

T = TypeVar("T")


class Lock(Protocol):
    """A mutex, used only as a context manager."""

    def __enter__(self) -> bool: ...
    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        traceback: TracebackType | None,
        /,
    ) -> None: ...


class Mailbox(Protocol[T]):
    """An unbounded queue that any thread may put items into.

    Note [Mailboxes instead of conditions]
    ~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~
    PyTorch guards each ready queue with a mutex and a condition variable. In Python a
    signal handler may raise between any two bytecodes, and a finalizer may run inside
    any allocation. Both can strike while a `threading.Condition` holds its lock or has
    half updated its waiters, and then the next backward hangs. `SimpleQueue.put` is one
    C call that either happened or did not, and it is documented as reentrant, so a
    signal handler or finalizer that pushes cannot deadlock with its own thread.
    """

    def put(self, item: T, /) -> None:
        """Add an item; any thread may call it, signal handlers and finalizers too."""

    def get(self, block: bool = True, timeout: float | None = None) -> T:
        """Take the oldest item, waiting for one; raise `Empty` after `timeout`."""

    def empty(self) -> bool:
        """Return whether the mailbox is empty at this moment."""

    def qsize(self) -> int:
        """Return the number of items at this moment."""


#: Raised by `Mailbox.get` when nothing arrived in time.
Empty = queue.Empty

#: Per-thread state that belongs to no engine: the count of nodes the thread has made.
ThreadLocal = threading.local

#: The lock of a leaf, which belongs to no engine either. The engine does nothing while
#: it is held, so a test's scheduler has nothing to interleave here. Every leaf of every
#: step makes one, so this is a class: `threading.RLock` is a function around one.
LeafLock: Final[Callable[[], Lock]] = SafeRLock


def out_of_memory(error: RuntimeError) -> BaseException:
    """Return `error`, or a MemoryError if it says that no lock could be allocated."""
    if str(error) == "can't allocate lock":
        return MemoryError(str(error))
    return error


#: Python's message when a thread is started too late.
_TOO_LATE: Final = "can't create new thread at interpreter shutdown"


def is_end_of_program(error: BaseException) -> bool:
    """Return whether `error` only says that the program ends, on a daemon thread.

    Note [Daemon threads at exit]
    ~~~~~~~~~~~~~~~~~~~~~~~~~~~~~
    Exit handlers run once the main thread and all non-daemon threads have ended, and
    one of them stops the engine. Daemon threads still run then. If one calls backward,
    the engine rightly refuses, but the thread did nothing wrong, and `threading` would
    print the error after an otherwise silent program. So the thread gets a
    `SystemExit`, which unwinds it like any error, locks and all, and which `threading`
    does not print. The main thread, which runs the handlers, and non-daemon threads get
    the usual error.
    """
    return (
        (isinstance(error, EngineError) or str(error) == _TOO_LATE)
        and not threading.main_thread().is_alive()
        and threading.current_thread().daemon
    )


def may_be_interrupted() -> bool:
    """Return whether a signal handler may raise here: only on the main thread."""
    return threading.current_thread() is threading.main_thread()


def current_thread() -> tuple[str, int]:
    """Return the name and identifier of the calling thread, for display."""
    thread = threading.current_thread()
    return thread.name, threading.get_ident()


def stacks() -> dict[int, list[str]]:
    """Return each thread's stack by its identifier, outermost frame first.

    Note [Stacks without frames]
    ~~~~~~~~~~~~~~~~~~~~~~~~~~~~
    `sys._current_frames` holds an interpreter lock while it allocates. A garbage
    collection at that point may let another thread run; if that thread ends, it waits
    for the same lock while it holds the GIL, and the process hangs for good, signals
    and all (CPython issue 106883, in 3.11; see `thread_frames`). `faulthandler`, made
    for processes in distress, allocates nothing and takes no lock, but only writes
    files.
    """
    import tempfile  # noqa: PLC0415 - keeps start-up fast

    with tempfile.TemporaryFile() as file:
        faulthandler.dump_traceback(file)
        file.seek(0)
        text = file.read().decode(errors="replace")
    found: dict[int, list[str]] = {}
    for thread in text.split("\n\n"):
        title, *frames = thread.splitlines()
        if match := re.search(r"hread 0x([0-9a-f]+)", title):
            found[int(match[1], 16)] = [frame.strip() for frame in reversed(frames)]
    return found


class Flag:
    """A boolean that one thread sets and others read without a lock.

    Attributes:
        value: False until a thread sets it. Reads and writes are atomic.
    """

    __slots__ = ("value",)

    def __init__(self) -> None:
        self.value = False


class Local(Generic[T]):
    """One `T` per thread, made by `factory` on that thread's first access."""

    def __init__(self, factory: Callable[[], T]) -> None:
        self._factory = factory
        self._local = threading.local()

    def get(self) -> T:
        """Return the calling thread's own value."""
        try:
            own: T = self._local.own
        except AttributeError:
            own = self._local.own = self._factory()
        return own


class Sync(Protocol):
    """Provider of all concurrency primitives of the engine."""

    def lock(self) -> Lock:
        """Return a new, non-reentrant mutex."""

    def mailbox(self) -> Mailbox[T]:
        """Return a new, empty mailbox."""

    def flag(self) -> Flag:
        """Return a new flag, False."""

    def local(self, factory: Callable[[], T]) -> Local[T]:
        """Return a new thread-local value."""

    def spawn(self, target: Callable[[], None], name: str) -> None:
        """Start a daemon thread.

        Raises:
            RuntimeError: The system refuses another thread.
        """

    def now_ns(self) -> int:
        """Return the time of a monotonic clock, in nanoseconds."""

    def process_id(self) -> int:
        """Return the process id, which changes after a fork."""


#: Seconds that the main thread sleeps in a mailbox before it checks for signals.
_NAP_SECONDS: Final = 0.05


class _InterruptibleMailbox(queue.SimpleQueue[T]):
    """A mailbox whose `get` notices Ctrl-C, whichever thread receives the signal.

    Python runs signal handlers on the main thread. If the system delivers the signal to
    another thread, a main thread asleep in C is not woken and would notice it only when
    the next item arrives. So the main thread takes short naps here instead.
    """

    def get(self, block: bool = True, timeout: float | None = None) -> T:
        if not block or threading.current_thread() is not threading.main_thread():
            return super().get(block, timeout)
        deadline = None if timeout is None else time.monotonic() + timeout
        while True:
            nap = _NAP_SECONDS
            if deadline is not None:
                nap = max(0.0, min(nap, deadline - time.monotonic()))
            try:
                return super().get(timeout=nap)
            except queue.Empty:
                if deadline is not None and time.monotonic() >= deadline:
                    raise


class Threads:
    """The seam in production: Python's own threads."""

    # Engine threads have the platform's default stack (8 MiB on Linux, 512 KiB on
    # macOS); the engine never recurses with the depth of a graph.

    def lock(self) -> Lock:
        """Return a lock; see Note [Interrupts and locks]."""
        try:
            return SafeLock()
        except RuntimeError as error:
            raise out_of_memory(error) from None

    def mailbox(self) -> Mailbox[T]:
        """Return a `queue.SimpleQueue` whose `get` can be interrupted."""
        return _InterruptibleMailbox()

    def flag(self) -> Flag:
        """Return a plain attribute."""
        return Flag()

    def local(self, factory: Callable[[], T]) -> Local[T]:
        """Return a `threading.local`."""
        return Local(factory)

    def spawn(self, target: Callable[[], None], name: str) -> None:
        """Start a daemon thread, which never keeps the process alive."""
        if sys.is_finalizing():
            # Before 3.12, `Thread.start` would wait forever for the thread to run.
            raise RuntimeError(_TOO_LATE)
        try:
            threading.Thread(target=target, name=name, daemon=True).start()
        except RuntimeError as error:
            raise out_of_memory(error) from None

    def now_ns(self) -> int:
        """Return `time.monotonic_ns()`."""
        return time.monotonic_ns()

    def process_id(self) -> int:
        """Return `os.getpid()`."""
        return os.getpid()


#: The default seam of an engine.
THREADS = Threads()
