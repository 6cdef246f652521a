"""``gradviz show order``."""

from collections.abc import Sequence
from pathlib import Path
from typing import Final

import click
import msgspec

from gradviz.analysis.nodes.execution_order import (
    FORMER_ORDER_KEYS,
    MAX_ROWS,
    ORDER_KEYS,
    OrderKey,
    document_of,
    execution_orders,
)
from gradviz.analysis.nodes.labels import FORMER_LABELS, LABELS, Label
from gradviz.analysis.tables.passes import MAX_PASSES, select_task
from gradviz.cli.console.documents import print_document
from gradviz.cli.console.notes import note
from gradviz.cli.console.options import (
    filter_option,
    json_option,
    limit_option,
    sort_option,
    task_option,
    trace_argument,
)
from gradviz.cli.console.trace_argument import NODE_RUNS, find_trace, read_trace
from gradviz.render.terminal.order import print_order
from gradviz.render.words.text import count
from gradviz.trace.format.model import Trace

#: Events needed besides to say why nodes ran in another order than predicted.
_PUSHES: Final = ("task_pushed", "task_popped")


@click.command("order")
@trace_argument
@task_option
@filter_option(LABELS, FORMER_LABELS)
@sort_option(ORDER_KEYS, "start", FORMER_ORDER_KEYS)
@limit_option
@click.option(
    "--predicted",
    "is_predicted",
    is_flag=True,
    help="Show the predicted order, and where and why nodes ran in another.",
)
@json_option
def command(
    trace_path: Path | None,
    task: str,
    filters: tuple[tuple[Label, str], ...],
    sort: OrderKey,
    limit: int | None,
    is_predicted: bool,
    as_json: bool,
) -> None:
    """Show the nodes of a backward pass in the order in which they ran.

    Example:
        gradviz show order --sort took --limit 5 --filter device=cpu first.gvt
    """
    trace = read_trace(
        find_trace(trace_path),
        needs=(*NODE_RUNS, *_PUSHES) if is_predicted else NODE_RUNS,
        all_nodes=is_predicted,
    )
    tasks = select_task(trace, task)
    if is_predicted:
        if filters or sort != "start":
            raise click.UsageError(
                "--predicted has its own order: leave out --filter and --sort"
            )
        _show_predicted(trace, tasks, limit, as_json=as_json)
        return
    left = MAX_ROWS
    omitted = 0
    for order in execution_orders(
        trace, tasks, sort=sort, filters=filters, limit=limit or MAX_ROWS
    ):
        left -= len(order.rows)
        omitted += order.omitted
        if as_json:
            print_document(document_of(order), trace)
        elif order.rows or not order.omitted:
            print_order(order)
    if omitted and not left:
        note(f"the first {MAX_ROWS:,} nodes are shown, {omitted:,} more are left out")
    if len(tasks) > MAX_PASSES:
        more = len(tasks) - MAX_PASSES
        note(f"the first {MAX_PASSES:,} passes are shown, {more:,} more are left out")


def _show_predicted(
    trace: Trace, tasks: Sequence[int], limit: int | None, *, as_json: bool
) -> None:
    # Loaded where it is asked for.
    from gradviz.analysis.nodes.predicted_order import (  # noqa: PLC0415
        MAX_PASSES_PREDICTED,
        MAX_PREDICTED,
        predicted_orders,
        prediction_document,
    )
    from gradviz.render.terminal.prediction import (  # noqa: PLC0415
        print_prediction,
    )

    num_too_large = 0
    for order in predicted_orders(trace, tasks):
        num_too_large += order.is_too_large
        shown = msgspec.structs.replace(order, rows=order.rows[:limit])
        if as_json:
            print_document(prediction_document(shown), trace)
        elif not order.is_too_large:
            print_prediction(shown)
    if num_too_large:
        note(
            f"orders of {MAX_PREDICTED:,} nodes together are predicted: "
            f"{count(num_too_large, 'pass')} beyond that left out"
        )
    if len(tasks) > MAX_PASSES_PREDICTED:
        more = len(tasks) - MAX_PASSES_PREDICTED
        told = f"the first {MAX_PASSES_PREDICTED:,} passes are shown"
        note(f"{told}, {more:,} more are not")
