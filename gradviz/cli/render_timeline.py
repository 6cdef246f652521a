"""``gradviz render timeline``."""

from pathlib import Path

import click

from gradviz.cli.notes import note, note_next, note_omitted
from gradviz.cli.options import (
    force_option,
    open_option,
    output_option,
    quiet_option,
    task_option,
    trace_argument,
)
from gradviz.cli.progress import working
from gradviz.cli.reading import NODE_RUNS, find_trace, read_trace
from gradviz.cli.timelines import step_option, timeline_of
from gradviz.cli.viewer import check_viewable, show_file
from gradviz.cli.writing import check_output, format_of, write_output
from gradviz.render.conversion import PICTURE_FORMATS, check_convertible, converted
from gradviz.render.text import count
from gradviz.render.timeline_svg import render_timeline


@click.command("timeline")
@trace_argument
@output_option("gradviz-timeline-<trace>.svg")
@force_option
@task_option
@step_option
@open_option
@quiet_option
def command(
    trace_path: Path | None,
    output: Path | None,
    force: bool,
    task: str,
    step: str | None,
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
    timeline = timeline_of(trace, task, step)
    note_omitted(timeline.omitted, timeline.omitted_lanes)
    with working(f"drawing {count(len(timeline.lanes), 'lane')}"):
        picture = converted(render_timeline(timeline), format_)
    write_output(output, picture)
    if not quiet:
        note(f"drew {output}: {count(len(timeline.lanes), 'lane')}")
        note_next("show order", trace_path)
    if is_opened:
        show_file(output)
