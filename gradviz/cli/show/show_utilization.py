"""``gradviz show utilization``."""

from pathlib import Path

import click

from gradviz.analysis.causes.causal_graph import NEEDED
from gradviz.analysis.causes.utilization import MAX_TASKS, document_of, find_utilization
from gradviz.analysis.tables.passes import select_task
from gradviz.cli.console.documents import show
from gradviz.cli.console.notes import note_first
from gradviz.cli.console.options import json_option, task_option, trace_argument
from gradviz.cli.console.trace_argument import find_trace, read_trace
from gradviz.render.terminal.over_time.utilization import print_utilization


@click.command("utilization")
@trace_argument
@task_option
@json_option
def command(trace_path: Path | None, task: str, as_json: bool) -> None:
    """Show whether the threads of a backward pass were busy, or what they waited for.

    Example:
        gradviz show utilization first.gvt
    """
    trace = read_trace(find_trace(trace_path), needs=NEEDED, all_nodes=True)
    tasks = select_task(trace, task)
    for one in tasks[:MAX_TASKS]:
        utilization = find_utilization(trace, one)
        show(
            utilization,
            trace,
            as_json=as_json,
            document=document_of,
            table=print_utilization,
        )
    note_first(MAX_TASKS, len(tasks))
