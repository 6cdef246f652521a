"""``gradviz show order``."""

from pathlib import Path

import click

from gradviz.analysis.labels import LABELS, Label
from gradviz.analysis.order import (
    MAX_ROWS,
    ORDER_KEYS,
    OrderKey,
    document_of,
    execution_orders,
)
from gradviz.analysis.passes import MAX_PASSES, select_task
from gradviz.cli.notes import note
from gradviz.cli.options import (
    filter_option,
    json_option,
    limit_option,
    sort_option,
    task_option,
    trace_argument,
)
from gradviz.cli.reading import NODE_RUNS, find_trace, read_trace
from gradviz.cli.writing import print_json
from gradviz.render.terminal import print_order


@click.command("order")
@trace_argument
@task_option
@filter_option(LABELS)
@sort_option(ORDER_KEYS, "start")
@limit_option
@json_option
def command(
    trace_path: Path | None,
    task: str,
    filters: tuple[tuple[Label, str], ...],
    sort: OrderKey,
    limit: int | None,
    as_json: bool,
) -> None:
    """Show the nodes of a backward pass in the order in which they ran.

    Example:
        gradviz show order --sort duration --limit 5 --filter device=cpu first.gvt
    """
    trace = read_trace(find_trace(trace_path), needs=NODE_RUNS)
    tasks = select_task(trace, task)
    left = MAX_ROWS
    omitted = 0
    for order in execution_orders(
        trace, tasks, sort=sort, filters=filters, limit=limit or MAX_ROWS
    ):
        left -= len(order.rows)
        omitted += order.omitted
        if as_json:
            print_json(document_of(order))
        elif order.rows or not order.omitted:
            print_order(order)
    if omitted and not left:
        note(f"the first {MAX_ROWS:,} nodes are shown, {omitted:,} more are left out")
    if len(tasks) > MAX_PASSES:
        more = len(tasks) - MAX_PASSES
        note(f"the first {MAX_PASSES:,} passes are shown, {more:,} more are left out")
