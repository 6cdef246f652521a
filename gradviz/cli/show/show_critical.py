"""``gradviz show critical``."""

from pathlib import Path

import click

from gradviz.analysis.causes.causal_graph import NEEDED
from gradviz.analysis.causes.critical_path import (
    MAX_TASKS,
    document_of,
    find_critical_path,
)
from gradviz.analysis.tables.passes import select_task
from gradviz.cli.console.documents import show
from gradviz.cli.console.notes import note_first
from gradviz.cli.console.options import json_option, task_option, trace_argument
from gradviz.cli.console.trace_argument import find_trace, read_trace
from gradviz.render.terminal.over_time.critical_path import print_critical_path


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
    tasks = select_task(trace, task)
    for one in tasks[:MAX_TASKS]:
        path = find_critical_path(trace, one)
        show(
            path,
            trace,
            as_json=as_json,
            document=document_of,
            table=print_critical_path,
        )
    note_first(MAX_TASKS, len(tasks))
