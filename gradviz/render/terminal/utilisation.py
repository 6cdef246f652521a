"""Whether the workers of a pass were busy: a row for each, and what they waited for."""

from collections.abc import Sequence
from typing import Final

from rich.console import Console, RenderableType
from rich.text import Text

from gradviz.analysis.device_time import DeviceTime
from gradviz.analysis.utilisation import Utilisation, WaitedFor, WorkerTime
from gradviz.render.terminal.rows import print_rows
from gradviz.render.terminal.tables import (
    duration_text,
    heading,
    indented,
    make_console,
    make_table,
    name_text,
    share,
)
from gradviz.render.text import count, duration

#: The parts of a worker's time, and of a device's, as columns.
WORKER_PARTS: Final = {
    "running": "running_ns",
    "others": "elsewhere_ns",
    "engine": "engine_ns",
    "waking": "waking_ns",
    "stream": "stream_ns",
    "not ready": "dependency_ns",
    "no work": "no_work_ns",
    "unknown": "unknown_ns",
}
DEVICE_PARTS: Final = {
    "starting": "starting_ns",
    "other stream": "stream_ns",
    "idle": "idle_ns",
}


def print_utilisation(utilisation: Utilisation, console: Console | None = None) -> None:
    """Print what became of the time of workers and devices, as wide as the console."""
    console = console or make_console()
    console.print(Text(_head(utilisation), style="bold"))
    if utilisation.status == "unfinished":
        console.print(Text("  It has no end in the trace.", style="red"))
    if not utilisation.is_whole:
        console.print(
            Text("  Some of the trace is lost: it may be what is missing.", style="red")
        )
    _workers(utilisation, console)
    work, span = duration(utilisation.work_ns), duration(utilisation.span_ns)
    console.print(
        Text(
            f"parallel {utilisation.parallelism:.2f}, could be "
            f"{utilisation.possible_parallelism:.2f}: {work} of nodes, the longest "
            f"chain {span}"
        )
    )
    if utilisation.devices:
        console.print(heading("Devices"))
        console.print(_devices(utilisation))
    if utilisation.waited_for:
        console.print(heading("Waited for, all workers together"))
        console.print(_waited_for(utilisation.waited_for))


def _head(utilisation: Utilisation) -> str:
    workers = count(len(utilisation.workers) + utilisation.omitted, "worker")
    took = duration(utilisation.duration_ns)
    return f"Backward pass {utilisation.task}: {took}, {workers}"


def _workers(utilisation: Utilisation, console: Console) -> None:
    used = [
        name
        for name, field in WORKER_PARTS.items()
        if any(getattr(one, field) for one in utilisation.workers)
    ]
    rows = (
        [
            f"{one.thread} {name_text(one.name)}",
            f"{one.num_nodes:,}",
            f"{one.running_ns / max(utilisation.duration_ns, 1):.0%}",
            *(_part(one, WORKER_PARTS[name]) for name in used),
        ]
        for one in utilisation.workers
    )
    print_rows(console, ("name", "nodes", "busy", *used), rows)


def _devices(utilisation: Utilisation) -> RenderableType:
    table = make_table("name", "kernels", "share", "busy", *DEVICE_PARTS)
    for one in utilisation.devices:
        table.add_row(
            Text(name_text(one.device)),
            Text(f"{one.num_kernels:,}"),
            share(one.busy_ns / max(utilisation.duration_ns, 1)),
            *(Text(_part(one, field)) for field in ("busy_ns", *DEVICE_PARTS.values())),
        )
    return indented(table)


def _part(one: WorkerTime | DeviceTime, field: str) -> str:
    took_ns: int = getattr(one, field)
    return duration_text(took_ns or None)


def _waited_for(waited: Sequence[WaitedFor]) -> RenderableType:
    table = make_table("name", "node", "pass", "for")
    for one in waited:
        table.add_row(
            Text(name_text(one.name)),
            Text(str(one.node)),
            Text(str(one.task)),
            Text(duration(one.waited_ns)),
        )
    return indented(table)
