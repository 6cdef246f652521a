"""``gradviz show queues``."""

from pathlib import Path

import click

from gradviz.analysis.queues.queue_activity import (
    MAX_QUEUES,
    build_queues,
    document_of,
)
from gradviz.analysis.tables.passes import select_task
from gradviz.cli.console.documents import show
from gradviz.cli.console.notes import note
from gradviz.cli.console.options import (
    at_option,
    json_option,
    task_option,
    trace_argument,
)
from gradviz.cli.console.trace_argument import find_trace, read_trace
from gradviz.render.terminal.over_time.queues import print_queue_contents, print_queues


@click.command("queues")
@trace_argument
@task_option
@at_option("The tasks in them at that time after the pass began, such as 1.5ms.")
@json_option
def command(
    trace_path: Path | None, task: str, after_ns: int | None, as_json: bool
) -> None:
    """Show the tasks in the ready queues during a pass, and how long they waited.

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
        # Loaded where it is asked for.
        from gradviz.analysis.queues import queue_contents  # noqa: PLC0415

        show(
            queue_contents.contents_at(trace, tasks, after_ns),
            trace,
            as_json=as_json,
            document=queue_contents.document_of,
            table=print_queue_contents,
        )
        return
    queues = build_queues(trace, tasks)
    show(queues, trace, as_json=as_json, document=document_of, table=print_queues)
    if queues.omitted:
        note(
            f"the first {MAX_QUEUES} queues are shown, {queues.omitted:,} more are not"
        )
