"""The figures of a trace: totals, where the time went, threads, passes."""

from collections.abc import Sequence
from typing import Final

from rich.console import Console, RenderableType
from rich.table import Table
from rich.text import Text

from gradviz.analysis.summary import (
    NameSummary,
    NodeSummary,
    PassSummary,
    Summary,
    ThreadSummary,
)
from gradviz.render.terminal.steps import print_steps
from gradviz.render.terminal.tables import (
    NOTHING,
    duration_text,
    heading,
    indented,
    make_console,
    make_table,
    name_text,
    share,
)
from gradviz.render.text import clean, count, duration, place
from gradviz.trace.model import Losses, ProcessDefinition

MAX_PASSES: Final = 12
MAX_NAMES: Final = 8
MAX_LONGEST: Final = 5
MAX_FAILED: Final = 5
MAX_THREADS: Final = 40
MAX_CLOCKS: Final = 4


def print_summary(summary: Summary, console: Console | None = None) -> None:
    """Print the figures of a trace, as wide as the console is."""
    console = console or make_console()
    console.print(_totals(summary))
    if summary.num_nodes:
        names = summary.names[:MAX_NAMES]
        all_ns = sum(one.total_ns for one in summary.names)
        console.print(heading("Where the time went", len(names), len(summary.names)))
        console.print(_names_table(names, all_ns))
        console.print(heading("Longest nodes"))
        console.print(_longest_table(summary.longest[:MAX_LONGEST]))
        if failed := summary.failed[:MAX_FAILED]:
            console.print(heading("Failed nodes", len(failed), len(summary.failed)))
            console.print(_failed_table(failed))
        threads = summary.threads[:MAX_THREADS]
        console.print(heading("Threads", len(threads), len(summary.threads)))
        console.print(_threads_table(threads, summary.duration_ns))
    steps = summary.steps
    has_steps = steps is not None and len(steps.steps) > 1
    if steps is not None and has_steps:
        print_steps(steps, console)
    if summary.passes and not (has_steps and len(summary.passes) > MAX_PASSES):
        last = summary.passes[-MAX_PASSES:]
        console.print(heading("Backward passes", len(last), len(summary.passes)))
        console.print(_passes_table(last))


def _totals(summary: Summary) -> RenderableType:
    num_failed = sum(one.status == "failed" for one in summary.passes)
    failed = f", {num_failed:,} failed" if num_failed else ""
    recorded = count(summary.num_events, "event")
    ran, counted = count(summary.num_nodes, "node"), count(summary.num_edges, "edge")
    rows = [
        ("trace", clean(summary.path) or "in memory"),
        ("recorded", f"{recorded} in {duration(summary.duration_ns)}"),
        ("passes", f"{len(summary.passes) + summary.omitted_passes:,}{failed}"),
        ("graph", f"{ran} ran, {counted}"),
    ]
    if summary.processes:
        rows.append(("processes", _processes(summary.processes)))
    if not summary.losses.is_complete:
        rows.append(("incomplete", _losses(summary.losses)))
    if summary.left_out:
        rows.append(("left out", clean("; ".join(summary.left_out))))
    grid = Table.grid(padding=(0, 2))
    grid.add_column(style="dim")
    grid.add_column()
    for name, value in rows:
        grid.add_row(Text(name), Text(value))
    return grid


def _processes(processes: Sequence[ProcessDefinition]) -> str:
    """How many there are, and how far clocks of other machines may be off."""
    doubtful = [one for one in processes if one.clock_uncertainty_ns]
    off = (
        f"the clock of {_process(one)} within {duration(one.clock_uncertainty_ns)}"
        for one in doubtful[:MAX_CLOCKS]
    )
    more = len(doubtful) - MAX_CLOCKS
    told = [f"{len(processes):,}", *off, *([f"{more:,} more"] if more > 0 else [])]
    return "; ".join(told)


def _process(process: ProcessDefinition) -> str:
    name = f"rank {process.rank}" if process.rank >= 0 else f"pid {process.pid}"
    return f"{name} on {clean(process.host)}"


def _losses(losses: Losses) -> str:
    told = [
        (losses.dropped, f"{count(losses.dropped, 'event')} dropped"),
        (
            losses.overwritten,
            f"the first {count(losses.overwritten, 'event')} overwritten by later ones",
        ),
        (losses.damaged_bytes, f"{count(losses.damaged_bytes, 'byte')} damaged"),
        (losses.unknown_events, f"{count(losses.unknown_events, 'event')} unknown"),
        (losses.truncated, "its end is cut off"),
        (not losses.closed, "it was never closed"),
    ]
    return "; ".join([text for has, text in told if has] or map(clean, losses.problems))


def _names_table(names: Sequence[NameSummary], all_ns: int) -> RenderableType:
    table = make_table("name", "nodes", "total", "longest", "share")
    for one in names:
        table.add_row(
            Text(name_text(one.name)),
            Text(f"{one.nodes:,}"),
            Text(duration(one.total_ns)),
            Text(duration(one.longest_ns)),
            share(one.total_ns / max(all_ns, 1)),
        )
    return indented(table)


def _longest_table(nodes: Sequence[NodeSummary]) -> RenderableType:
    # Not where nobody knows, or nobody lost any.
    has_time = any(one.thread_time_ns is not None for one in nodes)
    times = ["running", *(["lost"] if any(map(_lost, nodes)) else [])]
    names = ("took", *(times if has_time else ()))
    table = make_table("name", "node", "pass", "device", *names, "created at")
    for one in nodes:
        told = (
            duration(one.duration_ns),
            duration_text(one.thread_time_ns),
            duration(_lost(one)) if _lost(one) else "",
        )
        of = f" of {clean(one.parameters[0])}" if one.parameters else ""
        table.add_row(
            Text(name_text(one.name) + of),
            Text(str(one.node)),
            Text(str(one.task)),
            Text(clean(one.device)),
            *map(Text, told[: len(names)]),
            Text(clean(place(one.location)) or NOTHING),
        )
    return indented(table)


def _lost(node: NodeSummary) -> int:
    return node.processor_wait_ns


def _failed_table(nodes: Sequence[NodeSummary]) -> RenderableType:
    table = make_table("name", "node", "pass", "after", "created at", "error")
    for one in nodes:
        table.add_row(
            Text(name_text(one.name)),
            Text(str(one.node)),
            Text(str(one.task)),
            Text(duration(one.duration_ns)),
            Text(clean(place(one.location)) or NOTHING),
            Text(clean(one.error), style="bold red"),
        )
    return indented(table)


def _threads_table(
    threads: Sequence[ThreadSummary], duration_ns: int
) -> RenderableType:
    table = make_table("thread", "name", "nodes", "busy", "share")
    for one in threads:
        table.add_row(
            Text(str(one.thread)),
            Text(name_text(one.name)),
            Text(f"{one.nodes:,}"),
            Text(duration(one.busy_ns)),
            share(one.busy_ns / max(duration_ns, 1)),
        )
    return indented(table)


def _passes_table(passes: Sequence[PassSummary]) -> RenderableType:
    table = make_table("pass", "nodes", "edges", "took", "called at", "status")
    for one in passes:
        status = one.status + (f": {clean(one.error)}" if one.error else "")
        status += f" (inside {one.parent})" if one.parent >= 0 else ""
        table.add_row(
            Text(str(one.task)),
            Text(f"{one.nodes:,}"),
            Text(f"{one.edges:,}"),
            Text(duration_text(one.duration_ns)),
            Text(clean(place(one.location)) or NOTHING),
            Text(status, style="" if one.status == "completed" else "bold red"),
        )
    return indented(table)
