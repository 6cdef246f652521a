"""What the timelines of a terminal and of a picture both say in words."""

from collections.abc import Iterator, Sequence
from typing import Final

from gradviz.analysis.timeline import Timeline
from gradviz.analysis.timeline_spans import Span
from gradviz.render import style
from gradviz.render.text import (
    clean,
    count,
    duration,
    lasted,
    of_program,
    operation,
    place,
    width,
)

#: Errors told below a timeline; a trace may hold any number.
MAX_ERRORS: Final = 5
#: What a trace lacks, told in a picture.
MAX_LOST: Final = 3


def took(timeline: Timeline) -> str:
    """How long its step or its passes took; of one pass by its own begin and end."""
    outer = [one for one in timeline.passes if one.parent < 0] or timeline.passes
    if timeline.step is not None or len(outer) != 1:
        return duration(timeline.duration_ns)
    return lasted(outer[0].duration_ns, timeline.duration_ns)


def called(timeline: Timeline) -> str:
    """What it is of: ``Backward pass 3``, ``Step 2``, ``4 backward passes``."""
    if timeline.step is not None:
        return f"Step {timeline.step}"
    outer = [one.task for one in timeline.passes if one.parent < 0]
    tasks = outer or list(timeline.tasks)
    if len(tasks) == 1:
        return f"Backward pass {tasks[0]}"
    return count(len(tasks), "backward pass")


def title(timelines: Sequence[Timeline]) -> str:
    """What some timelines are of, which program's, and how long that took."""
    first = timelines[0]
    of = of_program(first.program)
    if len(timelines) == 1:
        return f"{called(first)}{of}: {took(first)}"
    noun = "backward pass" if first.step is None else "step"
    return f"{count(len(timelines), noun)}{of}"


def contents(timelines: Sequence[Timeline]) -> Iterator[str]:
    """How much of what there is, a few words each."""
    if len(timelines) == 1:
        outer = {one.location for one in timelines[0].passes if one.parent < 0}
        if len(outer) == 1 and (line := clean(place(outer.pop()))):
            yield f"called at {line}"
    lanes = [lane for one in timelines for lane in one.lanes]
    threads = {lane.thread for lane in lanes if lane.thread >= 0}
    streams = {lane.name for lane in lanes if lane.thread < 0}
    yield count(sum(lane.num_nodes for lane in lanes), "node")
    yield count(len(threads), "thread")
    if streams:
        yield count(len(streams), "stream")
    yield "numbers: execution order"
    if any(one.parent >= 0 for timeline in timelines for one in timeline.passes):
        yield "inner passes below the node that called them"


def missing(timelines: Sequence[Timeline]) -> Iterator[str]:
    """What they do not show, and ought to: a line each."""
    lost = timelines[0].lost
    if lost:
        more = f"; and {len(lost) - MAX_LOST} more" if len(lost) > MAX_LOST else ""
        yield f"The trace is incomplete: {'; '.join(lost[:MAX_LOST])}{more}"
    passes = [one for timeline in timelines for one in timeline.passes]
    open_ones = [one.task for one in passes if one.status == "unfinished"]
    if open_ones:
        named = ", ".join(map(str, open_ones[:MAX_ERRORS]))
        more = ", …" if len(open_ones) > MAX_ERRORS else ""
        yield f"The trace does not have the end of pass {named}{more}"
    nodes = sum(one.omitted for one in timelines)
    lanes = sum(one.omitted_lanes for one in timelines)
    pushes = sum(one.omitted_pushes for one in timelines)
    if nodes or lanes or pushes:
        yield (
            f"Too much for one picture: left out are {nodes:,} nodes, kernels and "
            f"sleeps, {count(lanes, 'lane')}, {count(pushes, 'arrow')}"
        )
    if not any(lane.num_nodes for one in timelines for lane in one.lanes):
        yield "No node ran, as far as the trace knows"


def failure(span: Span) -> str:
    """A line about a node that failed, with the first line of what it raised."""
    first = span.error.strip().partition("\n")[0]
    return clean(f"{span.index} {operation(span.name)} failed: {first}")


def failures(timeline: Timeline) -> list[str]:
    """A line for each of the first nodes that failed, with what it raised."""
    failed = [
        span
        for lane in timeline.lanes
        for span in lane.spans
        if span.status == "failed" and span.kind == "node"
    ]
    lines = [failure(span) for span in failed[:MAX_ERRORS]]
    if len(failed) > MAX_ERRORS:
        lines.append(f"and {len(failed) - MAX_ERRORS:,} more failed")
    return lines


def wrapped(parts: Sequence[str], room: float) -> Iterator[str]:
    """Words with dots between them, in lines no wider than `room`."""
    line = ""
    for part in parts:
        longer = f"{line} · {part}" if line else part
        if line and width(longer, style.TEXT_SIZE) > room:
            yield line
            longer = part
        line = longer
    if line:
        yield line
