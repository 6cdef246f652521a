"""Packets of a Perfetto trace, one function for each kind that we write.

Of events there are very many: their functions make those of many rows at once. The
numbers of fields are those of perfetto_trace.proto, which Perfetto publishes. The
number of a track is its `uuid`; times may not be negative.
"""

from collections.abc import Callable, Mapping
from functools import partial
from typing import Final

from gradviz.export.timeline import fields
from gradviz.export.timeline.facts import Fact
from gradviz.export.timeline.fields import Fields
from gradviz.export.timeline.protobuf import fixed64, header, integer, message, text
from gradviz.trace.format.table import Column

#: Types of track events. Those with a name begin a slice, or take no time.
BEGIN: Final = 1
INSTANT: Final = 3
_END: Final = 2
_COUNTER: Final = 4

#: Units of counters.
COUNT: Final = 2
BYTES: Final = 3

#: Writer of the packets: one sequence.
_SEQUENCE: Final = integer(10, 1)

#: The largest number that a process may have.
_MAX_PID: Final = 2**31 - 1


def process(track: int, pid: int, name: str, argv: tuple[str, ...]) -> bytes:
    """The track of a process; where its id is not known, the track's number stands."""
    words = (text(2, word) for word in argv)
    return _descriptor(
        track, message(3, integer(1, _known(pid, track)), *words, text(6, name))
    )


def thread(track: int, parent: int, pid: int, tid: int, name: str) -> bytes:
    """Return the track of a thread of the process with track `parent`."""
    own = message(4, integer(1, _known(pid, parent)), integer(2, tid), text(5, name))
    return _descriptor(track, integer(5, parent), own)


def lane(track: int, parent: int, name: str) -> bytes:
    """Any other track. Viewers draw tracks of one name and one parent as one."""
    return _descriptor(track, integer(5, parent), text(2, name))


def counter(track: int, parent: int, name: str, unit: int) -> bytes:
    """Return the track of a counter of `COUNT` or `BYTES`."""
    kind = message(8, integer(3, unit))
    return _descriptor(track, integer(5, parent), text(2, name), kind)


def named(
    kind: int,
    track: Column,
    t_ns: Column,
    category: str,
    title: Fact,
    arguments: Mapping[str, Fact],
    *flows: Fields,
) -> list[bytes]:
    """A `BEGIN` or an `INSTANT`; `flows` are those of `flows_from` and `flows_to`."""

    def titled(name: int | str) -> bytes:
        return text(23, str(name)) + text(22, category)

    said = [_told(partial(_argument, key), fact) for key, fact in arguments.items()]
    return _events(kind, track, t_ns, _told(titled, title), *said, *flows)


def ends(track: Column, t_ns: Column) -> list[bytes]:
    """The slice ends that began last."""
    return _events(_END, track, t_ns)


def counts(track: Column, t_ns: Column, value: Column) -> list[bytes]:
    """A counter has another value from here on."""
    return _events(_COUNTER, track, t_ns, fields.numbers(partial(integer, 30), value))


def flows_from(numbers: Column, many: Column) -> Fields:
    """Arrows of these numbers begin, so many at each slice or instant."""
    return fields.repeated(partial(fixed64, 47), numbers, many)


def flows_to(numbers: Column, many: Column) -> Fields:
    """They end here."""
    return fields.repeated(partial(fixed64, 48), numbers, many)


def _argument(key: str, value: int | str) -> bytes:
    own = integer(4, value) if isinstance(value, int) else text(6, value)
    return message(4, text(10, key), own)


def _told(encode: Callable[[int | str], bytes], fact: Fact) -> Fields:
    if fact.texts is None:
        found = fields.numbers(encode, fact.values)
    else:
        found = fields.texts(encode, fact.texts, fact.values)
    return found if fact.is_told is None else fields.where(fact.is_told, found)


def _events(kind: int, track: Column, t_ns: Column, *own: Fields) -> list[bytes]:
    """Return the packet of each row."""

    def event_begins(size: int) -> bytes:
        return _SEQUENCE + header(11, size)

    def track_begins(number: int) -> bytes:
        return integer(9, kind) + integer(11, number)

    event = fields.numbers(track_begins, track), *own
    packet = (
        fields.numbers(partial(integer, 8), t_ns),
        fields.numbers(event_begins, fields.sizes(event)),
        *event,
    )
    begins = fields.numbers(partial(header, 1), fields.sizes(packet))
    return fields.joined((begins, *packet))


def _descriptor(track: int, *fields: bytes) -> bytes:
    return message(1, _SEQUENCE, message(60, integer(1, track), *fields))


def _known(pid: int, otherwise: int) -> int:
    return pid if 0 < pid <= _MAX_PID else otherwise
