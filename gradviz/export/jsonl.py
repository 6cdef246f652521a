"""JSON Lines: a line that says of what the events are, then one typed event a line.

Each further line is what msgspec makes of an `Event`, which reads it back, and what
docs/trace-events.schema.json describes.
"""

import functools
import itertools
import operator
from collections.abc import Iterator
from typing import Any, Final

import msgspec

from gradviz.trace.definitions import VERSION as TRACE_VERSION
from gradviz.trace.events import KINDS
from gradviz.trace.model import Trace

SCHEMA: Final = "gradviz.events"
VERSION: Final = 1

#: So many events become one part.
_BATCH: Final = 1 << 12


def parts(trace: Trace) -> Iterator[bytes]:
    """The lines, some thousand a part."""
    encoder = msgspec.json.Encoder()
    yield encoder.encode(first_line(trace)) + b"\n"
    events = trace.events()
    while batch := list(itertools.islice(events, _BATCH)):
        yield encoder.encode_lines(batch)


def first_line(trace: Trace) -> dict[str, Any]:
    """Who recorded the trace, what threads and queues are called, what is missing."""
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


def event_schema() -> dict[str, Any]:
    """The JSON schema of each line but the first."""
    (schema,), components = msgspec.json.schema_components(
        [functools.reduce(operator.or_, KINDS.values())], ref_template="#/$defs/{name}"
    )
    return {
        "$schema": "https://json-schema.org/draft/2020-12/schema",
        "title": f"an event of a trace, format {TRACE_VERSION[0]}.{TRACE_VERSION[1]}",
        **schema,
        "$defs": components,
    }
