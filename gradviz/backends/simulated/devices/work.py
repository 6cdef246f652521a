"""The work of a stream, piece by piece, and the threads that may wait for it."""

import threading
from collections import deque
from collections.abc import Callable
from sys import _getframe  # in one step, as the clock: each kernel asks
from time import perf_counter_ns
from types import FrameType
from typing import Final, Protocol

from gradviz.backends.reports import UsersLine, users_line
from gradviz.backends.simulated.devices.latency import Kernel, Latency
from gradviz.locks import SafeRLock
from gradviz.trace import probe
from gradviz.trace.probe import LISTENERS

#: Held while work is launched and reported, so that the order of the reports is that of
#: each stream, and while memory is given out or taken back.
#:
#: Note [One lock for all devices]
#: ~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~
#: A garbage collection may call a user's finalizer wherever a lock is held, and that
#: may launch and wait, on any stream of any device. So the lock is reentrant; and there
#: is only one, because two would be taken in one order here and in the other by a
#: finalizer. It costs nothing: it guards Python code, which one thread runs at a time.
LOCK: Final = SafeRLock()


#: Until when the host has waited for devices, in modeled time. Any thread writes; one
#: that is lost is that of a wait at the same time.
WAITED_UNTIL_NS: Final = [0]


def now_ns() -> int:
    """Return the time of a launch: the host's, as devices see it."""
    now_ns, least_ns = perf_counter_ns(), WAITED_UNTIL_NS[0]
    return max(now_ns, least_ns)


class _Here(threading.local):
    """Per-thread position.

    Attributes:
        stream: The stream that the thread works for, if it does nothing else.
    """

    stream = ""

    def check(self) -> None:
        """Refuse to use devices on a thread that does a stream's work.

        Nobody asks it to but a finalizer, which the garbage collector calls on any
        thread. What it launched would come after the work that it strikes, so that a
        wait for it would last forever. CUDA forbids its host functions the same.

        Raises:
            RuntimeError: It is one.
        """
        if self.stream:
            raise RuntimeError(
                f"a finaliser uses a device on the thread of stream {self.stream}, "
                f"which would wait for itself: Python collects garbage on any thread, "
                f"so free what is on devices there, and read it elsewhere"
            )


#: Of each thread.
HERE: Final = _Here()


class Work:
    """A piece of work in a stream, which is also the point of the stream where it ends.

    One class for a kernel, a wait (`before`, nothing to run) and a marker (any work:
    it is done when all work before it is).

    Attributes:
        queue: The stream's.
        name: Name of a kernel; empty for other work.
        run: The kernel, on memory that it holds itself; None once done.
        before: Other work that has to be done first; None once done.
        is_awaited: True if whoever launched it waits and raises `error`; else the
            device keeps it.
        kernel: Its id in a trace, -1 if it is in none.
        size: Size of a kernel, for a latency; None if there was no latency at launch.
        launched_ns: Time at which it was put into the stream; 0 for poison.
        frame: That of `carry_out` while it goes on; of its caller where it is compiled.
        error: Error that it raised, or why it was dropped; written before `is_done`.
        is_poison: True if it fills memory that is free, which no program asks for.
        is_done: Written once, by whoever carries it out; reading needs no lock.
        ended_ns: End time, on `time.perf_counter_ns`.
        waiters: Called when it is done. Those who wait append, then look at `is_done`
            once more, so that no lock is needed.
    """

    __slots__ = (
        "_launched_at",
        "before",
        "ended_ns",
        "error",
        "frame",
        "is_awaited",
        "is_done",
        "is_poison",
        "kernel",
        "launched_ns",
        "name",
        "queue",
        "run",
        "size",
        "waiters",
    )

    queue: "StreamQueue"
    name: str
    run: Callable[[], object] | None
    before: "Work | None"
    is_awaited: bool
    kernel: int
    size: Kernel | None
    launched_ns: int
    frame: FrameType | None
    error: BaseException | None
    is_poison: bool
    is_done: bool
    ended_ns: int
    waiters: list[Callable[[None], object]]
    _launched_at: UsersLine | None

    def carry_out(
        self,
        latency: Latency | None = None,
        sleep: Callable[[float], object] | None = None,
    ) -> None:
        """Run the kernel, on whichever thread the executor has for it.

        Note [Modeled time]
        ~~~~~~~~~~~~~~~~~~~~
        Without a latency, work has its real start and end. With one, a trace and events
        have the times of the model: a kernel starts as soon as it is launched and its
        dependencies have ended, and takes as long as the latency says, however long
        NumPy takes. A thread that may sleep does so, to keep the host from having a
        result too early; it may be late. One that may not (stepped devices) carries out
        work in any order; there a waiting host is moved on to the end of the work.

        Args:
            latency: Latency of the kernels; None for their real durations.
            sleep: Sleeps for so many seconds; None for nobody.

        Raises:
            BaseException: Ctrl-C, on a thread of the host's. The work counts as failed.
        """
        began_ns, ended_ns = perf_counter_ns(), 0
        try:
            self.frame = _getframe()
            if self.queue.device.lost:
                self.error = RuntimeError(self.queue.device.lost)
            else:
                if latency is not None:
                    began_ns, ended_ns = self._modeled(latency)
                    ahead_ns = ended_ns - perf_counter_ns()
                    if sleep is not None and self.name and ahead_ns > 0:
                        sleep(ahead_ns / 1e9)
                if self.run is not None:
                    self.run()
        except BaseException as error:
            self.error = error
            if self.name and not self.is_awaited:
                self.queue.device.failures.append(self)
            if not isinstance(error, Exception):
                raise
        finally:
            self.ended_ns = ended_ns or perf_counter_ns()
            self.queue.ended_ns = self.ended_ns
            if self.kernel >= 0 and LISTENERS and (listener := probe.current):
                listener.kernel_ran(self.kernel, began_ns, self.ended_ns)
            self.finish()

    def _modeled(self, latency: Latency) -> tuple[int, int]:
        """Return start and end for the duration that a latency gives."""
        began_ns = max(self.launched_ns, self.queue.ended_ns)
        if self.before is not None:
            began_ns = max(began_ns, self.before.ended_ns)
        if not self.name:
            return began_ns, began_ns
        kernel = Kernel(self.name) if self.size is None else self.size
        return began_ns, began_ns + latency(self.queue.text, kernel)

    def finish(self) -> None:
        """Make it done; again, where Ctrl-C came in here."""
        self.run = self.before = self.frame = None
        self.is_done = True
        for wake in self.waiters:
            wake(None)

    def launched_at(self) -> str:
        """The user's line that launched it, empty if none did."""
        return "" if self._launched_at is None else str(self._launched_at)


