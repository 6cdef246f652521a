"""The execution order as a table."""

from collections.abc import Sequence
from typing import Final

from rich.console import Console
from rich.text import Text

from gradviz.analysis.order import OrderRow
from gradviz.render.terminal.tables import (
    duration_text,
    make_console,
    make_table,
    name_text,
)
from gradviz.render.text import clean, count, duration
from gradviz.trace.events import MAX_SEQUENCE_NR

#: From so many columns on there is room for everything.
WIDE: Final = 100


def print_order(
    rows: Sequence[OrderRow], task: int, console: Console | None = None
) -> None:
    """Print the execution order of pass `task`, as wide as the console is."""
    console = console or make_console()
    is_wide = console.width >= WIDE
    names = ("#", "node", "name", "seq", "topo", "device", "thread", "start")
    left_out = () if is_wide else ("topo", "start")
    shown = [name for name in (*names, "took", "queued") if name not in left_out]
    table = make_table(*shown)
    origin = rows[0].start_ns if rows else 0
    for row in rows:
        took = None if row.end_ns is None else row.end_ns - row.start_ns
        cells = {
            "#": str(row.index),
            "node": str(row.node),
            "name": name_text(row.name),
            "seq": _sequence_nr(row),
            "topo": str(row.topological_nr),
            "device": clean(row.device),
            "thread": str(row.thread),
            "start": duration(row.start_ns - origin),
            "took": duration_text(took, "never ended"),
            "queued": duration_text(row.waited_ns),
        }
        table.add_row(*(Text(cells[name]) for name in shown))
    head = f"Backward pass {task}: {count(len(rows), 'node')} in the order they ran"
    console.print(Text(head, style="bold"))
    console.print(table)


def _sequence_nr(row: OrderRow) -> str:
    return "max" if row.sequence_nr == MAX_SEQUENCE_NR else str(row.sequence_nr)
