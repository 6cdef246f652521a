"""Completion by a shell, besides commands and options: traces, passes, nodes.

Called at the press of a key: a mistake of the user's completes to nothing, and a long
trace is not read.
"""

from pathlib import Path
from typing import Final

import click
from click.shell_completion import CompletionItem

from gradviz.analysis.nodes.addresses import nodes_of
from gradviz.analysis.tables.executions import definition
from gradviz.analysis.tables.passes import select_task
from gradviz.cli.console.options import complete_trace
from gradviz.cli.console.trace_argument import newest_trace
from gradviz.errors import UserError
from gradviz.trace.reading.reader import load_trace

#: A larger trace takes longer to read than anybody waits for.
_MAX_BYTES: Final = 4_000_000


def complete_node(
    context: click.Context, parameter: click.Parameter, incomplete: str
) -> "list[CompletionItem[str]]":  # generic from Click 8.5 on
    """The ``[TRACE] NODE`` of a command: a trace if none is there yet, else a node."""
    words = context.params.get(parameter.name or "") or ()
    traces = [] if words else complete_trace(context, parameter, incomplete)
    try:
        named = _addresses(Path(words[0]) if words else newest_trace())
    except (UserError, OSError):
        named = []
    nodes = [CompletionItem(one) for one in named if one.startswith(incomplete)]
    return [*(one for one in traces if one.type == "plain"), *nodes] or traces


def complete_address(
    context: click.Context, parameter: click.Parameter, incomplete: str
) -> list[str]:
    """A node, of the trace that stands on the line or else the newest."""
    del parameter
    try:
        named = _addresses(context.params.get("trace_path") or newest_trace())
    except (UserError, OSError):
        named = []
    return [one for one in named if one.startswith(incomplete)]


def _addresses(path: Path | None) -> list[str]:
    """Names of nodes of the last pass, and of the modules that made them."""
    if path is None or path.stat().st_size > _MAX_BYTES:
        return []
    trace = load_trace(path)
    known = [
        definition(trace, node)
        for task in select_task(trace, "last")
        for node in nodes_of(trace, task)
    ]
    names = dict.fromkeys(one.name for one in known)
    modules = dict.fromkeys(one.module for one in known)
    return [name for name in (*names, *modules) if name]
