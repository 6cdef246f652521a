"""How long a pass would take if something were changed: three lines."""

from collections.abc import Iterator

from rich.console import Console
from rich.text import Text

from gradviz.analysis.simulation import Simulation
from gradviz.render.terminal.tables import indented, make_console, make_table, name_text
from gradviz.render.text import clean, count, duration


def print_simulation(simulation: Simulation, console: Console | None = None) -> None:
    """Print what was measured, what the model makes of it, and what it predicts."""
    console = console or make_console()
    console.print(Text(f"Backward pass {simulation.task}", style="bold"))
    if not simulation.is_whole:
        console.print(
            Text("  Some of the trace is lost: it is not in it.", style="red")
        )
    table = make_table("what", "takes", "change")
    table.add_row(Text("measured"), Text(duration(simulation.measured_ns)), Text(""))
    table.add_row(
        Text("the model, nothing changed"),
        Text(duration(simulation.unchanged_ns)),
        Text(f"{simulation.error:+.1%}"),
    )
    if changes := ", ".join(_changes(simulation)):
        part = simulation.predicted_ns / max(simulation.unchanged_ns, 1) - 1
        table.add_row(
            Text(changes), Text(duration(simulation.predicted_ns)), Text(f"{part:+.1%}")
        )
    console.print(indented(table))


def _changes(simulation: Simulation) -> Iterator[str]:
    if simulation.policy != "pytorch":
        yield clean(simulation.policy)
    if simulation.device_threads != 1:
        yield f"{count(simulation.device_threads, 'thread')} for each device"
    if simulation.infinite_streams:
        yield "infinite streams"
    for one in simulation.faster:
        yield f"{name_text(one.name)} ({one.node}) {one.times:g} times faster"
