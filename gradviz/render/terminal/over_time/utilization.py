"""Busy and idle time of the threads of a pass: a row for each, with its waits."""

from collections.abc import Sequence
from typing import Final

from rich.console import Console

from gradviz.analysis.causes.device_time import DeviceTime
from gradviz.analysis.causes.utilization import ThreadUse, Utilization, WaitedFor
from gradviz.render.terminal.cells import (
    INDENT,
    duration_text,
    index_text,
    make_console,
    name_text,
    print_heading,
    print_wrapped,
    share,
)
from gradviz.render.terminal.row_printer import print_rows
from gradviz.render.words.text import count, duration

#: The parts of a thread's time, and of a device's, as columns.
THREAD_PARTS: Final = {
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


def print_utilization(utilization: Utilization, console: Console | None = None) -> None:
    """Print the time of threads and devices, as wide as the console."""
    console = console or make_console()
    print_wrapped(console, _head(utilization), "bold", "")
    if utilization.status == "unfinished":
        print_wrapped(console, "It has no end in the trace.", "red", INDENT)
    if not utilization.is_whole:
        lost = "Events are missing from the trace: the times may be incomplete."
        print_wrapped(console, lost, "red", INDENT)
    _threads(utilization, console)
    work, span = duration(utilization.work_ns), duration(utilization.span_ns)
    parallel = (
        f"average parallelism {utilization.parallelism:.2f} of a possible "
        f"{utilization.possible_parallelism:.2f} ({work} of work, longest chain {span})"
    )
    print_wrapped(console, parallel, "", "")
    if utilization.devices:
        print_heading(console, "Devices")
        _devices(utilization, console)
    if utilization.waited_for:
        print_heading(console, "Waited for, all threads together")
        _waited_for(utilization.waited_for, console)


def _head(utilization: Utilization) -> str:
    threads = count(len(utilization.threads) + utilization.omitted, "thread")
    took = duration(utilization.duration_ns)
    return f"Backward pass {utilization.task}: {took}, {threads}"


def _threads(utilization: Utilization, console: Console) -> None:
    used = [
        name
        for name, field in THREAD_PARTS.items()
        if any(getattr(one, field) for one in utilization.threads)
    ]
    rows = (
        [
            f"{one.thread} {name_text(one.name)}",
            f"{one.num_runs:,}",
            f"{one.running_ns / max(utilization.duration_ns, 1):.0%}",
            *(_part(one, THREAD_PARTS[name]) for name in used),
        ]
        for one in utilization.threads
    )
    print_rows(console, ("name", "runs", "busy", *used), rows)


def _devices(utilization: Utilization, console: Console) -> None:
    rows = (
        [
            name_text(one.device),
            f"{one.num_kernels:,}",
            share(one.busy_ns / max(utilization.duration_ns, 1)),
            *(_part(one, field) for field in ("busy_ns", *DEVICE_PARTS.values())),
        ]
        for one in utilization.devices
    )
    columns = ("name", "kernels", "share", "busy", *DEVICE_PARTS)
    print_rows(console, columns, rows, indent=2)


def _part(one: ThreadUse | DeviceTime, field: str) -> str:
    took_ns: int = getattr(one, field)
    return duration_text(took_ns or None)


def _waited_for(waited: Sequence[WaitedFor], console: Console) -> None:
    rows = (
        [
            index_text(one.index),
            name_text(one.name),
            str(one.node),
            str(one.task),
            duration(one.waited_ns),
        ]
        for one in waited
    )
    print_rows(console, ("#", "name", "node", "pass", "waited"), rows, indent=2)
