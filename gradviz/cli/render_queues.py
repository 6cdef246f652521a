"""``gradviz render queues``."""

from pathlib import Path
from typing import Final

import click

from gradviz.analysis.queue_stays import queues_over_time
from gradviz.cli.options import (
    force_option,
    open_option,
    output_option,
    part_options,
    quiet_option,
    task_option,
    trace_argument,
)
from gradviz.cli.pictures import (
    SETTINGS,
    check_picture,
    panels_of,
    program_of,
    width_option,
    write_picture,
)
from gradviz.cli.reading import find_trace, read_trace
from gradviz.render.queues_svg import render_queues
from gradviz.render.text import count

#: Without these a queue would seem to be what it was not.
NEEDED: Final = ("task_pushed", "task_popped", "queue_waited")


@click.command("queues", context_settings=SETTINGS)
@trace_argument
@output_option("gradviz-queues-<trace>.svg")
@force_option
@task_option
@part_options
@width_option
@open_option
@quiet_option
def command(  # noqa: PLR0913, PLR0917 - a command has the options it has
    trace_path: Path | None,
    output: Path | None,
    force: bool,
    task: str,
    begin_ns: int | None,
    end_ns: int | None,
    width: int,
    is_opened: bool,
    quiet: bool,
) -> None:
    """Draw how long ready queues were, what lay in them, and who slept on them.

    The suffix of FILE is the format: svg needs no tool, png and pdf need the extra
    pictures.

    Example:
        gradviz render queues -o first.svg first.gvt
    """
    trace_path = find_trace(trace_path)
    output = output or Path(f"gradviz-queues-{trace_path.stem}.svg")
    check_picture(output, force=force, is_opened=is_opened)
    trace = read_trace(trace_path, needs=NEEDED, all_nodes=True)
    found = panels_of(
        trace,
        task,
        begin_ns,
        end_ns,
        lambda one, begin, end: queues_over_time(trace, [one], begin, end),
    )
    write_picture(
        output,
        lambda: render_queues(found, program_of(trace), width),
        quiet=quiet,
        is_opened=is_opened,
        what=f"the queues of {count(len(found), 'pass')}",
        then="show queues",
        trace_path=trace_path,
    )
