"""``gradviz show order``."""

from pathlib import Path

import click

from gradviz.analysis.order import execution_order, order_document
from gradviz.analysis.passes import select_task
from gradviz.cli.options import json_option, task_option, trace_argument
from gradviz.cli.reading import find_trace, read_trace
from gradviz.cli.writing import print_json
from gradviz.render.terminal import print_order


@click.command("order")
@trace_argument
@task_option
@json_option
def command(trace_path: Path | None, task: str, as_json: bool) -> None:
    """Show the nodes of a backward pass in the order in which they ran."""
    trace = read_trace(find_trace(trace_path))
    for one in select_task(trace, task):
        if as_json:
            print_json(order_document(trace, one))
        else:
            print_order(execution_order(trace, one), one)
