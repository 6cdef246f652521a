"""Comparison of two passes: changes, and verdicts."""

from collections import Counter
from collections.abc import Iterator, Sequence
from typing import Final

from rich.console import Console
from rich.text import Text

from gradviz.analysis.changes.conditions import ConditionState, Verdict
from gradviz.analysis.changes.pass_comparison import (
    UNCOUNTED,
    ChangedNode,
    ComparedPass,
    Comparison,
    MovedNode,
    PlacedNode,
    TimeDifference,
)
from gradviz.analysis.training.usual_times import UsualTime
from gradviz.render.terminal.cells import (
    NOTHING,
    address_text,
    index_text,
    make_console,
    name_text,
    print_heading,
    print_wrapped,
)
from gradviz.render.terminal.row_printer import print_rows
from gradviz.render.words.text import clean, count, duration, place, shorten
from gradviz.render.words.verdict_text import verdict_text

#: Maximum number of differences of a kind printed, and of durations.
SHOWN: Final = 50
TIMES_SHOWN: Final = 8

_MAX_VALUE: Final = 60

#: Verdicts of a gate are printed in this order.
_ORDER: Final[tuple[ConditionState, ...]] = ("failed", "unknown", "undecided", "passed")
_STYLES: Final = {"failed": "bold red", "passed": "green"}


def print_comparison(comparison: Comparison, console: Console | None = None) -> None:
    """Print the differences, or a line if there are none."""
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
            print_heading(console, title, min(len(nodes), SHOWN), total)
            columns = ("#", "name", "node", "device", "created at", "module")
            print_rows(console, columns, map(_node_cells, nodes[:SHOWN]))
    _print_changed(console, comparison.changed)
    if moved := comparison.moved[:SHOWN]:
        title = "Moved in the order of its device"
        print_heading(console, title, len(moved), comparison.num_moved)
        names = ("name", "A", "B", "device", "turn in A", "turn in B")
        print_rows(console, names, map(_moved_cells, moved))
    _print_times(console, comparison)


def print_verdicts(
    verdicts: Sequence[Verdict], after: ComparedPass, console: Console | None = None
) -> None:
    """Print a line for each verdict of a gate, those that failed first.

    Args:
        verdicts: The verdicts.
        after: The second of both passes.
        console: The console to print to.
    """
    console = console or make_console()
    console.print()
    for one in sorted(verdicts, key=lambda verdict: _ORDER.index(verdict.state)):
        line = Text(f"{one.state:<9}  ", style=_STYLES.get(one.state, "yellow"))
        line.append(verdict_text(one, after), style="default")
        console.print(line, soft_wrap=True)


def _print_changed(console: Console, changed: Sequence[ChangedNode]) -> None:
    rows = [row for one in changed for row in _changed_rows(one)]
    if rows:
        print_heading(console, "Changed", min(len(rows), SHOWN), len(rows))
        names = ("name", "A", "B", "what", "in A", "in B")
        print_rows(console, names, rows[:SHOWN])
    told = Counter(part.field for one in changed for part in one.differences)
    parts = [
        f"the {field} of {count(told[field], 'node')}"
        for field in sorted(UNCOUNTED & told.keys())
    ]
    if parts:
        console.print()
        told_too = f"Other, too, but not counted: {', '.join(parts)}"
        print_wrapped(console, told_too, "", "")


def _print_times(console: Console, comparison: Comparison) -> None:
    whole = comparison.duration
    rows = [*([whole] if whole else ()), *comparison.times[:TIMES_SHOWN]]
    if not rows:
        return
    before, after = rows[0].usual_before, rows[0].usual_after
    passes = f"medians of {before.passes:,} and {count(after.passes, 'pass')} alike"
    many = before.passes > 1 or after.passes > 1
    of = f", {passes} ± median deviation; ! is significant" if many else ""
    print_heading(console, f"Durations{of}")
    print_rows(
        console,
        ("name", "A", "B", "took in A", "took in B", "change", ""),
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
        index_text(one.index),
        name_text(one.name),
        str(one.node),
        clean(one.device),
        clean(one.line),
        clean(one.module),
    ]


def _changed_rows(one: ChangedNode) -> Iterator[list[str]]:
    for part in one.differences:
        if part.field in UNCOUNTED:
            continue
        yield [
            name_text(one.before.name),
            _address(one.before),
            _address(one.after),
            part.field,
            shorten(clean(part.before), _MAX_VALUE) or NOTHING,
            shorten(clean(part.after), _MAX_VALUE) or NOTHING,
        ]


def _moved_cells(one: MovedNode) -> list[str]:
    return [
        name_text(one.before.name),
        _address(one.before),
        _address(one.after),
        clean(one.after.device),
        str(one.before.place),
        str(one.after.place),
    ]


def _time_cells(one: TimeDifference) -> list[str]:
    before, after = one.usual_before.median_ns, one.usual_after.median_ns
    return [
        name_text(one.before.name) if one.before else "the pass",
        _address(one.before) if one.before else NOTHING,
        _address(one.after) if one.after else NOTHING,
        _usual(one.usual_before),
        _usual(one.usual_after),
        f"{(after - before) / before:+.0%}" if before else NOTHING,
        "!" if one.is_significant else "",
    ]


def _address(one: PlacedNode) -> str:
    return address_text(one.node, one.index)


def _usual(one: UsualTime) -> str:
    varies = f" ± {duration(one.deviation_ns)}" if one.passes > 1 else ""
    return f"{duration(one.median_ns)}{varies}"
