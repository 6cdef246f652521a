"""PyTorch's profiler, for as long as backward passes are under way.

It is the only one who sees nodes run at a cost that leaves the pass what it is: hooks
on each node cost a hundred times as much.

Note [One profiler]
~~~~~~~~~~~~~~~~~~~
PyTorch has one profiler in a process. A second one, begun on another thread, ends in a
crash; so does enabling it without preparing it first. So the first pass that begins
starts it, passes that begin meanwhile are seen by it too, on whatever thread, and the
last one that ends stops it and reads what all of them did. Where a version's profiler
sees only one thread, passes of other threads are not seen meanwhile.

A program may run a profiler of its own. Then it has it for itself: its passes are not
seen, and their trace says so.
"""

import os
import threading
import time
from collections.abc import Iterator
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
    """Counts the passes that want to be seen. Any thread.

    Args:
        names: Of PyTorch.
    """

    def __init__(self, names: PyTorch) -> None:
        self._names = names
        self._lock = threading.Lock()
        self._num_passes = 0  # guarded by the lock, as is all below
        self._thread = 0
        self._offset_ns = 0

    def warm_up(self) -> None:
        """Let it begin once, quietly: the first time it says things on stderr.

        On the thread that imported torch, if that can be chosen: on others it says one
        thing more.
        """
        if self._names.is_enabled():
            return
        with self._lock, _silently():
            self._start()
            self._names.disable()

    def begin(self) -> str:
        """A pass begins on this thread.

        Returns:
            Why it cannot be seen; empty if it can, and `end` is called once it is over.
        """
        names = self._names
        with self._lock:
            if not self._num_passes:
                if names.is_enabled() or _has_users(names.torch):
                    return "another profiler runs, so none of its nodes could be seen"
                self._start()
            elif not names.sees_all_threads and self._thread != threading.get_ident():
                return (
                    "a pass ran on another thread, and the profiler of this version of "
                    "PyTorch sees one thread, so none of its nodes could be seen"
                )
            self._num_passes += 1
            return ""

    def end(self) -> Session | None:
        """A pass is over.

        Returns:
            What was seen of all passes since the first one began, if this was the last;
            else None.
        """
        with self._lock:
            self._num_passes -= 1
            if self._num_passes:
                return None
            seen, offset_ns = self._names.disable(), self._offset_ns
        return Session(_runs(seen), offset_ns)

    def _start(self) -> None:
        names = self._names
        names.prepare(names.config(), names.activities)
        names.enable(names.config(), names.activities, names.scopes)
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
