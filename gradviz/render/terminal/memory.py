"""Memory: bytes over time, the peak, who held it, what would lower it."""

from collections.abc import Iterator, Sequence
from typing import Final

from rich.console import Console
from rich.table import Table
from rich.text import Text

from gradviz.analysis.curve import Points
from gradviz.analysis.memory import (
    PURPOSES,
    HeldBytes,
    HeldMemory,
    Holder,
    MemoryMoment,
)
from gradviz.analysis.savings import Saving
from gradviz.render.terminal.curves import MIN_COLUMNS, curve_text
from gradviz.render.terminal.explanation import print_wrapped
from gradviz.render.terminal.rows import print_rows
from gradviz.render.terminal.tables import (
    NOTHING,
    heading,
    indented,
    make_console,
    make_table,
    name_text,
)
from gradviz.render.text import clean, count, duration, place, shorten, size

MAX_HOLDERS: Final = 10
_MAX_PLACE: Final = 60

#: What each purpose is called.
_CALLED: Final = {
    "total": "all of it",
    "buffers": "input buffers",
    "saved": "saved tensors",
    "gradients": ".grad",
    "results": "results",
    "unclaimed": "perhaps besides",
}


def print_memory(memory: HeldMemory, console: Console | None = None) -> None:
    """Print what was held, as wide as the console is."""
    console = console or make_console()
    peak = memory.peak
    console.print(Text(_head(memory), style="bold"))
    console.print(indented(_uses(memory)))
    _print_curves(memory, console)
    if peak.holders:
        shown = min(MAX_HOLDERS, len(peak.holders))
        title = f"Held at the peak, after {duration(peak.after_ns)}"
        console.print(heading(title, shown, peak.num_holders))
        _print_holders(console, peak.holders[:MAX_HOLDERS])
    if memory.savings:
        console.print(heading("What would lower the peak"))
        for one in memory.savings:
            print_wrapped(console, saving_text(one), "", "  ")
    for note in _notes(memory):
        print_wrapped(console, note, "dim", "")


def print_memory_moment(moment: MemoryMoment, console: Console | None = None) -> None:
    """Print what was held at one moment."""
    console = console or make_console()
    after = duration(moment.after_ns)
    console.print(Text(f"{size(moment.use.total)} held after {after}", style="bold"))
    table = make_table("name", "bytes", "held")
    for purpose, num_bytes in _parts(moment.use):
        table.add_row(_CALLED[purpose], f"{num_bytes:,}", size(num_bytes))
    console.print(indented(table))
    if moment.holders:
        console.print(heading("Held", len(moment.holders), moment.num_holders))
        _print_holders(console, moment.holders)


def saving_text(one: Saving) -> str:
    """What would lower a peak, as a sentence."""
    who = _named(one.name, one.node)
    where = shorten(clean(place(one.where)), _MAX_PLACE) or "?"
    held, nodes = size(one.size_bytes), count(one.num_nodes, "node")
    when = (
        "until the end"
        if one.after_ns is None
        else f"for another {duration(one.after_ns)}"
    )
    match one.means:
        case "checkpoint":
            return (
                f"Checkpoint {where}: {nodes} of it saved {held}, the last of which "
                f"{who} needs {when}. A checkpoint keeps what goes in, and computes "
                f"the rest again."
            )
        case "earlier dependency":
            return (
                f"{held} wait in the buffer of {who}, made at {where}, {when}: for the "
                f"gradient of {_named(one.other_name, one.other)}. What the "
                f"forward makes later comes earlier."
            )
        case "no retain_graph":
            return (
                f"The pass at {where} kept its graph: {held} that {nodes} had used "
                f"stay {when}. If no other pass needs them, leave retain_graph and "
                f"create_graph away."
            )
        case "let go":
            return (
                f"Up to {held} besides may be held by {nodes}, such as {who} made at "
                f"{where}, which no later pass ran: if the program still holds what "
                f"was computed there, let it go, or compute it under no_grad()."
            )


def _named(name: str, node: int) -> str:
    """A node; one that no pass has reached has no name."""
    return f"node {node}" if name == "?" else f"{name_text(name)} ({node})"


def _head(memory: HeldMemory) -> str:
    passes = (
        f"Backward pass {memory.tasks[0]}"
        if len(memory.tasks) == 1
        else count(len(memory.tasks), "backward pass")
    )
    peak = memory.peak
    return f"{passes}: at most {size(peak.use.total)}, after {duration(peak.after_ns)}"


def _uses(memory: HeldMemory) -> Table:
    """What was held for what: when the passes began, at the peak, after them."""
    table = make_table("name", "at the begin", "at the peak", "at the end")
    uses = (memory.begin, memory.peak.use, memory.end)
    for purpose in ("total", *PURPOSES):
        sizes = [getattr(use, purpose) for use in uses]
        if any(sizes):
            table.add_row(_CALLED[purpose], *map(size, sizes))
    for device in memory.devices:
        three = (device.begin_bytes, device.peak_bytes, device.end_bytes)
        table.add_row(f"allocated on {name_text(device.device)}", *map(size, three))
    return table


def _print_curves(memory: HeldMemory, console: Console) -> None:
    shown: list[tuple[str, Points]] = [
        (_CALLED[purpose], points)
        for purpose, points in memory.curves.items()
        if any(height for _, height in points)
    ]
    shown += [
        (f"on {name_text(device.device)}", device.curve) for device in memory.devices
    ]
    gutter = max((len(name) for name, _ in shown), default=0) + 4
    columns = max(console.width - gutter, MIN_COLUMNS)
    title = f"Bytes over {duration(memory.duration_ns)}, each against its most"
    console.print(heading(title))
    for name, points in shown:
        most = max((height for _, height in points), default=0)
        curve = curve_text(points, memory.duration_ns, columns, most)
        line = Text.assemble((f"  {name}".ljust(gutter), "dim"), (curve, "blue"))
        console.print(line, no_wrap=True, overflow="crop")


def _print_holders(console: Console, holders: Sequence[Holder]) -> None:
    print_rows(
        console,
        ("name", "node", "held", "for", "from", "until", "created at", "module"),
        [list(_cells(one)) for one in holders],
    )


def _cells(one: Holder) -> Iterator[str]:
    yield name_text(one.name)
    yield str(one.node)
    yield size(one.size_bytes)
    yield _CALLED[one.purpose]
    yield "before" if one.since_ns < 0 else duration(one.since_ns)
    yield NOTHING if one.until_ns is None else duration(one.until_ns)
    yield clean(place(one.location)) or NOTHING
    yield name_text(one.module) or NOTHING


def _parts(use: HeldBytes) -> Iterator[tuple[str, int]]:
    for purpose in PURPOSES:
        if num_bytes := getattr(use, purpose):
            yield purpose, num_bytes


def _notes(memory: HeldMemory) -> Iterator[str]:
    """What the figures leave out."""
    if memory.num_unknown:
        nodes = count(memory.num_unknown, "node")
        yield (
            f"{nodes} that ran were made before the recording began: what they saved "
            f"is not counted."
        )
    if memory.peak.use.unclaimed:
        yield (
            "Perhaps besides: saved tensors and gradients that no later event has to "
            "do with. A trace does not tell when a program drops its last reference."
        )
    if not memory.is_complete:
        yield "Events are missing from the trace: the figures are of what is left."
