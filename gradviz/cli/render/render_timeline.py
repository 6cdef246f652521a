"""``gradviz render timeline``."""

from collections.abc import Sequence
from typing import Final

import click

from gradviz.analysis.tables.window import NoSuchMomentError
from gradviz.analysis.timelines.timeline_lanes import Timeline
from gradviz.cli.console.chosen_timelines import step_option, timelines_of
from gradviz.cli.console.notes import note_omitted
from gradviz.cli.console.options import complete_trace, part_options
from gradviz.cli.console.other_trace import named_in_errors, parts_of, read_compared
from gradviz.cli.console.trace_argument import NODE_RUNS
from gradviz.cli.render.over_time import (
    PictureRequest,
    drawn,
    over_time_command,
    width_option,
)
from gradviz.cli.render.picture_command import PictureFile, color_option
from gradviz.render.timeline.timeline_colors import TimelineColor
from gradviz.render.timeline.timeline_scene import TimelineView
from gradviz.render.timeline.timeline_svg import render_timeline
from gradviz.render.words.text import count, duration
from gradviz.trace.format.model import Trace
from gradviz.trace.reading.worker_threads import owner_of

#: Of nodes, and of sleeps and kernels; a picture merges what is narrow.
MAX_DRAWN: Final = 150_000


@over_time_command(
    "timeline",
    options=(
        step_option,
        click.option(
            "--each",
            "is_each",
            is_flag=True,
            help="Draw each of several passes by itself, one below the other.",
        ),
        click.option(
            "--beside",
            "other",
            metavar="OTHER[:PASS]",
            shell_complete=complete_trace,
            help="Draw a pass of another trace below, and what differs in colors.",
        ),
        part_options,
        color_option(TimelineColor),
        width_option,
        click.option(
            "--queues/--no-queues",
            "has_queues",
            default=True,
            help="Draw the length of each thread's queue, or leave it out.",
        ),
        click.option(
            "--threads",
            "has_threads",
            is_flag=True,
            help="Draw a lane for each thread of a worker, not one for each worker.",
        ),
    ),
    then="show order",
    needs=NODE_RUNS,
)
def command(
    request: PictureRequest,
    *,
    step: str | None,
    is_each: bool,
    color_by: TimelineColor,
    has_queues: bool,
    other: str | None,
    has_threads: bool,
) -> PictureFile:
    """Draw what each thread and stream did in a backward pass, as bars."""

    def drawn_of(trace: Trace, task: str) -> list[Timeline]:
        return timelines_of(
            trace,
            task,
            step,
            limit=MAX_DRAWN,
            is_each=is_each,
            has_modules=True,
            is_by_worker=not has_threads,
        )

    timelines = drawn_of(request.trace, request.task)
    both = None
    if other is None:
        batches = _micro_batches(request.trace, timelines)
    else:
        path, which = parts_of(other)
        after = read_compared(path)
        with named_in_errors(after):
            others = drawn_of(after, which or request.task)
        # Loaded where two traces are compared.
        from gradviz.cli.render.timeline_beside import beside  # noqa: PLC0415

        batches = {}
        timelines, both = beside(request.trace, timelines, after, others)
    longest = max(one.duration_ns for one in timelines)
    if request.begin_ns >= max(longest, 1):
        raise NoSuchMomentError(
            f"there is nothing {duration(request.begin_ns)} after the start: it ends "
            f"after {duration(longest)}"
        )
    note_omitted(
        sum(one.omitted for one in timelines),
        sum(one.omitted_lanes for one in timelines),
    )
    view = TimelineView(
        request.width,
        request.begin_ns,
        request.end_ns,
        color_by,
        has_queues,
        both,
        is_by_worker=_has_workers(request.trace, timelines),
        micro_batches=batches,
    )
    return drawn(
        request,
        count(sum(len(one.lanes) for one in timelines), "lane"),
        lambda: render_timeline(timelines, view),
    )


def _has_workers(trace: Trace, timelines: Sequence[Timeline]) -> bool:
    """Return whether lanes are workers, and not their threads."""
    return any(
        lane.thread in trace.threads
        and lane.name == owner_of(trace.threads[lane.thread].name)
        for one in timelines
        for lane in one.lanes
    )


def _micro_batches(trace: Trace, timelines: Sequence[Timeline]) -> dict[int, int]:
    """Return the micro-batch of each node that is of one."""
    if not any(one.messages for one in timelines):
        return {}
    # Loaded where there are several workers.
    from gradviz.analysis.timelines.micro_batches import (  # noqa: PLC0415
        micro_batches,
    )

    return {
        node: number
        for one in timelines
        for node, number in micro_batches(trace, one).items()
    }
