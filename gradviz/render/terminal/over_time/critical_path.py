"""The critical path of a pass: its segments, and the nodes that cost the most."""

from collections.abc import Iterator, Sequence
from typing import Final

from rich.console import Console

from gradviz.analysis.causes.critical_path import (
    CriticalPath,
    NodeCost,
    Segment,
    SegmentKind,
)
from gradviz.render.terminal.cells import (
    INDENT,
    NOTHING,
    duration_text,
    index_text,
    make_console,
    name_text,
    print_heading,
    print_wrapped,
    share,
)
from gradviz.render.terminal.row_printer import print_rows
from gradviz.render.words.text import clean, count, duration, nodes_ran

#: Maximum number of the longest segments told one by one.
MAX_SEGMENTS: Final = 20
MAX_NODES: Final = 10

WORDS: Final[dict[SegmentKind, str]] = {
    "running": "running",
    "occupied": "thread occupied",
    "hook": "hook",
    "engine": "engine",
    "set-up": "setup of a pass",
    "callback": "final callbacks",
    "waking up": "waking up",
    "kernel": "kernel",
    "stream": "to and from a stream",
    "message": "on its way to a worker",
    "collective": "collective of ranks",
    "unknown": "not known",
    "omitted": "not told",
}


def print_critical_path(path: CriticalPath, console: Console | None = None) -> None:
    """Print the critical path of a pass, as wide as the console."""
    console = console or make_console()
    print_wrapped(console, _head(path), "bold", "")
    for warning in _warnings(path):
        print_wrapped(console, warning, "red", INDENT)
    _print_totals(path, console)
    if path.workers:
        print_wrapped(console, _straggler(path), "", INDENT)
    print_heading(console, "The path", MAX_SEGMENTS, path.num_segments)
    is_nested = any(one.task not in {-1, path.task} for one in path.segments)
    passes = ["pass"] if is_nested else []
    names = ("after", "took", "part", "what", "#", "name", *passes, "where")
    print_rows(console, names, _segment_rows(path, has_passes=is_nested))
    if nodes := [one for one in path.nodes if _gain(path, one)][:MAX_NODES]:
        print_heading(console, "If one of these nodes took no time")
        _print_nodes(path, nodes, console)
        told = min(path.num_runs, path.num_recomputed)
        computed = f"computed anew for {count(told, 'run')} on the path"
        print_wrapped(console, computed, "dim", INDENT)
        if path.num_alike > 1:
            usually = f"usually: the median of {path.num_alike:,} passes of this shape"
            print_wrapped(console, usually, "dim", INDENT)


def _print_totals(path: CriticalPath, console: Console) -> None:
    """Print how much of the path is of which kind."""
    rows = (
        (WORDS[kind], duration(total), share(total / max(path.duration_ns, 1)))
        for kind, total in sorted(path.totals.items(), key=lambda one: -one[1])
    )
    print_rows(console, ("what", "time", "share"), rows, indent=2)


def _straggler(path: CriticalPath) -> str:
    """Return the worker with most of the path."""
    worker, longest = max(path.workers.items(), key=lambda one: one[1])
    part = f"{longest / max(path.duration_ns, 1):.0%}"
    return f"Worker {worker} holds it up most: {duration(longest)} of the path ({part})"


def _head(path: CriticalPath) -> str:
    took = duration(path.duration_ns)
    how = {
        "completed": f"took {took}",
        "failed": f"failed after {took}",
        "unfinished": f"has no end in the trace, which has {took} of it",
    }[path.status]
    ran = nodes_ran(path.num_runs, path.num_nodes)
    return f"Backward pass {path.task} {how}: {ran}"


def _warnings(path: CriticalPath) -> Iterator[str]:
    if path.status == "unfinished":
        yield "This is the path to the last recorded event."
    if not path.is_whole:
        yield "Events are missing from the trace: they may have been on the path."


def _segment_rows(path: CriticalPath, *, has_passes: bool) -> Iterator[list[str]]:
    for some in _grouped(path.segments):
        one, took_ns = some[0], some[-1].end_ns - some[0].begin_ns
        row = [
            duration(one.begin_ns),
            duration(took_ns),
            f"{took_ns / max(path.duration_ns, 1):.0%}",
        ]
        if len(some) > 1:
            yield [*row, f"{len(some):,} shorter", *[""] * (4 if has_passes else 3)]
            continue
        number = index_text(one.index) if one.node >= 0 else ""
        what = name_text(f"{WORDS[one.kind]} {clean(one.hook)}".rstrip())
        row += (what, number, name_text(one.name))
        if has_passes:
            row.append(str(one.task) if one.task >= 0 else "")
        yield [*row, _where(path, one)]


def _grouped(segments: Sequence[Segment]) -> Iterator[list[Segment]]:
    """The longest segments one by one, and those between them together."""
    longest = sorted(segments, key=lambda one: -one.took_ns)[:MAX_SEGMENTS]
    told = {id(one) for one in longest}
    short: list[Segment] = []
    for one in segments:
        if id(one) not in told:
            short.append(one)
            continue
        if short:
            yield short
            short = []
        yield [one]
    if short:
        yield short


def _where(path: CriticalPath, one: Segment) -> str:
    if one.thread < 0:
        return clean(one.stream)
    return f"{one.thread} {name_text(path.threads.get(one.thread, ''))}".rstrip()


def _print_nodes(
    path: CriticalPath, nodes: Sequence[NodeCost], console: Console
) -> None:
    has_usual = path.num_alike > 1
    rows = (
        [
            index_text(one.index),
            name_text(one.name),
            str(one.node),
            str(one.task) if one.task >= 0 else NOTHING,
            duration(one.own_ns),
            *([duration_text(one.usual_ns)] if has_usual else []),
            duration_text(one.if_free_ns),
            duration(_gain(path, one)),
        ]
        for one in nodes
    )
    usually = ["usually"] if has_usual else []
    columns = ("#", "name", "node", "pass", "ran for", *usually, "pass takes", "saves")
    print_rows(console, columns, rows, indent=2)


def _gain(path: CriticalPath, one: NodeCost) -> int:
    return 0 if one.if_free_ns is None else path.duration_ns - one.if_free_ns
