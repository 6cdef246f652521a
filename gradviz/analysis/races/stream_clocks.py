"""Vector clocks of streams: the order of work, whatever the work is.

Work on one stream is done in order, so a number says how far a stream has come. A
*clock* says for each stream how far it has come at some point at least. Every stream
has one, of what is done before its next work begins; so has every event, of what is
done when it happens. To wait is to take the larger of both numbers, stream by stream.

A thread of the host is a stream, too: what it does itself is done in order, and its
clock says what is done because it waited. What it launches, and an event that it
records, comes after all that: the stream takes over the thread's clock. Two threads
know nothing of each other unless one hands over to the other (`hand_over`).
"""

from collections import Counter
from collections.abc import Hashable, Mapping
from typing import Final, NamedTuple, TypeAlias

#: Stream or thread -> how many of its works are done. Never changed, only replaced.
VectorClock: TypeAlias = Mapping[str, int]

#: The thread of a program of which no other is known; names of others begin so.
HOST: Final = "host"

#: Maximum number of events remembered. A wait for one that is forgotten is a wait for
#: all that are.
_MAX_EVENTS: Final = 1 << 16

#: Maximum number of objects remembered by which threads hand over, with the same
#: effect.
_MAX_HANDOVERS: Final = 1 << 14

_NOTHING: Final[VectorClock] = {}


class StreamPoint(NamedTuple):
    """A point in the work of a stream, or of a thread of the host.

    Attributes:
        stream: The stream, or the thread.
        number: So many of its works are done then.
        clock: Number of works that each of the others has done at least.
    """

    stream: str
    number: int
    clock: VectorClock

    def is_after(self, other: "StreamPoint") -> bool:
        """Return whether the work here began only when `other` was reached.

        `other` was there before this point was.
        """
        return self.is_after_number(other.stream, other.number)

    def is_after_number(self, stream: str, number: int) -> bool:
        """The same of the point where so many works of a stream are done."""
        return stream == self.stream or self.clock.get(stream, 0) >= number


def is_thread(stream: str) -> bool:
    """Return whether it is a thread of the host and no stream."""
    return stream.startswith(HOST)


