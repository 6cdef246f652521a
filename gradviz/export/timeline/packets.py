"""Packets of a Perfetto trace, one function for each kind that we write.

The numbers of fields are those of perfetto_trace.proto, which Perfetto publishes. The
number of a track is its `uuid`; times may not be negative.
"""

from collections.abc import Mapping
from typing import Final

from gradviz.export.timeline.protobuf import fixed64, integer, message, text

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
    track: int,
    t_ns: int,
    name: str,
    category: str,
    arguments: Mapping[str, int | str],
    flows: bytes = b"",
) -> bytes:
    """A `BEGIN` or an `INSTANT`; `flows` are those of `flow_from` and `flow_to`."""
    said = (
        message(
            4,
            text(10, key),
            integer(4, value) if isinstance(value, int) else text(6, value),
        )
        for key, value in arguments.items()
    )
    return _event(track, t_ns, kind, text(23, name), text(22, category), *said, flows)


def end(track: int, t_ns: int) -> bytes:
    """The slice ends that began last."""
    return _event(track, t_ns, _END)


def count(track: int, t_ns: int, value: int) -> bytes:
    """A counter has another value from here on."""
    return _event(track, t_ns, _COUNTER, integer(30, value))


def flow_from(number: int) -> bytes:
    """An arrow of this number begins at the slice or instant."""
    return fixed64(47, number)


def flow_to(number: int) -> bytes:
    """It ends here."""
    return fixed64(48, number)


def _event(track: int, t_ns: int, kind: int, *fields: bytes) -> bytes:
    event = message(11, integer(9, kind), integer(11, track), *fields)
    return message(1, integer(8, t_ns), _SEQUENCE, event)


def _descriptor(track: int, *fields: bytes) -> bytes:
    return message(1, _SEQUENCE, message(60, integer(1, track), *fields))


def _known(pid: int, otherwise: int) -> int:
    return pid if 0 < pid <= _MAX_PID else otherwise
