"""Races of a recorded program, and waits for nothing: does it order its streams?"""

import functools
import time
from collections.abc import Callable
from typing import Final

import msgspec

from gradviz.analysis.races.event_dispatch import HANDLERS, dispatch
from gradviz.analysis.races.happens_before import HappensBefore
from gradviz.analysis.races.race_reports import Findings, NodeOrigin, StreamOrigin
from gradviz.analysis.tables.executions import NodeNumbers
from gradviz.trace.events import (
    HandedOver,
    HostAccessed,
    StreamNamed,
    TakenOver,
    kind_name,
)
from gradviz.trace.format.model import Trace

#: Time limit of the search, in seconds of processor time. A program with many streams
#: and many accesses to one allocation can take the square of its length.
MAX_S: Final = 2.0

#: Maximum number of pairs kept of a stream or thread and an event: the knowledge of
#: each takes memory.
MAX_KNOWN: Final = 1_000_000

#: The clock is looked at so seldom: that may take longer than an event does.
_EVENTS_PER_LOOK: Final = 64

#: The names of so many streams are looked at.
MAX_NAMED: Final = 10_000


def stream_order(
    trace: Trace, *, clock: Callable[[], float] = time.process_time
) -> Findings:
    """Return the errors in the order of a trace's work on streams.

    Where events are missing (`Trace.losses`), a wait may be among them, and a finding
    may be no race.

    Args:
        trace: The trace.
        clock: Returns elapsed seconds; see `MAX_S`.
    """
    if not trace.columns["kernel_launched"].num_rows:
        return Findings()

    def origin(node: int) -> NodeOrigin:
        if (known := trace.nodes.get(node)) is None:
            return NodeOrigin()
        return NodeOrigin(name=known.name, location=known.location, module=known.module)

    @functools.cache
    def numbers() -> NodeNumbers:  # few traces have races
        return NodeNumbers(trace)

    streams_named: dict[str, StreamOrigin] = {}
    for named in trace.events_of({"stream_named": trace.columns["stream_named"]}):
        assert isinstance(named, StreamNamed)
        if len(streams_named) < MAX_NAMED:
            origin_of = StreamOrigin(name=named.name, location=named.location)
            streams_named[named.stream] = origin_of

    names = {kind_name(kind) for kind in HANDLERS}
    tables = {name: table for name, table in trace.columns.items() if name in names}
    machine = HappensBefore(
        origin,
        lambda stream: streams_named.get(stream, StreamOrigin()),
        lambda task, node: numbers().of(task, node),
    )
    until, num_known, num_seen = clock() + MAX_S, 0, 0
    streams: set[str] = set()
    threads: set[int] = set()
    for event in trace.events_of(tables):
        streams.add(getattr(event, "stream", ""))
        num_known += len(streams)
        if isinstance(event, HandedOver | TakenOver | HostAccessed):
            threads.add(event.thread)
            num_known += len(threads)
        is_asked = num_seen % _EVENTS_PER_LOOK == 0
        if num_known > MAX_KNOWN or (is_asked and clock() > until):
            break
        num_seen += 1
        dispatch(machine, event)
    num_events = sum(table.num_rows for table in tables.values())
    return msgspec.structs.replace(machine.findings, num_unseen=num_events - num_seen)
