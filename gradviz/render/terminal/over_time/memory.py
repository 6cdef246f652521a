"""Memory: bytes over time, the peak, its holders, and savings."""

from collections.abc import Iterator, Mapping, Sequence
from typing import Final

from rich.console import Console

from gradviz.analysis.memory.memory_use import (
    PURPOSES,
    HeldBytes,
    HeldMemory,
    Holder,
    MemoryMoment,
)
from gradviz.analysis.memory.saved_shares import SavedTensors
from gradviz.analysis.memory.savings import Saving
from gradviz.analysis.tables.spans import Points
from gradviz.render.terminal.cells import (
    NOTHING,
    index_text,
    make_console,
    name_text,
    node_text,
    print_heading,
    print_wrapped,
)
from gradviz.render.terminal.over_time.curves import print_curves
from gradviz.render.terminal.row_printer import print_rows
from gradviz.render.words.purposes import CALLED
from gradviz.render.words.text import clean, count, duration, place, shorten_front, size

MAX_HOLDERS: Final = 10
#: Maximum number of the ops, parts of a model and lines that saved most.
_MAX_SHARES: Final = 3
_MAX_PLACE: Final = 60

#: Name of each purpose.
_CALLED: Final[Mapping[str, str]] = {
    "total": "all of it",
    **{str(purpose): name for purpose, name in CALLED.items()},
}


def print_memory(memory: HeldMemory, console: Console | None = None) -> None:
    """Print held memory, as wide as the console."""
    console = console or make_console()
    peak = memory.peak
    print_wrapped(console, _head(memory), "bold", "")
    _print_uses(memory, console)
    _print_curves(memory, console)
    if memory.saved is not None:
        print_saved(memory.saved, console)
    if peak.holders:
        shown = min(MAX_HOLDERS, len(peak.holders))
        title = f"Held at the peak, after {duration(peak.after_ns)}"
        print_heading(console, title, shown, peak.num_holders)
        _print_holders(console, peak.holders[:MAX_HOLDERS])
    if memory.savings:
        print_heading(console, "What would lower the peak")
        for one in memory.savings:
            print_wrapped(console, saving_text(one), "", "  ")
    for note in _notes(memory):
        print_wrapped(console, note, "dim", "")


def print_memory_moment(moment: MemoryMoment, console: Console | None = None) -> None:
    """Print the memory held at one moment."""
    console = console or make_console()
    after = duration(moment.after_ns)
    head = f"{_size(moment.use.total)} held after {after}"
    print_wrapped(console, head, "bold", "")
    rows = (
        (_CALLED[purpose], _in_bytes(num_bytes), _size(num_bytes))
        for purpose, num_bytes in _parts(moment.use)
    )
    print_rows(console, ("name", "bytes", "held"), rows, indent=2)
    if moment.holders:
        print_heading(console, "Held", len(moment.holders), moment.num_holders)
        _print_holders(console, moment.holders)