class StreamClocks:
    """The clocks of all streams, of events and of the host's threads.

    Fed with what happened, in its order. What is not known, since it happened before
    anybody looked, is taken as done at once. A thread that nobody has begun knows at
    any time what all others do.
    """

    def __init__(self) -> None:
        self._threads: dict[str, VectorClock] = {}  # of those that were begun
        #: Clock of everything that any thread knows.
        self._known: VectorClock = _NOTHING
        self._clocks: dict[str, VectorClock] = {}  # of streams
        #: Of each stream: the clock of a thread that it has taken over last.
        self._taken: dict[str, VectorClock] = {}
        self._numbers: Counter[str] = Counter()
        self._events: dict[int, StreamPoint] = {}
        self._forgotten: VectorClock = _NOTHING
        self._handovers: dict[Hashable, VectorClock] = {}
        self._forgotten_handovers: VectorClock = _NOTHING

    # --- work -----------------------------------------------------------------------

    def launch(self, stream: str, thread: str = HOST) -> StreamPoint:
        """The next work of a stream: the point at which it is done."""
        clock = self._clock(stream, thread)
        self._numbers[stream] = number = self._numbers[stream] + 1
        return StreamPoint(stream, number, clock)

    def act(self, thread: str = HOST) -> StreamPoint:
        """The next thing that a thread does itself."""
        before = self._thread(thread)
        self._numbers[thread] = number = self._numbers[thread] + 1
        self._learn(thread, {thread: number})
        return StreamPoint(thread, number, before)

    def at_free(self, stream: str) -> StreamPoint:
        """Return the point at which all work of a stream so far is done; for a free.

        Memory is taken back later than it was released, by any thread: the waits of one
        of them may have been made for the releasing thread.
        """
        clock = _later(self._clocks.get(stream, _NOTHING), self._known, but=stream)
        return StreamPoint(stream, self._numbers[stream], clock)

    def is_known_to_all(self, point: StreamPoint) -> bool:
        """Return whether all future work comes after a point."""
        stream, number, _ = point
        return all(
            clock.get(stream, 0) >= number
            for clock in (self._known, *self._threads.values())
        )

    # --- waits ----------------------------------------------------------------------

    def record(self, stream: str, event: int, thread: str = HOST) -> None:
        """An event marks the work that a stream has so far."""
        self._events[event] = self._now(stream, thread)
        if len(self._events) > _MAX_EVENTS:
            oldest = self._events.pop(next(iter(self._events)))
            self._forgotten = _later(self._forgotten, _done_at(oldest))

    def marked_by(self, event: int) -> StreamPoint | None:
        """Return the point that an event marks, None if that is not known."""
        return self._events.get(event)

    def wait(self, stream: str, event: int, thread: str = HOST) -> bool:
        """All further work of a stream waits for an event; False if it did before."""
        before = self._clock(stream, thread)
        after = _later(before, self._awaited(event), but=stream)
        self._clocks[stream] = after
        return after is not before

    def wait_for_now(self, late: StreamPoint, early: str) -> StreamPoint:
        """The point as it were if its stream, or thread, had waited for `early` before.

        All that comes after it has waited as well.
        """
        if is_thread(early):
            done = {**self._thread(early), early: self._numbers[early]}
        else:
            done = {**self._clocks.get(early, _NOTHING), early: self._numbers[early]}
        if is_thread(late.stream):
            self._learn(late.stream, done)
        else:
            clock = self._clocks.get(late.stream, _NOTHING)
            self._clocks[late.stream] = _later(clock, done, but=late.stream)
        return late._replace(clock=_later(late.clock, done, but=late.stream))

    def synchronize_event(self, event: int, thread: str = HOST) -> None:
        """A thread has waited for an event."""
        self._learn(thread, self._awaited(event))

    def synchronize_stream(self, stream: str, thread: str = HOST) -> None:
        """A thread has waited for all work of a stream."""
        done = {**self._clocks.get(stream, _NOTHING), stream: self._numbers[stream]}
        self._learn(thread, done)

    def synchronize_device(self, device: str, thread: str = HOST) -> None:
        """A thread has waited for all streams of a device."""
        for stream in {*self._numbers, *self._clocks}:
            if stream.startswith(f"{device}/"):
                self.synchronize_stream(stream, thread)

    # --- threads --------------------------------------------------------------------

    def begin_thread(self, thread: str, by: str | None = None) -> None:
        """Start a thread with its parent's knowledge, or with none."""
        self._threads[thread] = _NOTHING if by is None else self._thread(by)

    def has_begun(self, thread: str) -> bool:
        """Return whether a thread has begun, and not ended."""
        return thread in self._threads

    def end_thread(self, thread: str) -> None:
        """A thread does nothing any more."""
        self._threads.pop(thread, None)

    def hand_over(self, thread: str, key: Hashable) -> None:
        """Leave a thread's knowledge in a queue, a lock, or the like."""
        clock = self._thread(thread)
        left = self._handovers.pop(key, clock)
        self._handovers[key] = _later(left, clock)
        if len(self._handovers) > _MAX_HANDOVERS:
            oldest = self._handovers.pop(next(iter(self._handovers)))
            self._forgotten_handovers = _later(self._forgotten_handovers, oldest)

    def take_over(self, thread: str, key: Hashable) -> None:
        """A thread learns all that was left there so far."""
        self._learn(thread, self._handovers.get(key, self._forgotten_handovers))

    def take_over_all(self, thread: str) -> None:
        """A thread learns all that any thread knows."""
        self._learn(thread, self._known)

    # --- how ------------------------------------------------------------------------

    def _now(self, stream: str, thread: str) -> StreamPoint:
        return StreamPoint(stream, self._numbers[stream], self._clock(stream, thread))

    def _thread(self, thread: str) -> VectorClock:
        """Return the clock of a thread."""
        return self._threads.get(thread, self._known)

    def _clock(self, stream: str, thread: str) -> VectorClock:
        """Return the clock of a stream's next work, launched by a thread."""
        clock, news = self._clocks.get(stream, _NOTHING), self._thread(thread)
        if self._taken.get(stream) is not news:
            self._taken[stream] = news
            self._clocks[stream] = clock = _later(clock, news, but=stream)
        return clock

    def _awaited(self, event: int) -> VectorClock:
        known = self._events.get(event)
        return self._forgotten if known is None else _done_at(known)

    def _learn(self, thread: str, done: VectorClock) -> None:
        if thread in self._threads:
            self._threads[thread] = _later(self._threads[thread], done)
        self._known = _later(self._known, done)


def _done_at(point: StreamPoint) -> VectorClock:
    return {**point.clock, point.stream: point.number}


def _later(one: VectorClock, other: VectorClock, *, but: str = "") -> VectorClock:
    """The later one of both, stream by stream; `one` itself where that is so.

    Args:
        one: A clock.
        other: Another.
        but: The stream whose own clock `one` is: how far it has come itself it knows.
    """
    if one is other:
        return one
    news = {
        stream: number
        for stream, number in other.items()
        if stream != but and number > one.get(stream, 0)
    }
    return {**one, **news} if news else one
