"""``gradviz show critical``."""

from pathlib import Path

import click

from gradviz.analysis.causes import NEEDED
from gradviz.analysis.critical_path import (
    MAX_TASKS,
    document_of,
    find_critical_path,
)
from gradviz.cli.options import json_option, task_option, trace_argument
from gradviz.cli.passes import each_pass
from gradviz.cli.reading import find_trace, read_trace
from gradviz.cli.writing import show
from gradviz.render.terminal import print_critical_path


@click.command("critical")
@trace_argument
@task_option
@json_option
def command(trace_path: Path | None, task: str, as_json: bool) -> None:
    """Show what the time of a backward pass went to, and what could shorten it.

    Example:
        gradviz show critical first.gvt
    """
    trace = read_trace(find_trace(trace_path), needs=NEEDED, all_nodes=True)
    for one in each_pass(trace, task, MAX_TASKS):
        path = find_critical_path(trace, one)
        show(path, as_json=as_json, document=document_of, table=print_critical_path)