def saving_text(one: Saving) -> str:
    """Return a way to lower a peak, as a sentence."""
    who = _named(one.name, one.node, one.index)
    where = shorten_front(clean(place(one.where)), _MAX_PLACE) or "?"
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
            other = _named(one.other_name, one.other, one.other_index)
            return (
                f"{held} wait in the buffer of {who}, made at {where}, {when}: for the "
                f"gradient of {other}. What the forward makes later comes earlier."
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


def _named(name: str, node: int, index: int | None) -> str:
    """A node; one that no pass has reached has no name."""
    return f"node {node}" if name == "?" else node_text(name, node, index)


def _head(memory: HeldMemory) -> str:
    passes = (
        f"Backward pass {memory.tasks[0]}"
        if len(memory.tasks) == 1
        else count(len(memory.tasks), "backward pass")
    )
    peak = memory.peak
    if peak.use.total is None:
        return f"{passes}: what was held is unknown"
    most = "peak at least" if memory.is_partial else "peak"
    return f"{passes}: {most} {size(peak.use.total)}, after {duration(peak.after_ns)}"


def print_saved(saved: SavedTensors, console: Console) -> None:
    """Print the largest savers, by op, part of the model and line."""
    groups = (("op", saved.by_op), ("module", saved.by_module), ("line", saved.by_line))
    rows = [
        (kind, count(one.num_nodes, "node"), size(one.size_bytes), _who(kind, one.name))
        for kind, shares in groups
        for one in shares[:_MAX_SHARES]
        if one.name
    ]
    if rows:
        print_heading(console, "Saved tensors, the most first")
        columns = ("by", "nodes", "held", "name")
        print_rows(console, columns, rows, indent=2)
    if saved.parameter_bytes or saved.shared_bytes:
        text = (
            f"Besides, saved and not counted: {_size(saved.parameter_bytes)} that "
            f"parameters and buffers hold anyway, and {_size(saved.shared_bytes)} of "
            f"views and others in memory that counts for another saved tensor."
        )
        print_wrapped(console, text, "", "  ")


def _who(kind: str, name: str) -> str:
    return clean(place(name)) if kind == "line" else name_text(name)


def _print_uses(memory: HeldMemory, console: Console) -> None:
    """Print memory by purpose: at the passes' start, at the peak, after them."""
    rows = []
    uses = (memory.begin, memory.peak.use, memory.end)
    for purpose in ("total", *PURPOSES):
        sizes = [getattr(use, purpose) for use in uses]
        if any(one is None or one for one in sizes):
            rows.append((_CALLED[purpose], *map(_size, sizes)))
    for device in memory.devices:
        three = (device.begin_bytes, device.peak_bytes, device.end_bytes)
        rows.append((f"allocated on {name_text(device.device)}", *map(size, three)))
    columns = ("name", "at the start", "at the peak", "at the end")
    print_rows(console, columns, rows, indent=2)


def _print_curves(memory: HeldMemory, console: Console) -> None:
    shown: list[tuple[str, Points]] = [
        (_CALLED[purpose], points)
        for purpose, points in memory.curves.items()
        if any(height for _, height in points)
    ]
    shown += [
        (f"on {name_text(device.device)}", device.curve) for device in memory.devices
    ]
    title = f"Bytes over {duration(memory.duration_ns)}, each against its most"
    print_heading(console, title)
    curves = [
        (name, points, max((height for _, height in points), default=0))
        for name, points in shown
    ]
    print_curves(console, curves, memory.duration_ns)


def _print_holders(console: Console, holders: Sequence[Holder]) -> None:
    print_rows(
        console,
        ("#", "name", "node", "held", "for", "from", "until", "created at", "module"),
        [list(_cells(one)) for one in holders],
    )


def _cells(one: Holder) -> Iterator[str]:
    yield index_text(one.index)
    yield name_text(one.name)
    yield str(one.node)
    yield size(one.size_bytes)
    yield _CALLED[one.purpose]
    yield "before" if one.since_ns < 0 else duration(one.since_ns)
    yield NOTHING if one.until_ns is None else duration(one.until_ns)
    yield clean(place(one.location)) or NOTHING
    yield clean(one.module) or NOTHING


def _parts(use: HeldBytes) -> Iterator[tuple[str, int | None]]:
    for purpose in PURPOSES:
        num_bytes = getattr(use, purpose)
        if num_bytes is None or num_bytes:
            yield purpose, num_bytes


def _size(num_bytes: int | None) -> str:
    return "unknown" if num_bytes is None else size(num_bytes)


def _in_bytes(num_bytes: int | None) -> str:
    return "unknown" if num_bytes is None else f"{num_bytes:,}"


def _notes(memory: HeldMemory) -> Iterator[str]:
    """Yield the parts that the figures leave out."""
    if memory.num_unknown:
        nodes = count(memory.num_unknown, "node")
        yield (
            f"What {nodes} saved is unknown, and not counted: made before the "
            f"recording began, or nothing that can be asked for."
        )
    if memory.peak.use.unclaimed:
        yield (
            "Perhaps besides: saved tensors and gradients that no later event has to "
            "do with. A trace does not tell when a program drops its last reference."
        )
    if not memory.is_complete:
        yield "Events are missing from the trace: the figures are of what is left."
