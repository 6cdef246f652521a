"""``gradviz render timeline``."""

from pathlib import Path
from typing import Final, get_args

import click

from gradviz.cli.notes import note, note_next, note_omitted
from gradviz.cli.options import (
    force_option,
    nanoseconds,
    open_option,
    output_option,
    quiet_option,
    task_option,
    trace_argument,
)
from gradviz.cli.progress import working
from gradviz.cli.reading import NODE_RUNS, find_trace, read_trace
from gradviz.cli.timelines import check_times, step_option, timelines_of
from gradviz.cli.viewer import check_viewable, show_file
from gradviz.cli.writing import check_output, format_of, write_output
from gradviz.render.conversion import PICTURE_FORMATS, check_convertible, converted
from gradviz.render.text import count
from gradviz.render.timeline_colours import TimelineColour
from gradviz.render.timeline_scene import TimelineView
from gradviz.render.timeline_svg import render_timeline

#: Of nodes, and of sleeps and kernels; a picture merges what is narrow.
MAX_DRAWN: Final = 150_000

#: Another name of an option here, which elsewhere means another thing.
ALIASES: Final = {"to": "until"}


@click.command(
    "timeline",
    context_settings={"token_normalize_func": lambda name: ALIASES.get(name, name)},
)
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
@click.option(
    "--from",
    "begin_ns",
    callback=nanoseconds,
    metavar="TIME",
    help="Not before: so long after the begin, such as 1.5ms.",
)
@click.option(
    "--until",
    "end_ns",
    callback=nanoseconds,
    metavar="TIME",
    help="Not after that time.",
)
@click.option(
    "--color",
    "colour_by",
    type=click.Choice(get_args(TimelineColour)),
    default="auto",
    show_default=True,
    help="What the colours of nodes stand for.",
)
@click.option(
    "--width",
    type=click.IntRange(400, 8_000),
    default=960,
    show_default=True,
    metavar="PIXELS",
    help="How wide the picture is.",
)
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
    format_ = format_of(output, PICTURE_FORMATS)
    check_convertible(format_)
    check_viewable(output, is_opened=is_opened)
    check_output(output, force=force)
    trace = read_trace(trace_path, needs=NODE_RUNS)
    timelines = timelines_of(trace, task, step, limit=MAX_DRAWN, is_each=is_each)
    check_times(timelines, begin_ns or 0, end_ns)
    note_omitted(
        sum(one.omitted for one in timelines),
        sum(one.omitted_lanes for one in timelines),
    )
    lanes = count(sum(len(one.lanes) for one in timelines), "lane")
    with working(f"drawing {lanes}"):
        view = TimelineView(width, begin_ns or 0, end_ns, colour_by, has_queues)
        picture = converted(render_timeline(timelines, view), format_)
    write_output(output, picture)
    if not quiet:
        note(f"drew {output}: {lanes}")
        note_next("show order", trace_path)
    if is_opened:
        show_file(output)
