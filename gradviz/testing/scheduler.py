"""The engine's seam under a deterministic scheduler: `Engine(sync=Scheduler(policy))`.

Every operation on a lock, mailbox, flag or clock is a point where the policy may let
another thread run: before it, and after a release and the reading of a flag too, for
what a thread does then may rest on what no longer holds. See Note [Shared fields go
through the seam] for why these points are enough, and Note [Turns] for how threads run.
"""

import contextlib
import threading
from collections import deque
from collections.abc import Callable, Iterator
from types import TracebackType
from typing import Generic, Self, TypeVar

from gradviz.engine import Engine, default_engine, set_default_engine
from gradviz.engine.graph.sync import Empty, Flag, Local
from gradviz.testing.fiber import Fiber
from gradviz.testing.fibers import Fibers
from gradviz.testing.policy import Policy

T = TypeVar("T")


class _OfThread(threading.local):
    """The scheduler of a real thread: others must not move its clock or its turns."""

    running: "Scheduler | None" = None


_here = _OfThread()


def pause() -> None:
    """Let others run, from inside a node or hook; nothing outside a `Scheduler`."""
    if _here.running is not None:
        _here.running.fibers.switch()


def sleep(seconds: float) -> None:
    """Take long, on the virtual clock; nothing outside a `Scheduler`."""
    if _here.running is not None:
        _here.running.fibers.sleep(seconds)


class Scheduler:
    """A `Sync` whose threads take turns, as the policy decides.

    Use it as a context manager::

        with Scheduler(RandomWalk(17)) as scheduler:
            engine = Engine(sync=scheduler)
            scheduler.run(a=lambda: engine.execute(...), b=lambda: engine.execute(...))

    Args:
        policy: Policy that says which fiber runs next.

    Attributes:
        fibers: The threads.
        locks: All that were made.

    Raises:
        MissingToolError: greenlet is not installed.
    """

    def __init__(self, policy: Policy) -> None:
        self.fibers = Fibers(policy)
        self.locks: list[ScheduledLock] = []

    def run(self, **threads: Callable[[], object]) -> None:
        """Run threads until nothing moves any more; see `Fibers.run`."""
        self.fibers.run(**threads)

    @contextlib.contextmanager
    def default_engine(self) -> Iterator[Engine]:
        """For a block, the engine that tensors use is one of this scheduler's."""
        before = default_engine()
        engine = Engine(sync=self)
        set_default_engine(engine)
        try:
            yield engine
        finally:
            set_default_engine(before)

    def thread(self) -> int:
        """Return the number of the running thread, in order of start; -1 for none."""
        fiber = self.fibers.current
        return -1 if fiber is None else fiber.number

    def interrupt(self, name: str, error: BaseException) -> None:
        """Raise `error` in the thread of that name; from another thread's function.

        When that happens is up to the policy, as it is for everything a thread does.
        """
        self.fibers.switch()
        for fiber in tuple(self.fibers.alive.values()):
            if fiber.name == name:
                self.fibers.interrupt(fiber, error)

    def __enter__(self) -> Self:
        _here.running = self
        self.fibers.__enter__()
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        traceback: TracebackType | None,
    ) -> None:
        self.fibers.__exit__(kind, error, traceback)
        _here.running = None

    # --- the seam -------------------------------------------------------------------

    def lock(self) -> "ScheduledLock":
        """Return a mutex; a thread that takes it twice waits forever."""
        lock = ScheduledLock(self.fibers, f"lock {len(self.locks)}")
        self.locks.append(lock)
        return lock

    def mailbox(self) -> "ScheduledMailbox[T]":
        """A mailbox."""
        return ScheduledMailbox(self.fibers)

    def flag(self) -> Flag:
        """A flag, each reading and writing of which is a switch point."""
        return ScheduledFlag(self.fibers)

    def local(self, factory: Callable[[], T]) -> Local[T]:
        """One value a thread."""
        return ScheduledLocal(self.fibers, factory)

    def spawn(self, target: Callable[[], None], name: str) -> None:
        """Start a daemon thread."""
        self.fibers.switch()
        self.fibers.start(target, name, is_daemon=True)

    def now_ns(self) -> int:
        """The virtual clock."""
        self.fibers.switch()
        return self.fibers.now_ns

    def process_id(self) -> int:
        """Always the same."""
        return 1


class ScheduledLock:
    """A mutex, not reentrant."""

    __slots__ = ("_fibers", "_name", "owner", "waiters")

    def __init__(self, fibers: Fibers, name: str) -> None:
        self._fibers = fibers
        self._name = name
        self.owner: Fiber | None = None
        self.waiters: list[Fiber] = []

    def describe(self) -> str:
        """The lock's number and its owner."""
        return f"{self._name} ({'free' if self.owner is None else self.owner.name})"

    def __enter__(self) -> bool:
        fibers = self._fibers
        fibers.switch()
        while self.owner is not None:
            fibers.wait(self)
        self.owner = fibers.current
        return True

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        traceback: TracebackType | None,
        /,
    ) -> None:
        self.owner = None
        self._fibers.wake(self)
        self._fibers.switch()


class ScheduledMailbox(Generic[T]):
    """An unbounded queue that any thread may put into."""

    __slots__ = ("_fibers", "_items", "waiters")

    def __init__(self, fibers: Fibers) -> None:
        self._fibers = fibers
        self._items: deque[T] = deque()
        self.waiters: list[Fiber] = []

    def describe(self) -> str:
        """Return the name of a thread's mailbox, by its index."""
        return f"a mailbox with {len(self._items)} items"

    def put(self, item: T, /) -> None:
        """Add an item."""
        self._fibers.switch()
        self._items.append(item)
        self._fibers.wake(self)

    def get(self, block: bool = True, timeout: float | None = None) -> T:
        """Take the oldest item, waiting for one.

        Raises:
            Empty: Nothing came in time.
        """
        self._fibers.switch()
        while not self._items:
            if not block or not self._fibers.wait(self, timeout):
                raise Empty
        return self._items.popleft()

    def empty(self) -> bool:
        """Return whether nothing is there at this moment."""
        self._fibers.switch()
        return not self._items

    def qsize(self) -> int:
        """Return the number of items at this moment."""
        self._fibers.switch()
        return len(self._items)


class ScheduledFlag(Flag):
    """A flag with visible races."""

    __slots__ = ("_fibers", "_is_set")

    def __init__(self, fibers: Fibers) -> None:
        self._fibers = fibers
        self._is_set = False

    @property
    def value(self) -> bool:
        """True if it is set; that may change before the caller knows."""
        self._fibers.switch()
        is_set = self._is_set
        self._fibers.switch()
        return is_set

    @value.setter
    def value(self, is_set: bool) -> None:
        self._fibers.switch()
        self._is_set = is_set


class ScheduledLocal(Local[T]):
    """One value a thread, and one for whatever is no thread of the scheduler."""

    def __init__(self, fibers: Fibers, factory: Callable[[], T]) -> None:
        self._fibers = fibers
        self._make = factory
        self._own: dict[Fiber | None, T] = {}

    def get(self) -> T:
        """The calling thread's own."""
        fiber = self._fibers.current
        if fiber not in self._own:
            self._own[fiber] = self._make()
        return self._own[fiber]
