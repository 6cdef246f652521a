"""What the timelines of a terminal and of a picture both say in words."""

from typing import Final

from gradviz.analysis.timeline import Timeline
from gradviz.render.text import clean, duration, operation

#: Errors told below a timeline; a trace may hold any number.
MAX_ERRORS: Final = 5


def lasted(timeline: Timeline) -> str:
    """How long its pass took, by that pass's own begin and end.

    Streams may go on after a pass, and several passes lie apart: then it is said how
    much time is shown.
    """
    shown = duration(timeline.duration_ns)
    if timeline.step is not None:
        return shown
    outer = [one for one in timeline.passes if one.parent < 0] or timeline.passes
    if len(outer) != 1 or outer[0].duration_ns is None:
        return shown
    took = duration(outer[0].duration_ns)
    return took if took == shown else f"{took} (shown: {shown})"


def failures(timeline: Timeline) -> list[str]:
    """A line for each of the first nodes that failed, with what it raised."""
    failed = [
        span
        for lane in timeline.lanes
        for span in lane.spans
        if span.status == "failed" and span.kind == "node"
    ]
    lines = [
        clean(f"{span.index} {operation(span.name)} failed: {span.error}")
        for span in failed[:MAX_ERRORS]
    ]
    if len(failed) > MAX_ERRORS:
        lines.append(f"and {len(failed) - MAX_ERRORS:,} more failed")
    return lines