def new_work(
    queue: "StreamQueue",
    name: str = "",
    run: Callable[[], object] | None = None,
    before: Work | None = None,
    is_awaited: bool = False,
    is_poison: bool = False,
) -> Work:
    """A piece of work, yet to be put into its stream; see `Work`."""
    work = Work.__new__(Work)  # when compiled: new
    work.queue = queue
    work.name = name
    work.run = run
    work.before = before
    work.is_awaited = is_awaited
    work.is_poison = is_poison
    work.kernel = -1
    work.size = None
    work.launched_ns = 0
    work.frame = None
    work.error = None
    work.is_done = False
    work.ended_ns = 0
    work.waiters = []
    work._launched_at = users_line() if name else None
    return work


class WorkLane(Protocol):
    """The queue of a stream's pending work."""

    def submit(self, work: Work) -> None:
        """Add work at the end; under `LOCK`."""

    def close(self) -> None:
        """Carry out only the present work; return when that is done."""


class Executor(Protocol):
    """Executor of the work of all streams."""

    def open(self, queue: "StreamQueue") -> WorkLane:
        """A place for the work of a stream that has none yet."""

    def wait(self, work: Work) -> None:
        """Return when it is done. May be interrupted, and asked again."""

    def poll(self, work: Work) -> bool:
        """Return whether it is done; repeated calls return True in the end."""


class DeviceOfStreams(Protocol):
    """A simulated device as its streams need it."""

    @property
    def lost(self) -> str:
        """The reason that none of its work is done any more; empty if it is."""

    @property
    def failures(self) -> "deque[Work]":
        """Queue of the kernels that raised."""

    def check(self) -> None:
        """Raise an error that has not been raised yet."""


class StreamQueue:
    """A stream, as the device sees it.

    Attributes:
        device: Device of the stream.
        stream_id: 0 for the default stream.
        text: Such as ``sim:0/1``, as reports have it.
        ended_ns: End time of its latest work. Written by whoever carries out its work.
        lane: Lane that work goes to; replaced with the executor. Guarded by `LOCK`.
        is_used: True if anything was ever put in. Guarded by `LOCK`, as is `tail`;
            whoever only looks needs none.
        tail: The latest work; one earlier if Ctrl-C came at the wrong moment.
    """

    __slots__ = ("device", "ended_ns", "is_used", "lane", "stream_id", "tail", "text")

    def __init__(
        self, device: DeviceOfStreams, stream_id: int, executor: Executor
    ) -> None:
        self.device = device
        self.stream_id = stream_id
        self.text = f"{device}/{stream_id}"
        self.ended_ns = 0
        self.is_used = False
        self.tail: Work | None = None
        self.lane = executor.open(self)

    def put(self, work: Work) -> None:
        """Add work at the end.

        Raises:
            RuntimeError: The device is lost.
        """
        with LOCK:
            self.add(work)

    def add(self, work: Work) -> None:
        """Add work, like `put`, while `LOCK` is held."""
        if self.device.lost:
            raise RuntimeError(self.device.lost)
        if not work.is_poison:  # nobody asks when memory was freed
            work.launched_ns = now_ns()
        # In this order: Ctrl-C may come between any two, and nobody may wait for work
        # that is in no lane.
        self.is_used = True
        self.lane.submit(work)
        self.tail = work

    def mark(self) -> Work:
        """A point after all that is there now.

        Of work of its own: `tail` may be one too early.
        """
        marker = new_work(self)
        if self.is_used:
            self.put(marker)
        else:
            marker.ended_ns = now_ns()
            marker.finish()
        return marker
