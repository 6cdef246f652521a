"""``gradviz render timeline``."""

from pathlib import Path
from typing import Final, get_args

import click

from gradviz.cli.notes import note_omitted
from gradviz.cli.options import (
    force_option,
    open_option,
    output_option,
    part_options,
    quiet_option,
    task_option,
    trace_argument,
)
from gradviz.cli.pictures import SETTINGS, check_picture, width_option, write_picture
from gradviz.cli.reading import NODE_RUNS, find_trace, read_trace
from gradviz.cli.timelines import check_times, step_option, timelines_of
from gradviz.render.text import count
from gradviz.render.timeline_colours import TimelineColour
from gradviz.render.timeline_scene import TimelineView
from gradviz.render.timeline_svg import render_timeline

#: Of nodes, and of sleeps and kernels; a picture merges what is narrow.
MAX_DRAWN: Final = 150_000


@click.command("timeline", context_settings=SETTINGS)
@trace_argument
@output_option("gradviz-timeline-<trace>.svg")
@force_option
@task_option
@step_option
@click.option(
    "--each",
    "is_each",
    is_flag=True,
    help="Draw each of several passes by itself, one below the other.",
)
@part_options
@click.option(
    "--color",
    "colour_by",
    type=click.Choice(get_args(TimelineColour)),
    default="auto",
    show_default=True,
    help="What the colours of nodes stand for.",
)
@width_option
@click.option(
    "--queues/--no-queues",
    "has_queues",
    default=True,
    help="Whether to draw how many tasks lay in the queue of each thread.",
)
@open_option
@quiet_option
def command(  # noqa: PLR0913, PLR0917 - a command has the options it has
    trace_path: Path | None,
    output: Path | None,
    force: bool,
    task: str,
    step: str | None,
    is_each: bool,
    begin_ns: int | None,
    end_ns: int | None,
    colour_by: TimelineColour,
    width: int,
    has_queues: bool,
    is_opened: bool,
    quiet: bool,
) -> None:
    """Draw what each thread and stream did in a backward pass, as bars.

    The suffix of FILE is the format: svg needs no tool, png and pdf need the extra
    pictures.

    Example:
        gradviz render timeline -o first.svg first.gvt
    """
    trace_path = find_trace(trace_path)
    output = output or Path(f"gradviz-timeline-{trace_path.stem}.svg")
    check_picture(output, force=force, is_opened=is_opened)
    trace = read_trace(trace_path, needs=NODE_RUNS)
    timelines = timelines_of(trace, task, step, limit=MAX_DRAWN, is_each=is_each)
    check_times(timelines, begin_ns or 0, end_ns)
    note_omitted(
        sum(one.omitted for one in timelines),
        sum(one.omitted_lanes for one in timelines),
    )
    view = TimelineView(width, begin_ns or 0, end_ns, colour_by, has_queues)
    write_picture(
        output,
        lambda: render_timeline(timelines, view),
        quiet=quiet,
        is_opened=is_opened,
        what=count(sum(len(one.lanes) for one in timelines), "lane"),
        then="show order",
        trace_path=trace_path,
    )
