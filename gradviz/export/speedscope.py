"""Speedscope: the runs of each thread, for speedscope.app.

A profile for each thread that ran a node, in it the nodes as calls, those that ran
inside of others included. Times are nanoseconds from the first moment of the trace.
"""

import itertools
from collections.abc import Iterator
from typing import Any, Final

import msgspec

from gradviz._version import __version__
from gradviz.analysis.tables.executions import definition
from gradviz.export.timeline.activity import Activity, activity
from gradviz.export.timeline.arguments import process_name, thread_name
from gradviz.export.timeline.slices import (
    NODE,
    Slices,
    begins_and_ends,
    nesting,
    thread_slices,
)
from gradviz.trace.format.model import Trace
from gradviz.trace.format.strings import CALLED_BY

_SCHEMA: Final = "https://www.speedscope.app/file-format-schema.json"

#: Number of events in a part.
_BATCH: Final = 1 << 10


def parts(trace: Trace) -> Iterator[bytes]:
    """The JSON, about a thousand events a part."""
    encode = msgspec.json.Encoder().encode
    what = activity(trace)
    frames: dict[tuple[str, str, str], int] = {}
    name = process_name(trace.processes[0])
    if not trace.losses.is_complete:
        name += " (the trace is incomplete)"
    about = {
        "$schema": _SCHEMA,
        "exporter": f"gradviz {__version__}",
        "name": name,
        "activeProfileIndex": 0,
    }
    yield encode(about)[:-1] + b',"profiles":['
    separator = b""
    for thread, slices in thread_slices(trace, what):
        for number, track in enumerate(nesting(slices.of(NODE))):
            more = f" ({number + 1})" if number else ""
            profile = {
                "type": "evented",
                "name": thread_name(trace, thread) + more,
                "unit": "nanoseconds",
                "startValue": 0,
                "endValue": what.end_ns - what.origin_ns,
            }
            yield separator + encode(profile)[:-1] + b',"events":['
            calls = _calls(trace, what, track, frames)
            inner = b""
            while batch := list(itertools.islice(calls, _BATCH)):
                yield inner + b",".join(map(encode, batch))
                inner = b","
            yield b"]}"
            separator = b","
    shared = {"frames": [_frame(*one) for one in frames]}
    yield b'],"shared":' + encode(shared) + b"}\n"


def _calls(
    trace: Trace,
    what: Activity,
    track: Slices,
    frames: dict[tuple[str, str, str], int],
) -> Iterator[dict[str, Any]]:
    """The events of a profile; puts their frames into `frames`."""
    for t_ns, one, begins in begins_and_ends(track):
        node = definition(trace, int(what.runs.node[one.place]))
        key = node.name, node.module, node.location
        yield {
            "type": "O" if begins else "C",
            "frame": frames.setdefault(key, len(frames)),
            "at": t_ns - what.origin_ns,
        }


def _frame(name: str, module: str, location: str) -> dict[str, Any]:
    frame: dict[str, Any] = {"name": f"{name} in {module}" if module else name}
    file, _, line = location.partition(CALLED_BY)[0].rpartition(":")
    if file:
        frame["file"] = file
    if line.isdecimal() and len(line) < 10:
        frame["line"] = int(line)
    return frame
