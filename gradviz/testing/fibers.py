"""Threads that take turns: one runs at a time, and a policy decides which.

What the threads share (locks, mailboxes) is built on top, in `scheduler`; here is how
they switch, wait and wake, and the clock.

Note [Turns]
~~~~~~~~~~~~
The threads are greenlets of one real thread, so nothing happens between two switch
points, a run depends on the policy only, and a switch costs a microsecond. Each has a
context of its own, as a real thread has. The *hub* is the greenlet that called `run`;
a thread that ends returns there. Time is virtual: it stands still while any thread can
run, and jumps to the next deadline when all of them wait. So a timeout never fires
because a machine was slow, and fires at once when nothing else can happen.
"""

import contextvars
from collections.abc import Callable
from types import TracebackType
from typing import Any, Final, NoReturn, Self

from gradviz.errors import MissingToolError
from gradviz.testing.fiber import (
    Deadlock,
    Fiber,
    Livelock,
    ScheduleError,
    ThreadDied,
    Waitable,
)
from gradviz.testing.policy import Decision, Policy

#: Maximum number of switch points of a run before it counts as endless.
MAX_SWITCHES: Final = 20_000

#: Maximum number of switch points that a thread reaches while it is unwound.
MAX_CANCELLED: Final = 100

#: Threads that would not be unwound; kept, for a greenlet must not die in the middle.
_stuck: Final[list[Fiber | None]] = []


class _Cancelled(BaseException):
    """Unwinds the threads of a run that is given up."""


class _Alarm:
    """The wait of a thread that only sleeps."""

    def __init__(self) -> None:
        self.waiters: list[Fiber] = []

    def describe(self) -> str:
        return "the time to pass"


