"""``gradviz show collectives``."""

from pathlib import Path

import click

from gradviz.analysis.causes.stragglers import document_of, find_collectives
from gradviz.cli.console.documents import show
from gradviz.cli.console.options import json_option, trace_argument
from gradviz.cli.console.trace_argument import find_trace, read_trace
from gradviz.render.terminal.over_time.collectives import print_collectives


@click.command("collectives")
@trace_argument
@json_option
def command(trace_path: Path | None, as_json: bool) -> None:
    """Show the collectives of data-parallel ranks, and which rank was late.

    Example:
        gradviz show collectives first.gvt
    """
    trace = read_trace(
        find_trace(trace_path), needs=("collective_began", "collective_ended")
    )
    show(
        find_collectives(trace),
        trace,
        as_json=as_json,
        document=document_of,
        table=print_collectives,
    )
