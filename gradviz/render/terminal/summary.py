"""The figures of a trace: totals, where the time went, threads, passes."""

from collections.abc import Sequence
from typing import Final

from rich.console import Console
from rich.text import Text

from gradviz.analysis.training.summary import (
    NameSummary,
    NodeSummary,
    PassSummary,
    Summary,
    ThreadSummary,
)
from gradviz.render.terminal.cells import (
    NOTHING,
    duration_text,
    index_text,
    make_console,
    name_text,
    print_heading,
    share,
    wrapped,
)
from gradviz.render.terminal.row_printer import GAP, print_rows
from gradviz.render.terminal.steps import print_steps
from gradviz.render.words.text import clean, count, duration, nodes_ran, place
from gradviz.trace.format.model import Losses, ProcessDefinition

MAX_PASSES: Final = 12
MAX_NAMES: Final = 8
MAX_LONGEST: Final = 5
MAX_FAILED: Final = 5
MAX_THREADS: Final = 40
MAX_CLOCKS: Final = 4


def print_summary(summary: Summary, console: Console | None = None) -> None:
    """Print the figures of a trace, as wide as the console is."""
    console = console or make_console()
    _print_totals(summary, console)
    if summary.num_runs:
        names = summary.names[:MAX_NAMES]
        all_ns = sum(one.total_ns for one in summary.names)
        print_heading(console, "Where the time went", len(names), len(summary.names))
        _print_names(console, names, all_ns)
        print_heading(console, "Longest nodes")
        _print_longest(console, summary.longest[:MAX_LONGEST])
        if failed := summary.failed[:MAX_FAILED]:
            print_heading(console, "Failed nodes", len(failed), len(summary.failed))
            _print_failed(console, failed)
        threads = summary.threads[:MAX_THREADS]
        print_heading(console, "Threads", len(threads), len(summary.threads))
        _print_threads(console, threads, summary.duration_ns)
    steps = summary.steps
    has_steps = steps is not None and len(steps.steps) > 1
    if steps is not None and has_steps:
        print_steps(steps, console)
    if summary.passes and not (has_steps and len(summary.passes) > MAX_PASSES):
        last = summary.passes[-MAX_PASSES:]
        print_heading(console, "Backward passes", len(last), len(summary.passes))
        _print_passes(console, last)


def _print_totals(summary: Summary, console: Console) -> None:
    num_failed = sum(one.status == "failed" for one in summary.passes)
    failed = f", {num_failed:,} failed" if num_failed else ""
    recorded = count(summary.num_events, "event")
    ran = nodes_ran(summary.num_runs, summary.num_nodes)
    counted = count(summary.num_edges, "edge")
    rows = [
        ("trace", clean(summary.path) or "in memory"),
        ("recorded", f"{recorded} in {duration(summary.duration_ns)}"),
        ("passes", f"{len(summary.passes) + summary.omitted_passes:,}{failed}"),
        ("graph", f"{ran}, {counted}"),
    ]
    if summary.processes:
        rows.append(("processes", _processes(summary.processes)))
    if summary.not_finite:
        # Loaded where there is something to tell.
        from gradviz.render.words.not_finite_text import (  # noqa: PLC0415
            not_finite_text,
        )

        first = not_finite_text(summary.not_finite[0])
        rows.append(("not finite", f"{summary.num_not_finite:,}, the first: {first}"))
    if not summary.losses.is_complete:
        rows.append(("incomplete", _losses(summary.losses)))
    if summary.left_out:
        rows.append(("left out", clean("; ".join(summary.left_out))))
    gutter = max(len(name) for name, _ in rows) + GAP
    for name, value in rows:
        first, *rest = wrapped(value, max(console.width - gutter, 1))
        console.print(Text.assemble((name.ljust(gutter), "dim"), first), soft_wrap=True)
        for line in rest:
            console.print(Text(" " * gutter + line), soft_wrap=True)


def _processes(processes: Sequence[ProcessDefinition]) -> str:
    """Return the number of processes, and the error of their clocks."""
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
        (not losses.closed, "it goes on or was broken off"),
    ]
    return "; ".join([text for has, text in told if has] or map(clean, losses.problems))


def _print_names(console: Console, names: Sequence[NameSummary], all_ns: int) -> None:
    rows = (
        [
            name_text(one.name),
            f"{one.runs:,}",
            duration(one.total_ns),
            duration(one.longest_ns),
            share(one.total_ns / max(all_ns, 1)),
        ]
        for one in names
    )
    columns = ("name", "runs", "total", "longest", "share")
    print_rows(console, columns, rows, indent=2)


def _print_longest(console: Console, nodes: Sequence[NodeSummary]) -> None:
    columns = {
        "#": [index_text(one.index) for one in nodes],
        "name": [name_text(one.name) for one in nodes],
        "parameter": [
            clean(one.parameters[0]) if one.parameters else "" for one in nodes
        ],
        "node": [str(one.node) for one in nodes],
        "pass": [str(one.task) for one in nodes],
        "device": [clean(one.device) for one in nodes],
        "took": [duration(one.duration_ns) for one in nodes],
        "running": [duration_text(one.thread_time_ns) for one in nodes],
        "lost": [duration(_lost(one)) if _lost(one) else "" for one in nodes],
        "created at": [clean(place(one.location)) or NOTHING for one in nodes],
    }
    told = [name for name, cells in columns.items() if {*cells} - {"", NOTHING}]
    rows = zip(*(columns[name] for name in told), strict=True)
    print_rows(console, told, rows, indent=2)


def _lost(node: NodeSummary) -> int:
    return node.processor_wait_ns


def _print_failed(console: Console, nodes: Sequence[NodeSummary]) -> None:
    rows = (
        [
            index_text(one.index),
            name_text(one.name),
            str(one.node),
            str(one.task),
            duration(one.duration_ns),
            clean(place(one.location)) or NOTHING,
            clean(one.error),
        ]
        for one in nodes
    )
    columns = ("#", "name", "node", "pass", "after", "created at", "error")
    print_rows(console, columns, rows, alarming=range(len(nodes)), indent=2)


def _print_threads(
    console: Console, threads: Sequence[ThreadSummary], duration_ns: int
) -> None:
    rows = (
        [
            str(one.thread),
            name_text(one.name),
            f"{one.runs:,}",
            duration(one.busy_ns),
            share(one.busy_ns / max(duration_ns, 1)),
        ]
        for one in threads
    )
    columns = ("thread", "name", "runs", "busy", "share")
    print_rows(console, columns, rows, indent=2)


def _print_passes(console: Console, passes: Sequence[PassSummary]) -> None:
    is_distributed = any(one.workers for one in passes)
    workers = ["workers"] if is_distributed else []
    columns = ("pass", *workers, "runs", "edges", "took", "called at", "status")
    rows = (
        [
            str(one.task),
            *([", ".join(map(str, one.workers)) or NOTHING] if is_distributed else []),
            f"{one.runs:,}",
            f"{one.edges:,}",
            duration_text(one.duration_ns),
            clean(place(one.location)) or NOTHING,
            _status(one),
        ]
        for one in passes
    )
    bad = {i for i, one in enumerate(passes) if one.status != "completed"}
    print_rows(console, columns, rows, alarming=bad, indent=2)


def _status(one: PassSummary) -> str:
    error = f": {clean(one.error)}" if one.error else ""
    inside = f" (inside {one.parent})" if one.parent >= 0 else ""
    return f"{one.status}{error}{inside}"
