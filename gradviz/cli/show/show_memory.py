"""``gradviz show memory``."""

from pathlib import Path

import click

from gradviz.analysis.memory.allocations import NEEDED
from gradviz.analysis.memory.memory_use import build_memory, document_of, memory_at
from gradviz.analysis.tables.passes import select_task
from gradviz.cli.console.documents import show
from gradviz.cli.console.notes import working
from gradviz.cli.console.options import (
    at_option,
    json_option,
    task_option,
    trace_argument,
)
from gradviz.cli.console.trace_argument import find_trace, read_trace
from gradviz.render.terminal.over_time.memory import print_memory, print_memory_moment


@click.command("memory")
@trace_argument
@task_option
@at_option("What was held at that time after the pass began, such as 1.5ms.")
@json_option
def command(
    trace_path: Path | None, task: str, after_ns: int | None, as_json: bool
) -> None:
    """Show what was held in memory during a backward pass: how much, when, by whom.

    Example:
        gradviz show memory --at 20us first.gvt
    """
    trace = read_trace(find_trace(trace_path), needs=NEEDED, all_nodes=True)
    tasks = select_task(trace, task)
    if after_ns is not None:
        moment = memory_at(trace, tasks, after_ns)
        show(
            moment,
            trace,
            as_json=as_json,
            document=document_of,
            table=print_memory_moment,
        )
        return
    with working("adding up what was held"):
        memory = build_memory(trace, tasks)
    show(memory, trace, as_json=as_json, document=document_of, table=print_memory)