class Fibers:
    """Runs threads in turns; a context manager, which ends those that still wait.

    Args:
        policy: Decides who runs.

    Attributes:
        current: The thread that runs, None outside of `run`.
        alive: Those that have begun and not ended, in order of creation.
        decisions: Decisions of the policy, at every point with a choice.
        num_switches: Switch points passed.
        now_ns: The virtual clock.

    Raises:
        MissingToolError: greenlet is not installed.
    """

    def __init__(self, policy: Policy) -> None:
        self._greenlet = _greenlet_module()
        self._policy = policy
        self._hub: Any = None
        self._failure: ScheduleError | None = None
        self._is_closing = False
        self._num_cancelled = 0
        self._num_created = 0
        #: Those that can run, without the current one.
        self._ready: list[Fiber] = []
        self.current: Fiber | None = None
        self.alive: dict[int, Fiber] = {}
        self.decisions: list[Decision] = []
        self.num_switches = 0
        self.now_ns = 0

    # --- running ------------------------------------------------------------------

    def run(self, **threads: Callable[[], object]) -> None:
        """Run these threads, by name, and all that they start, until nothing moves.

        Daemon threads may still wait then; another call of `run` goes on with them.

        Raises:
            Deadlock: Another thread still waits.
            Livelock: `MAX_SWITCHES` were not enough.
            ThreadDied: A thread's function raised.
        """
        self._hub = self._greenlet.getcurrent()
        for name, target in threads.items():
            self.start(target, name, is_daemon=False)
        while (fiber := self._next(None)) is not None:
            self.current = fiber
            fiber.greenlet.switch()
            self.current = None
            if self._failure is not None:
                raise self._failure
        if any(not fiber.is_daemon for fiber in self.alive.values()):
            raise Deadlock(f"every thread waits:\n{self.table()}")

    def start(
        self, target: Callable[[], object], name: str, *, is_daemon: bool
    ) -> Fiber:
        """Add a thread, which runs when its turn comes."""
        fiber = Fiber(self._num_created, name, is_daemon=is_daemon)
        self._num_created += 1
        fiber.greenlet = self._greenlet.greenlet(
            lambda: self._main(fiber, target), parent=self._hub
        )
        fiber.greenlet.gr_context = contextvars.Context()
        self.alive[fiber.number] = fiber
        self._ready.append(fiber)
        return fiber

    def _main(self, fiber: Fiber, target: Callable[[], object]) -> None:
        try:
            target()
        except _Cancelled:
            pass
        except BaseException as error:  # noqa: BLE001 - reported by `run`
            if not self._is_closing:
                self._failure = ThreadDied(
                    f"thread {fiber.name} died of {type(error).__name__}: {error}"
                )
                self._failure.__cause__ = error
        finally:
            self.alive.pop(fiber.number)

    # --- for those who build what threads share -------------------------------------

    def switch(self) -> None:
        """A point where another thread may get its turn; nothing outside of `run`.

        Raises:
            BaseException: Error that `interrupt` sent to this thread.
        """
        current = self.current
        if current is None:
            return
        if self._is_closing:
            self._cancel()
        self.num_switches += 1
        if self.num_switches > MAX_SWITCHES:
            self._fail(
                Livelock(f"no end after {MAX_SWITCHES} switches:\n{self.table()}")
            )
        if self._ready:
            chosen = self._next(current)
            assert chosen is not None
            if chosen is not current:
                self._ready.append(current)
                self._switch_to(chosen, current)
        if current.interruption is not None:
            error, current.interruption = current.interruption, None
            raise error

    def wait(self, what: Waitable, timeout: float | None = None) -> bool:
        """Let the others run until one of them wakes this thread.

        Args:
            what: Object that it waits for.
            timeout: In seconds of the virtual clock; None is forever.

        Returns:
            False if the time was over first.

        Raises:
            RuntimeError: Called outside of `run` without a timeout.
            BaseException: Error that `interrupt` sent to this thread.
        """
        current = self.current
        if current is None:
            if timeout is None:
                raise RuntimeError(f"would wait for ever for {what.describe()}")
            return False
        if self._is_closing:
            self._cancel()
        current.waits_for = what
        if timeout is not None:
            current.deadline_ns = self.now_ns + int(timeout * 1e9)
        what.waiters.append(current)
        chosen = self._next(None)
        if chosen is not current:
            self._switch_to(chosen, current)
        if current.interruption is not None:
            error, current.interruption = current.interruption, None
            raise error
        is_woken, current.deadline_ns = current.deadline_ns != _EXPIRED, None
        return is_woken

    def sleep(self, seconds: float) -> None:
        """Let the others run until the virtual clock has moved on by `seconds`."""
        self.wait(_Alarm(), seconds)

    def wake(self, what: Waitable) -> None:
        """Let all threads that wait for `what` check again."""
        if what.waiters:
            for fiber in what.waiters:
                fiber.waits_for = None
                self._ready.append(fiber)
            what.waiters.clear()

    def interrupt(self, fiber: Fiber, error: BaseException) -> None:
        """Raise `error` in a thread, at the point where it is.

        As a signal handler would: what the thread waits for, it no longer gets.
        Nothing happens to a thread that has ended.
        """
        if fiber.number not in self.alive:
            return
        fiber.interruption = error
        if fiber.waits_for is not None:
            fiber.waits_for.waiters.remove(fiber)
            self._resume(fiber)

    # --- whose turn -----------------------------------------------------------------

    def _next(self, current: Fiber | None) -> Fiber | None:
        """Choose the next thread: `current` or a ready one, which is removed."""
        ready = self._ready
        if not ready and current is None:
            self._jump()
        if current is None:
            index = self._choose(ready, is_preemption=False) if len(ready) > 1 else 0
            return ready.pop(index) if ready else None
        index = self._choose([current, *ready], is_preemption=True)
        return ready.pop(index - 1) if index else current

    def _choose(self, candidates: list[Fiber], *, is_preemption: bool) -> int:
        choice = self._policy.choose([fiber.number for fiber in candidates])
        self.decisions.append(Decision(choice, len(candidates), is_preemption))
        return choice

    def _jump(self) -> None:
        """Move the clock to the next deadline; the thread with it stops waiting."""
        sleeping = [f for f in self.alive.values() if f.deadline_ns is not None]
        if not sleeping:
            return
        fiber = min(sleeping, key=lambda fiber: fiber.deadline_ns or 0)
        assert fiber.deadline_ns is not None
        assert fiber.waits_for is not None
        self.now_ns = max(self.now_ns, fiber.deadline_ns)
        fiber.waits_for.waiters.remove(fiber)
        self._resume(fiber)
        fiber.deadline_ns = _EXPIRED

    def _resume(self, fiber: Fiber) -> None:
        fiber.waits_for = fiber.deadline_ns = None
        self._ready.append(fiber)

    def _switch_to(self, chosen: Fiber | None, current: Fiber) -> None:
        """Give the turn to `chosen`, or to the hub; returns at our next turn."""
        if chosen is None:
            self._hub.switch()
        else:
            self.current = chosen
            chosen.greenlet.switch()
        self.current = current
        if self._is_closing:
            self._cancel()

    # --- the end --------------------------------------------------------------------

    def _fail(self, failure: ScheduleError) -> None:
        self._failure = failure
        self._hub.switch()
        self._cancel()

    def _cancel(self) -> NoReturn:
        """Unwind the current thread, in a run that is given up.

        A loop that survives whatever strikes it is left where it is, for good.
        """
        self._num_cancelled += 1
        if self._num_cancelled > MAX_CANCELLED:
            _stuck.append(self.current)
            self._hub.switch()
        raise _Cancelled

    def table(self) -> str:
        """Return a table of waiting threads, one per line."""
        return "\n".join(f"  {fiber.describe()}" for fiber in self.alive.values())

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        traceback: TracebackType | None,
    ) -> None:
        self._is_closing = True
        self._hub = self._greenlet.getcurrent()
        for fiber in tuple(self.alive.values()):
            if fiber.greenlet:  # it has begun
                fiber.greenlet.parent = self._hub
                self.current = fiber
                self._num_cancelled = 0
                fiber.greenlet.throw(_Cancelled)
        self.alive.clear()
        self.current = None


#: In place of a deadline: it has passed.
_EXPIRED: Final = -1


def _greenlet_module() -> Any:  # noqa: ANN401 - it comes without types
    try:
        import greenlet  # type: ignore[import-untyped]  # noqa: PLC0415 - optional
    except ImportError as error:
        raise MissingToolError(
            "the deterministic scheduler needs greenlet: pip install greenlet"
        ) from error
    return greenlet
