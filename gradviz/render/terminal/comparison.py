"""Two passes compared: what appeared, vanished, changed, moved, took longer."""

from collections import Counter
from collections.abc import Iterator, Sequence
from typing import Final

from rich.console import Console
from rich.text import Text

from gradviz.analysis.comparison import (
    UNCOUNTED,
    ChangedNode,
    ComparedPass,
    Comparison,
    MovedNode,
    PlacedNode,
    TimeDifference,
)
from gradviz.analysis.usual_times import UsualTime
from gradviz.render.terminal.rows import print_rows
from gradviz.render.terminal.tables import (
    NOTHING,
    heading,
    make_console,
    name_text,
)
from gradviz.render.text import clean, count, duration, place, shorten

#: So many of each kind of difference are printed, and so many of durations.
SHOWN: Final = 50
TIMES_SHOWN: Final = 8

_MAX_VALUE: Final = 60


def print_comparison(comparison: Comparison, console: Console | None = None) -> None:
    """Print what differs; of nothing that is the same more than a line."""
    console = console or make_console()
    one, other = comparison.before, comparison.after
    console.print(Text(f"A  {_pass(one)}"), soft_wrap=True)
    console.print(Text(f"B  {_pass(other)}"), soft_wrap=True)
    console.print(Text(_verdict(comparison), style="bold"), soft_wrap=True)
    if not comparison.is_related:
        return
    for title, nodes, total in (
        ("Only in A", comparison.vanished, comparison.num_vanished),
        ("Only in B", comparison.appeared, comparison.num_appeared),
    ):
        if nodes:
            console.print(heading(title, min(len(nodes), SHOWN), total))
            columns = ("name", "node", "device", "created at", "module")
            print_rows(console, columns, map(_node_cells, nodes[:SHOWN]))
    _print_changed(console, comparison.changed)
    if moved := comparison.moved[:SHOWN]:
        title = "Moved in the order of its device"
        console.print(heading(title, len(moved), comparison.num_moved))
        names = ("name", "A", "B", "device", "turn in A", "turn in B")
        print_rows(console, names, map(_moved_cells, moved))
    _print_times(console, comparison)


def _print_changed(console: Console, changed: Sequence[ChangedNode]) -> None:
    rows = [row for one in changed for row in _changed_rows(one)]
    if rows:
        console.print(heading("Changed", min(len(rows), SHOWN), len(rows)))
        names = ("name", "A", "B", "what", "in A", "in B")
        print_rows(console, names, rows[:SHOWN])
    told = Counter(part.field for one in changed for part in one.differences)
    parts = [
        f"the {field} of {count(told[field], 'node')}"
        for field in sorted(UNCOUNTED & told.keys())
    ]
    if parts:
        console.print(Text(f"\nOther, too, but not counted: {', '.join(parts)}"))


def _print_times(console: Console, comparison: Comparison) -> None:
    whole = comparison.duration
    rows = [*([whole] if whole else ()), *comparison.times[:TIMES_SHOWN]]
    if not rows:
        return
    before, after = rows[0].usual_before, rows[0].usual_after
    passes = f"medians of {before.passes:,} and {count(after.passes, 'pass')} alike"
    many = before.passes > 1 or after.passes > 1
    of = f", {passes} ± median deviation; ! is significant" if many else ""
    console.print(heading(f"Durations{of}"))
    print_rows(
        console,
        ("name", "A", "B", "in A", "in B", "change", ""),
        map(_time_cells, rows),
    )


def _pass(one: ComparedPass) -> str:
    status = "" if one.status == "completed" else f", {one.status}"
    lost = f", {count(one.num_lost, 'definition')} lost" if one.num_lost else ""
    where = clean(place(one.trace)) or "a recording"
    return (
        f"{where}, pass {one.task}: {count(one.num_nodes, 'node')}, "
        f"{count(one.num_edges, 'edge')}{status}{lost}"
    )


def _verdict(comparison: Comparison) -> str:
    matched = f"{count(comparison.num_matched, 'node')} in both"
    if not comparison.is_related:
        return (
            f"They have too little in common to be compared, as different programs "
            f"have: {count(comparison.num_same_edges, 'edge')}"
        )
    if comparison.is_same:
        return f"The same graph in the same order: {matched}"
    parts = [
        (comparison.num_vanished, "only in A"),
        (comparison.num_appeared, "only in B"),
        (comparison.num_changed, "changed"),
        (comparison.num_moved, "moved"),
    ]
    return ", ".join([matched, *(f"{many:,} {what}" for many, what in parts if many)])


def _node_cells(one: PlacedNode) -> list[str]:
    return [
        name_text(one.name),
        str(one.node),
        clean(one.device),
        clean(one.line),
        name_text(one.module),
    ]


def _changed_rows(one: ChangedNode) -> Iterator[list[str]]:
    for part in one.differences:
        if part.field in UNCOUNTED:
            continue
        yield [
            name_text(one.before.name),
            str(one.before.node),
            str(one.after.node),
            part.field,
            shorten(clean(part.before), _MAX_VALUE) or NOTHING,
            shorten(clean(part.after), _MAX_VALUE) or NOTHING,
        ]


def _moved_cells(one: MovedNode) -> list[str]:
    return [
        name_text(one.before.name),
        str(one.before.node),
        str(one.after.node),
        clean(one.after.device),
        str(one.before.place),
        str(one.after.place),
    ]


def _time_cells(one: TimeDifference) -> list[str]:
    before, after = one.usual_before.median_ns, one.usual_after.median_ns
    return [
        name_text(one.before.name) if one.before else "the pass",
        str(one.before.node) if one.before else NOTHING,
        str(one.after.node) if one.after else NOTHING,
        _usual(one.usual_before),
        _usual(one.usual_after),
        f"{(after - before) / before:+.0%}" if before else NOTHING,
        "!" if one.is_significant else "",
    ]


def _usual(one: UsualTime) -> str:
    varies = f" ± {duration(one.deviation_ns)}" if one.passes > 1 else ""
    return f"{duration(one.median_ns)}{varies}"
