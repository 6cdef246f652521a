"""``gradviz show parameters``."""

from pathlib import Path

import click
import msgspec

from gradviz.analysis.nodes.parameter_gradients import (
    document_of,
    find_parameter_gradients,
)
from gradviz.analysis.tables.passes import select_task
from gradviz.cli.console.documents import show
from gradviz.cli.console.options import (
    json_option,
    limit_option,
    task_option,
    trace_argument,
)
from gradviz.cli.console.trace_argument import NODE_RUNS, find_trace, read_trace
from gradviz.errors import UserError
from gradviz.render.terminal.parameters import print_parameters

#: Events needed to know of which parameters there is a gradient.
_NEEDED = (*NODE_RUNS, "gradient_accumulated", "gradient_buffered", "capture_taken")


@click.command("parameters")
@trace_argument
@task_option
@click.option(
    "--step",
    metavar="N|N-M|last|slowest|all",
    help="All passes of whole training steps, in place of --pass.",
)
@click.option(
    "--missing", "only_missing", is_flag=True, help="Only those without a gradient."
)
@limit_option
@json_option
def command(
    trace_path: Path | None,
    task: str,
    step: str | None,
    only_missing: bool,
    limit: int | None,
    as_json: bool,
) -> None:
    """Show which parameters got a gradient, and why others did not.

    The reason is what calls of modules tell: a parameter may be frozen, its module not
    called or called under no_grad, its graph cut, or its result unused.

    Example:
        gradviz show parameters first.gvt
    """
    trace = read_trace(find_trace(trace_path), needs=_NEEDED, all_nodes=True)
    if step is None:
        tasks = select_task(trace, task)
    elif task != "last":
        raise click.UsageError("--step and --pass exclude each other")
    else:
        # Loaded where it is asked for.
        from gradviz.analysis.training.steps import select_steps  # noqa: PLC0415

        tasks = tuple(one for each in select_steps(trace, step) for one in each.tasks)
    found = find_parameter_gradients(trace, tasks)
    if not found.rows:
        raise UserError(
            f"{trace.path} has no parameters: no module ran and no pass accumulated "
            f"a gradient; record the program from its first module on"
        )
    some = [one for one in found.rows if not (only_missing and one.has_gradient)]
    show(
        msgspec.structs.replace(found, rows=tuple(some[:limit])),
        trace,
        as_json=as_json,
        document=document_of,
        table=print_parameters,
    )
