"""Groups of nodes as a table."""

from collections.abc import Mapping
from typing import Final

from rich.console import Console
from rich.text import Text

from gradviz.analysis.groups import Groups, NodeGroup
from gradviz.analysis.labels import Label
from gradviz.render.terminal.rows import print_rows
from gradviz.render.terminal.tables import (
    NOTHING,
    duration_text,
    make_console,
    name_text,
)
from gradviz.render.text import clean, count, duration, place

#: What a column of labels is called where not as they are.
HEADS: Final[Mapping[Label, str]] = {"source": "line"}


def print_groups(groups: Groups, console: Console | None = None) -> None:
    """Print the figures of groups, as wide as the console is."""
    console = console or make_console()
    nodes = f"{count(groups.num_nodes, 'node')}, {duration(groups.total_ns)} together"
    head = f"By {groups.by}: {nodes}"
    if groups.omitted:
        every = len(groups.groups) + groups.omitted
        head += f" ({len(groups.groups):,} of {every:,} groups)"
    console.print(Text(head, style="bold"))
    names = ["nodes", "total", "share", "mean", "median", "p90", "longest"]
    has_running = any(one.running_ns is not None for one in groups.groups)
    if has_running:
        names.append("running")
    rows = (
        [
            _label(groups, one),
            f"{one.nodes:,}",
            duration(one.total_ns),
            f"{one.total_ns / max(groups.total_ns, 1):4.0%}",
            duration(one.mean_ns),
            duration(one.median_ns),
            duration(one.p90_ns),
            duration(one.longest_ns),
            *([duration_text(one.running_ns)] if has_running else ()),
        ]
        for one in groups.groups
    )
    print_rows(console, [HEADS.get(groups.by, groups.by), *names], rows)
    if groups.num_unfinished:
        told = f"{count(groups.num_unfinished, 'node')} without an end not counted"
        console.print(Text(told, style="bold red"))
    if not groups.is_complete:
        told = "events are missing from the trace: there may have been more nodes"
        console.print(Text(told, style="bold red"))


def _label(groups: Groups, one: NodeGroup) -> str:
    if groups.by == "name":
        return name_text(one.label)
    return clean(place(one.label) if groups.by == "source" else one.label) or NOTHING
