"""The time that a pass would take if something were changed: three lines."""

from collections.abc import Iterator

from rich.console import Console
from rich.text import Text

from gradviz.analysis.causes.simulation import Simulation
from gradviz.render.terminal.cells import (
    INDENT,
    make_console,
    node_text,
    print_wrapped,
)
from gradviz.render.terminal.row_printer import print_rows
from gradviz.render.words.text import clean, count, duration


def print_simulation(simulation: Simulation, console: Console | None = None) -> None:
    """Print the measured duration, the model's, and the prediction."""
    console = console or make_console()
    console.print(Text(f"Backward pass {simulation.task}", style="bold"))
    if not simulation.is_whole:
        lost = "Events are missing from the trace, so from the simulation too."
        print_wrapped(console, lost, "red", INDENT)
    unchanged_ns, predicted_ns = simulation.unchanged_ns, simulation.predicted_ns
    error = f"{simulation.error:+.1%}"
    rows = [
        ("measured", duration(simulation.measured_ns), ""),
        ("the model, nothing changed", duration(unchanged_ns), error),
    ]
    if changes := ", ".join(_changes(simulation)):
        part = f"{predicted_ns / max(unchanged_ns, 1) - 1:+.1%}"
        rows.append((changes, duration(predicted_ns), part))
    print_rows(console, ("case", "takes", "change"), rows, indent=2)


def _changes(simulation: Simulation) -> Iterator[str]:
    if simulation.policy != "pytorch":
        yield clean(simulation.policy)
    if simulation.device_threads != 1:
        yield f"{count(simulation.device_threads, 'thread')} for each device"
    if simulation.infinite_streams:
        yield "infinite streams"
    for one in simulation.faster:
        yield f"{node_text(one.name, one.node, one.index)} {one.times:g} times faster"
