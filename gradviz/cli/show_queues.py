"""``gradviz show queues``."""

from pathlib import Path

import click

from gradviz.analysis.passes import select_task
from gradviz.analysis.queues import (
    MAX_QUEUES,
    build_queues,
    contents_at,
    document_of,
)
from gradviz.cli.notes import note
from gradviz.cli.options import at_option, json_option, task_option, trace_argument
from gradviz.cli.reading import find_trace, read_trace
from gradviz.cli.writing import show
from gradviz.render.terminal import print_queue_contents, print_queues


@click.command("queues")
@trace_argument
@task_option
@at_option("What lay in them at that time after the pass began, such as 1.5ms.")
@json_option
def command(
    trace_path: Path | None, task: str, after_ns: int | None, as_json: bool
) -> None:
    """Show what lay in the ready queues during a backward pass, and for how long.

    Example:
        gradviz show queues --at 20us first.gvt
    """
    trace = read_trace(
        find_trace(trace_path),
        needs=("task_pushed", "task_popped", "queue_waited"),
        all_nodes=True,
    )
    tasks = select_task(trace, task)
    if after_ns is not None:
        contents = contents_at(trace, tasks, after_ns)
        show(
            contents, as_json=as_json, document=document_of, table=print_queue_contents
        )
        return
    queues = build_queues(trace, tasks)
    show(queues, as_json=as_json, document=document_of, table=print_queues)
    if queues.omitted:
        note(
            f"the first {MAX_QUEUES} queues are shown, {queues.omitted:,} more are not"
        )
