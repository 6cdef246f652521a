"""The seam: every thread, lock, mailbox and clock the engine uses comes from here.

Nothing else in `gradviz.engine` imports `threading`, `queue` or `time` for its
concurrency. In production the seam is a thin pass-through to the C implementations.
A test passes another `Sync` to the engine and thereby decides which thread runs next,
at every point where two threads can meet.

Note [Shared fields go through the seam]
~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~
A scheduler that switches threads only at the seam sees only the races that cross it.
So each field that two threads touch is either guarded by a lock made here, or is a
`Flag` made here. A plain attribute shared without either would hide its races from
every test; each shared field's comment says which of the two it is.
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
    """An unbounded queue that any thread may put into.

    Note [Mailboxes instead of conditions]
    ~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~
    PyTorch guards each ready queue with a mutex and a condition variable. In Python a
    signal handler may raise between any two bytecodes, and a finaliser may run inside
    any allocation: both can strike while a `threading.Condition` holds its lock or
    has half updated its waiters, and then the next backward hangs. `SimpleQueue` is
    one C call that either happened or did not, and `put` is documented as reentrant,
    so a signal handler or finaliser that pushes cannot deadlock with its own thread.
    """

    def put(self, item: T, /) -> None:
        """Add an item; any thread, signal handlers and finalisers too."""

    def get(self, block: bool = True, timeout: float | None = None) -> T:
        """Take the oldest item, waiting for one; raises `Empty` after `timeout`."""

    def empty(self) -> bool:
        """Whether nothing is there at this moment."""

    def qsize(self) -> int:
        """How many are there at this moment."""


#: Raised by `Mailbox.get` when nothing came in time.
Empty = queue.Empty

#: State of the thread that is no engine's: the count of nodes it has made.
ThreadLocal = threading.local

#: The lock of a leaf, which belongs to no engine either. Nothing of the engine happens
#: while it is held, so no schedule of a test could tell it from none.
#: Each leaf of each step makes one: `threading.RLock` is a function around this class.
LeafLock: Final[Callable[[], Lock]] = type(threading.RLock())


def out_of_memory(error: RuntimeError) -> BaseException:
    """A MemoryError where CPython calls it so: not in its locks; else `error`."""
    if str(error) == "can't allocate lock":
        return MemoryError(str(error))
    return error


#: What Python says to who starts a thread too late.
_TOO_LATE: Final = "can't create new thread at interpreter shutdown"


def is_end_of_program(error: BaseException) -> bool:
    """Whether `error` only says that the program ends, to a thread nobody waits for.

    Note [Daemon threads at exit]
    ~~~~~~~~~~~~~~~~~~~~~~~~~~~~~
    When the main thread has ended, and all threads that are waited for, exit handlers
    run, and one of them stops the engine. Daemon threads still run then. One that calls
    backward is refused, which is right, but nothing of its own doing: `threading` would
    print the error after an otherwise silent program. So it is given a `SystemExit`,
    which unwinds it like any error, locks and all, and which `threading` says nothing
    about. The main thread, which runs the handlers, and threads that are waited for are
    told as ever.
    """
    return (
        (isinstance(error, EngineError) or str(error) == _TOO_LATE)
        and not threading.main_thread().is_alive()
        and threading.current_thread().daemon
    )


def may_be_interrupted() -> bool:
    """Whether a signal's handler may raise in the calling thread: in the main one."""
    return threading.current_thread() is threading.main_thread()


def current_thread() -> tuple[str, int]:
    """Name and identifier of the calling thread, for people."""
    thread = threading.current_thread()
    return thread.name, threading.get_ident()


def stacks() -> dict[int, list[str]]:
    """Where each thread is now: its identifier and its frames, outermost first.

    Note [Stacks without frames]
    ~~~~~~~~~~~~~~~~~~~~~~~~~~~~
    `sys._current_frames` holds a lock of the interpreter while it allocates. A garbage
    collection in there may let another thread run, and if that one ends it waits for
    the same lock with the GIL in its hand: the process hangs for good, signals and all
    (CPython issue 106883, in 3.11 until 3.11.7). `faulthandler`, made for processes in
    distress, allocates nothing and takes no lock, but writes to files only.
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
        value: False until someone sets it. Reading and writing are atomic.
    """

    __slots__ = ("value",)

    def __init__(self) -> None:
        self.value = False


class Local(Generic[T]):
    """One `T` a thread, made by `factory` when that thread first asks."""

    def __init__(self, factory: Callable[[], T]) -> None:
        self._factory = factory
        self._local = threading.local()

    def get(self) -> T:
        """The calling thread's own."""
        try:
            own: T = self._local.own
        except AttributeError:
            own = self._local.own = self._factory()
        return own


class Sync(Protocol):
    """Where the engine takes its concurrency from."""

    def lock(self) -> Lock:
        """A new mutex, not reentrant."""

    def mailbox(self) -> Mailbox[T]:
        """A new, empty mailbox."""

    def flag(self) -> Flag:
        """A new flag, False."""

    def local(self, factory: Callable[[], T]) -> Local[T]:
        """A new thread-local value."""

    def spawn(self, target: Callable[[], None], name: str) -> None:
        """Start a daemon thread.

        Raises:
            RuntimeError: The system refuses another thread.
        """

    def now_ns(self) -> int:
        """A clock that never goes back, in nanoseconds."""

    def process_id(self) -> int:
        """The process: another number after a fork."""


#: How long the main thread sleeps in a mailbox before it looks for signals.
_NAP_SECONDS: Final = 0.05


class _InterruptibleMailbox(queue.SimpleQueue[T]):
    """A mailbox whose `get` notices Ctrl-C, whichever thread the system tells of it.

    Python runs signal handlers on the main thread. Where the system hands the signal to
    another thread, the main one is not woken from a sleep in C, and would notice it
    only when the next item comes. So it naps there instead of sleeping.
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

    # Stacks of engine threads are the platform's default (8 MiB on Linux, 512 KiB on
    # macOS); the engine itself never recurses with the depth of a graph.

    def lock(self) -> Lock:
        """A `threading.Lock`."""
        try:
            return threading.Lock()
        except RuntimeError as error:
            raise out_of_memory(error) from None

    def mailbox(self) -> Mailbox[T]:
        """A `queue.SimpleQueue`, in whose `get` the main thread can be interrupted."""
        return _InterruptibleMailbox()

    def flag(self) -> Flag:
        """A plain attribute."""
        return Flag()

    def local(self, factory: Callable[[], T]) -> Local[T]:
        """A `threading.local`."""
        return Local(factory)

    def spawn(self, target: Callable[[], None], name: str) -> None:
        """A daemon thread: it never keeps the process alive."""
        if sys.is_finalizing():
            # Before 3.12, `Thread.start` would wait for ever for it to run.
            raise RuntimeError(_TOO_LATE)
        try:
            threading.Thread(target=target, name=name, daemon=True).start()
        except RuntimeError as error:
            raise out_of_memory(error) from None

    def now_ns(self) -> int:
        """`time.monotonic_ns`."""
        return time.monotonic_ns()

    def process_id(self) -> int:
        """`os.getpid`."""
        return os.getpid()


#: The seam that engines use unless told otherwise.
THREADS = Threads()
