"""``gradviz show utilisation``."""

from pathlib import Path

import click

from gradviz.analysis.causes import NEEDED
from gradviz.analysis.utilisation import MAX_TASKS, document_of, find_utilisation
from gradviz.cli.options import json_option, task_option, trace_argument
from gradviz.cli.passes import each_pass
from gradviz.cli.reading import find_trace, read_trace
from gradviz.cli.writing import show
from gradviz.render.terminal import print_utilisation


@click.command("utilisation")
@trace_argument
@task_option
@json_option
def command(trace_path: Path | None, task: str, as_json: bool) -> None:
    """Show whether the workers of a backward pass were busy, or what they waited for.

    Example:
        gradviz show utilisation first.gvt
    """
    trace = read_trace(find_trace(trace_path), needs=NEEDED, all_nodes=True)
    for one in each_pass(trace, task, MAX_TASKS):
        utilisation = find_utilisation(trace, one)
        show(
            utilisation, as_json=as_json, document=document_of, table=print_utilisation
        )
