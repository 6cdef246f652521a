"""Vector clocks of streams: what is done before what, whatever it does.

Work on one stream is done in order, so a number says how far a stream has come. A
*clock* says for each stream how far it has come at some point at least. Every stream
has one, of what is done before its next work begins; so has every event, of what is
done when it happens; and so has the host, of what is done because it waited. To wait is
to take the larger of both numbers, stream by stream. All threads count as one host:
what one of them waited for is done before anything that any of them launches later.
"""

from collections import Counter
from collections.abc import Mapping
from typing import Final, NamedTuple, TypeAlias

#: Stream -> how many of its works are done. Never changed, only replaced.
Clock: TypeAlias = Mapping[str, int]

#: So many events are remembered. Whoever waits for one that is forgotten waits for all
#: that are.
_MAX_EVENTS: Final = 1 << 16


class Point(NamedTuple):
    """A point in the work of a stream.

    Attributes:
        stream: The stream.
        number: So many works of the stream are done then.
        clock: How far the other streams have come at least.
    """

    stream: str
    number: int
    clock: Clock

    def is_after(self, other: "Point") -> bool:
        """Whether the work that is done here began only when `other` was reached.

        `other` was there before this point was.
        """
        return (
            other.stream == self.stream
            or self.clock.get(other.stream, 0) >= other.number
        )


class StreamClocks:
    """The clocks of all streams, of events and of the host.

    Fed with what happened, in its order. What is not known, since it happened before
    anybody looked, is taken as done at once.
    """

    def __init__(self) -> None:
        self._host: Clock = {}
        self._clocks: dict[str, Clock] = {}  # of streams that have waited for more
        self._numbers: Counter[str] = Counter()
        self._events: dict[int, Point] = {}
        self._forgotten: Clock = {}

    def launch(self, stream: str) -> Point:
        """The next work of a stream: the point at which it is done."""
        self._numbers[stream] = number = self._numbers[stream] + 1
        return Point(stream, number, self._clock(stream))

    def now(self, stream: str) -> Point:
        """Where all work of a stream is done that it has so far."""
        return Point(stream, self._numbers[stream], self._clock(stream))

    def record(self, stream: str, event: int) -> None:
        """An event marks the work that a stream has so far."""
        self._events[event] = self.now(stream)
        if len(self._events) > _MAX_EVENTS:
            oldest = self._events.pop(next(iter(self._events)))
            self._forgotten = _later(self._forgotten, _done_at(oldest))

    def marked_by(self, event: int) -> Point | None:
        """What an event marks, None if that is not known."""
        return self._events.get(event)

    def wait(self, stream: str, event: int) -> bool:
        """All further work of a stream waits for an event; False if it did before."""
        return self._wait(stream, self._awaited(event))

    def wait_for_now(self, late: Point, stream: str) -> Point:
        """The point as it were if its stream had waited for `stream` before.

        All further work of its stream waits as well.
        """
        done = _done_at(self.now(stream))
        self._wait(late.stream, done)
        return late._replace(clock=_later(late.clock, done, but=late.stream))

    def synchronize_event(self, event: int) -> None:
        """The host has waited for an event."""
        self._host_waits(self._awaited(event))

    def synchronize_stream(self, stream: str) -> None:
        """The host has waited for all work of a stream."""
        self._host_waits(_done_at(self.now(stream)))

    def synchronize_device(self, device: str) -> None:
        """The host has waited for all streams of a device."""
        for stream in {*self._numbers, *self._clocks}:
            if stream.startswith(f"{device}/"):
                self.synchronize_stream(stream)

    def _clock(self, stream: str) -> Clock:
        """What is done before the next work of a stream begins."""
        return self._clocks.get(stream, self._host)

    def _awaited(self, event: int) -> Clock:
        known = self._events.get(event)
        return self._forgotten if known is None else _done_at(known)

    def _wait(self, stream: str, done: Clock) -> bool:
        before = self._clock(stream)
        after = self._clocks[stream] = _later(before, done, but=stream)
        return after is not before

    def _host_waits(self, done: Clock) -> None:
        self._host = _later(self._host, done)
        for stream, clock in self._clocks.items():
            self._clocks[stream] = _later(clock, done, but=stream)


def _done_at(point: Point) -> Clock:
    return {**point.clock, point.stream: point.number}


def _later(one: Clock, other: Clock, *, but: str = "") -> Clock:
    """The later one of both, stream by stream; `one` itself where that is so.

    Args:
        one: A clock.
        other: Another.
        but: The stream whose own clock `one` is: how far it has come itself it knows.
    """
    news = {
        stream: number
        for stream, number in other.items()
        if stream != but and number > one.get(stream, 0)
    }
    return {**one, **news} if news else one
