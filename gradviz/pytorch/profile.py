"""PyTorch's profiler, for as long as backward passes are under way.

It is the only one who sees nodes run at a cost that leaves the pass what it is: hooks
on each node cost a hundred times as much.

Note [One profiler]
~~~~~~~~~~~~~~~~~~~
PyTorch has one profiler in a process. A second one, begun on another thread, ends in a
crash; so does enabling it without preparing it first, and starting or stopping it while
functions of a backward run on another thread. So the first pass that begins starts it,
passes that begin meanwhile are seen by it too, on whatever thread, and the last one
that ends stops it and reads what all of them did. All passes are counted, also those
that nobody listens to: while one of them runs that began before, the profiler is not
started. Where a version's profiler sees only one thread, passes of others are not seen
meanwhile.

A program may run a profiler of its own. Then it has it for itself: its passes are not
seen, and their trace says so.
"""

import contextlib
import os
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any, Final, NamedTuple, TypeAlias

from gradviz.pytorch.names import PyTorch

#: Of its own log, which goes to stderr, nothing is wanted.
_LOG_LEVEL: Final = "KINETO_LOG_LEVEL"

#: The clocks are read so often, and the closest two readings count.
_READINGS: Final = 4


#: A function of a backward that was seen to run: its begin and end on the profiler's
#: clock, its name as the node's ``name()`` is, the node's sequence number (-1 if it has
#: none of its own), and the operating system's number of the thread.
SeenRun: TypeAlias = tuple[int, int, str, int, int]


class Session(NamedTuple):
    """What the profiler has seen between a start and a stop.

    Attributes:
        runs: In the order in which they began.
        offset_ns: What to add to a time of the profiler's clock, about, for that of
            events.
    """

    runs: list[SeenRun]
    offset_ns: int


class Profile:
    """Counts the passes that run, and sees those that somebody listens to. Any thread.

    Args:
        names: Of PyTorch.
        has_strangers: Whether passes are under way that were not counted.
    """

    def __init__(self, names: PyTorch, has_strangers: Callable[[], bool]) -> None:
        self._names = names
        self._has_strangers = has_strangers
        self._lock = threading.Lock()
        self._num_seen = 0  # guarded by the lock, as is all below
        self._num_unseen = 0
        self._is_warm = False
        self._thread = 0
        self._offset_ns = 0

    @property
    def is_idle(self) -> bool:
        """Whether no pass is under way, as far as they are counted."""
        return not self._num_seen and not self._num_unseen

    def warm_up(self) -> None:
        """Let it begin once, if nothing prevents that: the first time takes a while.

        On the thread that imported torch, if that can be chosen: on others it says
        something on stderr.
        """
        with self._lock:
            if not self._is_warm and not self._prevented():
                self._start()
                self._names.disable()

    def renewed(self) -> "Profile":
        """Another one in place of this, whose lock nobody holds, after a fork."""
        self._lock = threading.Lock()
        other = Profile(self._names, self._has_strangers)
        other._is_warm = True
        return other

    def begin(self, *, is_heard: bool) -> str:
        """A pass begins on this thread; see Note [One profiler].

        Args:
            is_heard: Whether somebody wants to know what it does.

        Returns:
            Why it is not seen, empty if it is: what `end` is told once it is over.
        """
        with self._lock:
            why = ""
            if self._num_seen:
                if self._thread != threading.get_ident() and (
                    not self._names.sees_all_threads
                ):
                    why = "the profiler of this version of PyTorch sees one thread only"
            elif not is_heard:
                why = "nobody listens"
            else:
                why = self._prevented()
                if not why:
                    self._start()
            if why:
                self._num_unseen += 1
                return f"{why}, so none of its nodes could be seen"
            self._num_seen += 1
            return ""

    def end(self, why_unseen: str) -> Session | None:
        """A pass is over.

        Args:
            why_unseen: What `begin` returned.

        Returns:
            What was seen of all passes since the first one began, if this was the last;
            else None.
        """
        with self._lock:
            if why_unseen:
                self._num_unseen -= 1
                return None
            self._num_seen -= 1
            if self._num_seen:
                return None
            seen, offset_ns = self._names.disable(), self._offset_ns
        return Session(_runs(seen), offset_ns)

    def _prevented(self) -> str:
        """Why the profiler must not be started now; empty if it may."""
        if self._names.is_enabled() or _has_users(self._names.torch):
            return "another profiler runs"
        if self._num_unseen or self._has_strangers():
            return "a pass that nobody listened to was under way"
        return ""

    def _start(self) -> None:
        names = self._names
        with contextlib.nullcontext() if self._is_warm else _silently():
            names.prepare(names.config(), names.activities)
        names.enable(names.config(), names.activities, names.scopes)
        self._is_warm = True
        self._thread = threading.get_ident()
        self._offset_ns = _offset_ns()


def _runs(seen: Any) -> list[SeenRun]:  # noqa: ANN401 - PyTorch's
    runs = [
        (
            one.start_ns(),
            one.end_ns(),
            one.name(),
            one.sequence_nr(),
            one.device_resource_id(),
        )
        for one in seen.events()
    ]
    runs.sort()
    return runs


def _has_users(torch: Any) -> bool:  # noqa: ANN401 - a module
    """Whether a profiler of the program's runs on some thread."""
    return bool(getattr(torch.autograd.profiler, "_is_profiler_enabled", False))


def _offset_ns() -> int:
    """What lies between the clock of events and the one since 1970."""
    offsets = []
    for _ in range(_READINGS):
        before, wall, after = (
            time.perf_counter_ns(),
            time.time_ns(),
            time.perf_counter_ns(),
        )
        offsets.append((after - before, (before + after) // 2 - wall))
    return min(offsets)[1]


@contextmanager
def _silently() -> Iterator[None]:
    before = os.environ.get(_LOG_LEVEL)
    os.environ[_LOG_LEVEL] = "99"
    try:
        yield
    finally:
        if before is None:
            os.environ.pop(_LOG_LEVEL, None)
        else:
            os.environ[_LOG_LEVEL] = before
