"""``gradviz show timeline``."""

from pathlib import Path

import click

from gradviz.analysis.tables.executions import MAX_SHOWN
from gradviz.analysis.timelines.timeline_lanes import document_of
from gradviz.cli.console.chosen_timelines import step_option, timelines_of
from gradviz.cli.console.documents import show
from gradviz.cli.console.notes import note_omitted
from gradviz.cli.console.options import json_option, task_option, trace_argument
from gradviz.cli.console.trace_argument import NODE_RUNS, find_trace, read_trace
from gradviz.render.terminal.over_time.timeline import print_timeline


@click.command("timeline")
@trace_argument
@task_option
@step_option
@json_option
def command(
    trace_path: Path | None, task: str, step: str | None, as_json: bool
) -> None:
    """Show what each thread and stream did in a backward pass, as bars over time.

    Example:
        gradviz show timeline --step slowest first.gvt
    """
    trace = read_trace(find_trace(trace_path), needs=NODE_RUNS)
    for timeline in timelines_of(trace, task, step, limit=MAX_SHOWN):
        show(
            timeline, trace, as_json=as_json, document=document_of, table=print_timeline
        )
        note_omitted(timeline.omitted, timeline.omitted_lanes)
