"""Delayed calls, for deadlines."""

import heapq
import itertools
from collections.abc import Callable

from gradviz.engine.graph.sync import Empty, Mailbox, Sync


class Timer:
    """A call to make at a time, unless it is canceled.

    Attributes:
        call: Function to call; None once it was canceled.
    """

    __slots__ = ("call",)

    def __init__(self, call: Callable[[], object]) -> None:
        self.call: Callable[[], object] | None = call

    def cancel(self) -> None:
        """Do not make the call, if it has not begun."""
        self.call = None


class Timers:
    """Makes calls later, on a thread that begins with the first one.

    Args:
        sync: The seam, whose clock counts.
        name: Of the thread.
    """

    def __init__(self, sync: Sync, name: str) -> None:
        self._sync = sync
        self._name = name
        self._mail: Mailbox[None] = sync.mailbox()
        self._order = itertools.count()
        #: Guards what follows.
        self._mutex = sync.lock()
        self._waiting: list[tuple[int, int, Timer]] = []
        self._has_thread = False
        self._is_closed = False

    def after(self, seconds: float, call: Callable[[], object]) -> Timer:
        """Have `call` made in that time; it must neither raise nor wait.

        Raises:
            RuntimeError: The system refuses a thread; the call is not made.
        """
        timer = Timer(call)
        at_ns = self._sync.now_ns() + int(seconds * 1e9)
        with self._mutex:
            if self._is_closed:
                return timer
            heapq.heappush(self._waiting, (at_ns, next(self._order), timer))
            is_first = self._waiting[0][2] is timer
            must_spawn, self._has_thread = not self._has_thread, True
        if must_spawn:
            self._spawn(timer)
        elif is_first:
            self._mail.put(None)
        return timer

    def _spawn(self, timer: Timer) -> None:
        try:
            self._sync.spawn(self._work, self._name)
        except BaseException:
            timer.cancel()
            with self._mutex:
                self._has_thread = False
            raise

    def close(self) -> None:
        """Make no more calls; the thread ends soon."""
        with self._mutex:
            self._is_closed = True
            self._waiting.clear()
        self._mail.put(None)

    def _work(self) -> None:
        while True:
            now_ns = self._sync.now_ns()
            due: list[Timer] = []
            with self._mutex:
                if self._is_closed:
                    return
                while self._waiting and (
                    self._waiting[0][0] <= now_ns or self._waiting[0][2].call is None
                ):
                    due.append(heapq.heappop(self._waiting)[2])
                next_ns = self._waiting[0][0] if self._waiting else None
            for timer in due:
                if (call := timer.call) is not None:
                    call()
            if due:
                continue
            timeout = None if next_ns is None else max(0.0, (next_ns - now_ns) / 1e9)
            try:
                self._mail.get(timeout=timeout)
            except Empty:
                continue
