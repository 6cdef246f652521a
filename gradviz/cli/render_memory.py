"""``gradviz render memory``."""

from pathlib import Path

import click

from gradviz.analysis.holdings import NEEDED, holdings
from gradviz.analysis.memory import build_memory
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
from gradviz.cli.progress import working
from gradviz.cli.reading import find_trace, read_trace
from gradviz.render.memory_svg import render_memory
from gradviz.render.text import count


@click.command("memory", context_settings=SETTINGS)
@trace_argument
@output_option("gradviz-memory-<trace>.svg")
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
    """Draw how many bytes were held when, for what, and who held them at the peak.

    The suffix of FILE is the format: svg needs no tool, png and pdf need the extra
    pictures.

    Example:
        gradviz render memory -o first.svg first.gvt
    """
    trace_path = find_trace(trace_path)
    output = output or Path(f"gradviz-memory-{trace_path.stem}.svg")
    check_picture(output, force=force, is_opened=is_opened)
    trace = read_trace(trace_path, needs=NEEDED, all_nodes=True)
    with working("adding up what was held"):
        held = holdings(trace)
    memories = panels_of(
        trace,
        task,
        begin_ns,
        end_ns,
        lambda one, begin, end: build_memory(
            trace, [one], begin, end, held=held, has_savings=False
        ),
    )
    write_picture(
        output,
        lambda: render_memory(memories, program_of(trace), width),
        quiet=quiet,
        is_opened=is_opened,
        what=f"the memory of {count(len(memories), 'pass')}",
        then="show memory",
        trace_path=trace_path,
    )
