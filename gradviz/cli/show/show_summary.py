"""``gradviz show summary``."""

from pathlib import Path

import click

from gradviz.analysis.nodes.groups import (
    GROUP_KEYS,
    MAX_GROUPS,
    GroupKey,
    document_of,
    group_nodes,
)
from gradviz.analysis.nodes.labels import FORMER_LABELS, LABELS, Label
from gradviz.analysis.tables.passes import select_task
from gradviz.analysis.training.summary import summarize, summary_document
from gradviz.cli.console.documents import print_document, show
from gradviz.cli.console.options import (
    Keys,
    filter_option,
    json_option,
    limit_option,
    sort_option,
    tasks_option,
    trace_argument,
)
from gradviz.cli.console.trace_argument import NODE_RUNS, find_trace, read_trace
from gradviz.render.terminal.summary import print_summary


@click.command("summary")
@trace_argument
@tasks_option(None, "Only these backward passes. [default: all]")
@click.option(
    "--by",
    type=Keys(LABELS, FORMER_LABELS),
    help="Only the time of nodes, grouped by this column.",
)
@filter_option(LABELS, FORMER_LABELS)
@sort_option(GROUP_KEYS, "total", {"nodes": "runs", "share": "total"})
@limit_option
@json_option
def command(
    trace_path: Path | None,
    task: str | None,
    by: Label | None,
    filters: tuple[tuple[Label, str], ...],
    sort: GroupKey,
    limit: int | None,
    as_json: bool,
) -> None:
    """Show what a trace holds, where the time went, and what is lost.

    Example:
        gradviz show summary --by module --limit 10 first.gvt
    """
    if by is None and (filters or limit or sort != "total"):
        raise click.UsageError("--filter, --sort and --limit apply to groups: add --by")
    needs = () if by is None else NODE_RUNS
    trace = read_trace(find_trace(trace_path), needs=needs)
    tasks = None if task is None else select_task(trace, task)
    if by is not None:
        # Loaded where it is asked for.
        from gradviz.render.terminal.groups import print_groups  # noqa: PLC0415

        groups = group_nodes(
            trace, tasks, by=by, sort=sort, filters=filters, limit=limit or MAX_GROUPS
        )
        show(groups, trace, as_json=as_json, document=document_of, table=print_groups)
    elif as_json:
        print_document(summary_document(trace, tasks), trace)
    else:
        print_summary(summarize(trace, tasks))
