"""The critical path of a pass: its segments, and the nodes that cost the most."""

from collections.abc import Iterator, Sequence
from typing import Final

from rich.console import Console, RenderableType
from rich.text import Text

from gradviz.analysis.critical_path import (
    CriticalPath,
    NodeCost,
    Segment,
    SegmentKind,
)
from gradviz.render.terminal.rows import print_rows
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
from gradviz.render.text import clean, count, duration

#: So many of the longest segments are told one by one.
MAX_SEGMENTS: Final = 20
MAX_NODES: Final = 10

WORDS: Final[dict[SegmentKind, str]] = {
    "running": "running",
    "occupied": "thread occupied",
    "engine": "engine",
    "set-up": "begin of a pass",
    "callback": "final callbacks",
    "waking up": "waking up",
    "kernel": "kernel",
    "stream": "to and from a stream",
    "message": "on its way to a worker",
    "unknown": "not known",
    "omitted": "not told",
}


def print_critical_path(path: CriticalPath, console: Console | None = None) -> None:
    """Print what took the time of a pass, as wide as the console is."""
    console = console or make_console()
    console.print(Text(_head(path), style="bold"))
    for warning in _warnings(path):
        console.print(Text(f"  {warning}", style="red"))
    console.print(_totals(path))
    if path.workers:
        console.print(Text(f"  {_straggler(path)}"))
    console.print(heading("The path", MAX_SEGMENTS, path.num_segments))
    names = ("after", "took", "part", "what", "name", "node", "where")
    print_rows(console, names, _segment_rows(path))
    if nodes := [one for one in path.nodes if _gain(path, one)][:MAX_NODES]:
        console.print(heading("If one of these nodes took no time"))
        console.print(_nodes(path, nodes))
        told = min(path.num_nodes, path.num_recomputed)
        console.print(
            Text(f"  computed anew for {count(told, 'node')} on the path", style="dim")
        )
        if path.num_alike > 1:
            usually = (
                f"  usually: the median of {path.num_alike:,} passes of this shape"
            )
            console.print(Text(usually, style="dim"))


def _totals(path: CriticalPath) -> RenderableType:
    """How much of the path is of which kind."""
    table = make_table("what", "time", "share")
    for kind, total in sorted(path.totals.items(), key=lambda one: -one[1]):
        table.add_row(
            Text(WORDS[kind]),
            Text(duration(total)),
            share(total / max(path.duration_ns, 1)),
        )
    return indented(table)


def _straggler(path: CriticalPath) -> str:
    """On which worker most of the path is."""
    worker, longest = max(path.workers.items(), key=lambda one: one[1])
    part = f"{longest / max(path.duration_ns, 1):.0%}"
    return f"Worker {worker} holds it up most: {duration(longest)} of the path ({part})"


def _head(path: CriticalPath) -> str:
    took = duration(path.duration_ns)
    how = {
        "completed": f"took {took}",
        "failed": f"failed after {took}",
        "unfinished": f"has no end in the trace, which knows {took} of it",
    }[path.status]
    return f"Backward pass {path.task} {how}: {count(path.num_nodes, 'node')}"


def _warnings(path: CriticalPath) -> Iterator[str]:
    if path.status == "unfinished":
        yield "This is the path to the last event that is there."
    if not path.is_whole:
        yield "Some of the trace is lost: what is missing may have been on the path."


def _segment_rows(path: CriticalPath) -> Iterator[list[str]]:
    for some in _grouped(path.segments):
        one, took_ns = some[0], some[-1].end_ns - some[0].begin_ns
        row = [
            duration(one.begin_ns),
            duration(took_ns),
            f"{took_ns / max(path.duration_ns, 1):.0%}",
        ]
        if len(some) > 1:
            yield [*row, f"{len(some):,} shorter", "", "", ""]
            continue
        node = str(one.node) if one.node >= 0 else ""
        yield [*row, WORDS[one.kind], name_text(one.name), node, _where(path, one)]


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


def _nodes(path: CriticalPath, nodes: Sequence[NodeCost]) -> RenderableType:
    usually = ["usually"] if path.num_alike > 1 else []
    names = ("name", "node", "pass", "ran for", *usually, "pass takes", "saves")
    table = make_table(*names)
    for one in nodes:
        usual = [Text(duration_text(one.usual_ns))] if usually else []
        table.add_row(
            Text(name_text(one.name)),
            Text(str(one.node)),
            Text(str(one.task) if one.task >= 0 else NOTHING),
            Text(duration(one.own_ns)),
            *usual,
            Text(duration_text(one.if_free_ns)),
            Text(duration(_gain(path, one))),
        )
    return indented(table)


def _gain(path: CriticalPath, one: NodeCost) -> int:
    return 0 if one.if_free_ns is None else path.duration_ns - one.if_free_ns
