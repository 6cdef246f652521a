"""Groups of nodes as a table."""

from rich.console import Console

from gradviz.analysis.nodes.groups import Groups, NodeGroup
from gradviz.render.terminal.cells import (
    NOTHING,
    duration_text,
    make_console,
    name_text,
    print_wrapped,
)
from gradviz.render.terminal.row_printer import print_rows
from gradviz.render.words.text import clean, count, duration, place


def print_groups(groups: Groups, console: Console | None = None) -> None:
    """Print the figures of groups, as wide as the console is."""
    console = console or make_console()
    runs = f"{count(groups.num_runs, 'run')}, {duration(groups.total_ns)} together"
    head = f"By {groups.by}: {runs}"
    if groups.omitted:
        every = len(groups.groups) + groups.omitted
        head += f" ({len(groups.groups):,} of {every:,} groups)"
    print_wrapped(console, head, "bold", "")
    names = ["runs", "total", "share", "mean", "median", "p90", "longest"]
    has_running = any(one.running_ns is not None for one in groups.groups)
    if has_running:
        names.append("running")
    rows = (
        [
            _label(groups, one),
            f"{one.runs:,}",
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
    print_rows(console, [groups.by, *names], rows)
    if groups.num_unfinished:
        told = f"{count(groups.num_unfinished, 'run')} without an end not counted"
        print_wrapped(console, told, "bold red", "")
    if not groups.is_complete:
        told = "events are missing from the trace: there may have been more nodes"
        print_wrapped(console, told, "bold red", "")


def _label(groups: Groups, one: NodeGroup) -> str:
    if groups.by == "name":
        return name_text(one.label)
    return clean(place(one.label) if groups.by == "line" else one.label) or NOTHING
