"""Texts that the timelines of a terminal and of a picture share."""

from collections.abc import Iterator, Sequence
from typing import Final

from gradviz.analysis.timelines.timeline_lanes import Lane, Timeline
from gradviz.analysis.timelines.timeline_spans import Span
from gradviz.render.words.text import (
    clean,
    count,
    duration,
    lasted,
    nodes_ran,
    of_program,
    operation,
    place,
)

#: Errors told below a timeline; a trace may hold any number.
MAX_ERRORS: Final = 5
#: Maximum number of losses of a trace told in a picture.
MAX_LOST: Final = 3


def took(timeline: Timeline) -> str:
    """Return the duration of its step or passes; of one pass its own."""
    outer = [one for one in timeline.passes if one.parent < 0] or timeline.passes
    if timeline.step is not None or len(outer) != 1:
        return duration(timeline.duration_ns)
    return lasted(outer[0].duration_ns, timeline.duration_ns)


def called(timeline: Timeline) -> str:
    """Return its name: ``Backward pass 3``, ``Step 2``, ``4 backward passes``."""
    if timeline.step is not None:
        return f"Step {timeline.step}"
    outer = [one.task for one in timeline.passes if one.parent < 0]
    tasks = outer or list(timeline.tasks)
    if len(tasks) == 1:
        return f"Backward pass {tasks[0]}"
    return count(len(tasks), "backward pass")


def title(timelines: Sequence[Timeline]) -> str:
    """Return the title of some timelines: contents, program, and duration."""
    first = timelines[0]
    of = of_program(first.program)
    if len(timelines) == 1:
        return f"{called(first)}{of}: {took(first)}"
    noun = "backward pass" if first.step is None else "step"
    return f"{count(len(timelines), noun)}{of}"


def contents(timelines: Sequence[Timeline], *, noun: str = "thread") -> Iterator[str]:
    """Yield the counts of their contents, a few words each; lanes are a noun."""
    if len(timelines) == 1:
        outer = {one.location for one in timelines[0].passes if one.parent < 0}
        if len(outer) == 1 and (line := clean(place(outer.pop()))):
            yield f"called at {line}"
    lanes = [lane for one in timelines for lane in one.lanes]
    threads = {lane.thread for lane in lanes if lane.thread >= 0}
    streams = {lane.name for lane in lanes if lane.thread < 0}
    yield ran(lanes)
    yield count(len(threads), noun)
    if streams:
        yield count(len(streams), "stream")
    yield "numbers: execution order"
    if any(one.parent >= 0 for timeline in timelines for one in timeline.passes):
        yield "inner passes below the node that called them"


def ran(lanes: Sequence[Lane]) -> str:
    """Number of nodes that ran on some lanes, and of runs where that differs."""
    found = [one.node for lane in lanes for one in lane.spans if one.kind == "node"]
    return nodes_ran(len(found), len({*found}))


def missing(timelines: Sequence[Timeline]) -> Iterator[str]:
    """Yield the parts that they ought to show and do not: a line each."""
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
    if not any(lane.num_runs for one in timelines for lane in one.lanes):
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
