"""``gradviz show summary``."""

from pathlib import Path

import click

from gradviz.analysis.passes import select_task
from gradviz.analysis.summary import summarise, summary_document
from gradviz.cli.options import json_option, trace_argument
from gradviz.cli.reading import find_trace, read_trace
from gradviz.cli.writing import print_json
from gradviz.render.terminal import print_summary


@click.command("summary")
@trace_argument
@click.option(
    "--task",
    metavar="N|N-M|last|slowest|failed|all",
    help="Only these backward passes. [default: all there is]",
)
@json_option
def command(trace_path: Path | None, task: str | None, as_json: bool) -> None:
    """Show what a trace holds, where the time went, and what is lost.

    Example:
        gradviz show summary --task slowest first.gvt
    """
    trace = read_trace(find_trace(trace_path))
    tasks = None if task is None else select_task(trace, task)
    if as_json:
        print_json(summary_document(trace, tasks))
    else:
        print_summary(summarise(trace, tasks))
