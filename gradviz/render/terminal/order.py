"""The execution order as a table."""

from collections.abc import Callable, Mapping, Sequence
from typing import Final

from rich.console import Console

from gradviz.analysis.nodes.execution_order import Order, OrderRow
from gradviz.render.terminal.cells import (
    TEXT_COLUMNS,
    WRAPPED,
    duration_text,
    make_console,
    name_text,
    print_wrapped,
)
from gradviz.render.terminal.row_printer import GAP, LINE, print_rows, widest_of
from gradviz.render.words.text import clean, count, duration, place, shape
from gradviz.trace.events import MAX_SEQUENCE_NR

#: Columns that are shown whatever room there is, unless `TELLING` needs the room of
#: `LESS_TELLING`; then others, as far as they fit.
ALWAYS: Final = ("#", "worker", "node", "name", "took", "lost", "queued", "status")
TELLING: Final = ("parameter", "line")
LESS_TELLING: Final = ("lost", "queued")
IMPORTANT: Final = (
    *TELLING,
    "module",
    "seq",
    "device",
    "thread",
    "shape",
    "running",
    "start",
    "depth",
)

#: A column of text is of use from so many characters on; one that is always shown gets
#: more at once. In a narrow console those that tell most are cut to less.
USEFUL: Final = 16
AMPLE: Final = 24
LITTLE: Final = 10


def print_order(order: Order, console: Console | None = None) -> None:
    """Print the execution order of a pass, as wide as the console is."""
    console = console or make_console()
    columns = _columns(order)
    needed = {name: max(len(name), widest_of(cells)) for name, cells in columns.items()}
    shown = _fitting(needed, console.width)
    print_wrapped(console, _head(order), "bold", "")
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
    by = "in the order they ran" if order.sort == "start" else f"sorted by {order.sort}"
    inferred = ", time in the queue inferred" if order.is_inferred else ""
    nodes = count(order.num_nodes, "node")
    return f"Backward pass {order.task}: {part}{nodes} {by}{inferred}"


def _columns(order: Order) -> Mapping[str, Sequence[str]]:
    """All columns that say something, in the order in which they stand."""
    told: dict[str, Callable[[OrderRow], str]] = {
        "#": lambda row: str(row.index),
        "worker": lambda row: "" if row.worker is None else str(row.worker),
        "node": lambda row: str(row.node),
        "name": lambda row: name_text(row.name),
        "module": lambda row: clean(row.module),
        "parameter": lambda row: clean(" = ".join(row.parameters)),
        "line": lambda row: clean(place(row.location)),
        "shape": _shapes,
        "seq": _sequence_nr,
        "depth": lambda row: str(row.topological_nr),
        "device": lambda row: clean(row.device),
        "thread": lambda row: str(row.thread),
        "start": lambda row: duration(row.start_ns - order.begin_ns),
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
    cells = {name: list(map(text, order.rows)) for name, text in told.items()}
    may_be_empty = {
        "worker",
        "module",
        "parameter",
        "line",
        "shape",
        "running",
        "lost",
        "status",
    }
    return {
        name: column
        for name, column in cells.items()
        if name not in may_be_empty or any(column)
    }


def _fitting(needed: Mapping[str, int], width: int) -> list[str]:
    """The columns that there is room for, of which each needs so much."""
    chosen = _least(needed, width + GAP)
    left = (
        width
        + GAP
        - sum(
            _room(name, needed, AMPLE if name in ALWAYS else USEFUL) for name in chosen
        )
    )
    for name in IMPORTANT:
        if name in needed and name not in chosen:
            room = _room(name, needed, USEFUL)
            if room <= left:
                chosen.add(name)
                left -= room
    return [name for name in needed if name in chosen]


def _least(needed: Mapping[str, int], available: int) -> set[str]:
    """The columns that are shown first, given that texts can be cut."""
    always = needed.keys() & {*ALWAYS}
    every = always | (needed.keys() & {*TELLING})
    for some in (every, every - {*LESS_TELLING[:1]}, every - {*LESS_TELLING}):
        if sum(_room(name, needed, LITTLE) for name in some) <= available:
            return some
    return always


def _room(name: str, needed: Mapping[str, int], text: int) -> int:
    """Return the width of a column with its gap; of a text at most `text`."""
    if name in WRAPPED:
        text = max(text, LINE)
    return GAP + (min(needed[name], text) if name in TEXT_COLUMNS else needed[name])


def _shapes(row: OrderRow) -> str:
    return " ".join(shape(one) if one is not None else "any" for one in row.shapes)


def _sequence_nr(row: OrderRow) -> str:
    return "max" if row.sequence_nr == MAX_SEQUENCE_NR else str(row.sequence_nr)


def _status(row: OrderRow) -> str:
    """Return the ending of the node, unless it is the usual one."""
    if row.status == "completed":
        return ""
    return clean(f"{row.status}: {row.error}") if row.error else row.status
