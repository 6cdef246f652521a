"""JSON Lines: one line on the trace, then one typed event per line.

Each further line is what msgspec makes of an `Event`, which reads it back, and what
docs/trace-events.schema.json describes.
"""

import itertools
from collections.abc import Iterator
from typing import Any, Final

import msgspec

from gradviz.trace.format.model import Trace

SCHEMA: Final = "gradviz.events"
VERSION: Final = 1

#: Number of events in a part.
_BATCH: Final = 1 << 12


def parts(trace: Trace) -> Iterator[bytes]:
    """The lines, some thousand a part."""
    encoder = msgspec.json.Encoder()
    yield encoder.encode(first_line(trace)) + b"\n"
    events = trace.events()
    while batch := list(itertools.islice(events, _BATCH)):
        yield encoder.encode_lines(batch)


def first_line(trace: Trace) -> dict[str, Any]:
    """Return the header: producer, names of threads and queues, and losses."""
    return {
        "schema": SCHEMA,
        "version": VERSION,
        "header": trace.header,
        "clocks": trace.clocks,
        "threads": list(trace.threads.values()),
        "queues": list(trace.queues.values()),
        "losses": trace.losses,
        "is_complete": trace.losses.is_complete,
    }
