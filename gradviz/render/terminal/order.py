"""The execution order as a table."""

from collections.abc import Iterator, Sequence
from typing import Final

from rich.console import Console
from rich.text import Text

from gradviz.analysis.order import OrderRow
from gradviz.render.terminal.rows import print_rows
from gradviz.render.terminal.tables import duration_text, make_console, name_text
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
    # A column that would say the same of each row is left out.
    has_ends = any(row.status != "completed" for row in rows)
    names = [
        *("#", "node", "name", "seq"),
        *(["topo"] if is_wide else []),
        *("device", "thread"),
        *(["start"] if is_wide else []),
        *("took", "queued"),
        *(["status"] if has_ends else []),
    ]
    head = f"Backward pass {task}: {count(len(rows), 'node')} in the order they ran"
    console.print(Text(head, style="bold"))
    print_rows(
        console,
        names,
        _cells(rows, is_wide=is_wide, has_ends=has_ends),
        alarming={row.index for row in rows if row.status in {"failed", "unfinished"}},
        widest={
            "#": len(str(len(rows))),
            "node": max((len(str(row.node)) for row in rows), default=0),
            "start": len("999 µs"),
        },
    )


def _cells(
    rows: Sequence[OrderRow], *, is_wide: bool, has_ends: bool
) -> Iterator[list[str]]:
    origin = rows[0].start_ns if rows else 0
    for row in rows:
        took = None if row.end_ns is None else row.end_ns - row.start_ns
        cells = [str(row.index), str(row.node), name_text(row.name), _sequence_nr(row)]
        if is_wide:
            cells.append(str(row.topological_nr))
        cells += [clean(row.device), str(row.thread)]
        if is_wide:
            cells.append(duration(row.start_ns - origin))
        cells += [duration_text(took), duration_text(row.waited_ns)]
        if has_ends:
            cells.append(_status(row))
        yield cells


def _sequence_nr(row: OrderRow) -> str:
    return "max" if row.sequence_nr == MAX_SEQUENCE_NR else str(row.sequence_nr)


def _status(row: OrderRow) -> str:
    """How the node ended, where that is worth a word."""
    if row.status == "completed":
        return ""
    return clean(f"{row.status}: {row.error}") if row.error else row.status
