"""The execution order as a table."""

from collections.abc import Callable, Mapping, Sequence
from typing import Final

from rich.console import Console
from rich.text import Text

from gradviz.analysis.order import Order, OrderRow
from gradviz.render.terminal.rows import GAP, print_rows, widest_of
from gradviz.render.terminal.tables import (
    TEXT_COLUMNS,
    duration_text,
    make_console,
    name_text,
)
from gradviz.render.text import clean, count, duration, place, shape
from gradviz.trace.events import MAX_SEQUENCE_NR

#: Columns that are shown whatever room there is; then others, as far as they fit.
ALWAYS: Final = ("#", "node", "name", "took", "lost", "queued", "status")
IMPORTANT: Final = (
    "seq",
    "device",
    "parameter",
    "module",
    "thread",
    "line",
    "shape",
    "running",
    "start",
    "topo",
)

#: A column of text is of use from so many characters on; one that is always shown gets
#: more at once.
USEFUL: Final = 16
AMPLE: Final = 24


def print_order(order: Order, console: Console | None = None) -> None:
    """Print the execution order of a pass, as wide as the console is."""
    console = console or make_console()
    columns = _columns(order.rows)
    needed = {name: max(len(name), widest_of(cells)) for name, cells in columns.items()}
    shown = _fitting(needed, console.width)
    console.print(Text(_head(order), style="bold"))
    print_rows(
        console,
        shown,
        zip(*(columns[name] for name in shown), strict=True),
        alarming={
            number
            for number, row in enumerate(order.rows)
            if row.status in {"failed", "unfinished"}
        },
        widest=needed,
    )


def _head(order: Order) -> str:
    shown = len(order.rows)
    part = f"{shown:,} of " if shown < order.num_nodes else ""
    by = "in the order they ran" if order.sort == "start" else f"by {order.sort}"
    inferred = ", time in the queue inferred" if order.is_inferred else ""
    nodes = count(order.num_nodes, "node")
    return f"Backward pass {order.task}: {part}{nodes} {by}{inferred}"


def _columns(rows: Sequence[OrderRow]) -> Mapping[str, Sequence[str]]:
    """All columns that say something, in the order in which they stand."""
    first = min((row.start_ns for row in rows), default=0)
    told: dict[str, Callable[[OrderRow], str]] = {
        "#": lambda row: str(row.index),
        "node": lambda row: str(row.node),
        "name": lambda row: name_text(row.name),
        "module": lambda row: clean(row.module),
        "parameter": lambda row: clean(" = ".join(row.parameters)),
        "line": lambda row: clean(place(row.location)),
        "shape": _shapes,
        "seq": _sequence_nr,
        "topo": lambda row: str(row.topological_nr),
        "device": lambda row: clean(row.device),
        "thread": lambda row: str(row.thread),
        "start": lambda row: duration(row.start_ns - first),
        "took": lambda row: duration_text(
            None if row.end_ns is None else row.end_ns - row.start_ns
        ),
        "running": lambda row: (
            "" if row.thread_time_ns is None else duration(row.thread_time_ns)
        ),
        "lost": lambda row: (
            duration(row.processor_wait_ns) if row.processor_wait_ns else ""
        ),
        "queued": lambda row: duration_text(row.waited_ns),
        "status": _status,
    }
    cells = {name: list(map(text, rows)) for name, text in told.items()}
    may_be_empty = {"module", "parameter", "line", "shape", "running", "lost", "status"}
    return {
        name: column
        for name, column in cells.items()
        if name not in may_be_empty or any(column)
    }


def _fitting(needed: Mapping[str, int], width: int) -> list[str]:
    """The columns that there is room for, of which each needs so much."""
    left = width + GAP
    chosen = set()
    for name in (*ALWAYS, *IMPORTANT):
        if name in needed:
            room = GAP + needed[name]
            if name in TEXT_COLUMNS:
                room = min(room, GAP + (AMPLE if name in ALWAYS else USEFUL))
            if name in ALWAYS or room <= left:
                chosen.add(name)
                left -= room
    return [name for name in needed if name in chosen]


def _shapes(row: OrderRow) -> str:
    return " ".join(shape(one) if one is not None else "any" for one in row.shapes)


def _sequence_nr(row: OrderRow) -> str:
    return "max" if row.sequence_nr == MAX_SEQUENCE_NR else str(row.sequence_nr)


def _status(row: OrderRow) -> str:
    """How the node ended, where that is worth a word."""
    if row.status == "completed":
        return ""
    return clean(f"{row.status}: {row.error}") if row.error else row.status
