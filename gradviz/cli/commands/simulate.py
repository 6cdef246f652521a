"""``gradviz simulate``."""

from collections.abc import Callable
from pathlib import Path
from typing import Final

import click

from gradviz.analysis.causes.causal_graph import NEEDED
from gradviz.analysis.causes.simulation import document_of, simulate
from gradviz.analysis.nodes.addresses import find_node
from gradviz.analysis.tables.passes import select_task
from gradviz.cli.console.documents import show
from gradviz.cli.console.notes import note_first
from gradviz.cli.console.options import json_option, task_option, trace_argument
from gradviz.cli.console.trace_argument import find_trace, read_trace
from gradviz.named_orders import schedules_named
from gradviz.ready_order import Schedule
from gradviz.render.terminal.over_time.simulation import print_simulation

MAX_TASKS: Final = 100
MAX_THREADS: Final = 1_000


def schedules(
    context: click.Context, parameter: click.Parameter, value: str
) -> tuple[str, Callable[[], Schedule]]:
    """The name of a policy, and what makes its schedules.

    Raises:
        click.BadParameter: There is no such policy.
    """
    del context, parameter
    try:
        return value, schedules_named(value)
    except ValueError as error:
        raise click.BadParameter(str(error)) from error


def addresses(
    context: click.Context, parameter: click.Parameter, values: tuple[str, ...]
) -> tuple[tuple[str, float], ...]:
    """Addresses of nodes, and how many times faster each is: ``Mul:3=2``.

    Raises:
        click.BadParameter: One is not written so, or is not faster than nothing.
    """
    del context, parameter
    found = []
    for value in values:
        address, _, number = value.rpartition("=")
        try:
            times = float(number)
        except ValueError:
            times = 0.0
        if not address or not 0 < times < float("inf"):
            raise click.BadParameter(
                f"{value!r} is not NODE=K with K above 0, such as Mul:3=2 to run it "
                f"twice as fast"
            )
        found.append((address, times))
    return tuple(found)


@click.command("simulate")
@trace_argument
@task_option
@click.option(
    "--policy",
    default="pytorch",
    show_default=True,
    callback=schedules,
    metavar="pytorch|fifo|random:SEED",
    help="The order in which nodes leave their queues.",
)
@click.option(
    "--device-threads",
    type=click.IntRange(1, MAX_THREADS),
    default=1,
    show_default=True,
    metavar="N",
    help="The number of threads for the queue of each device.",
)
@click.option(
    "--infinite-streams",
    is_flag=True,
    help="Let no kernel wait for a kernel of another node.",
)
@click.option(
    "--faster",
    multiple=True,
    callback=addresses,
    metavar="NODE=K",
    help="Let a node run K times faster; may be given several times.",
)
@json_option
def command(
    trace_path: Path | None,
    task: str,
    policy: tuple[str, Callable[[], Schedule]],
    device_threads: int,
    infinite_streams: bool,
    faster: tuple[tuple[str, float], ...],
    as_json: bool,
) -> None:
    """Say how long a backward pass would take if something were changed.

    It schedules the recorded nodes again, each as long as it took, in the order of the
    policy. It does so without a change, too, and prints how far that is from the
    measured time.

    Example:
        gradviz simulate --policy fifo --faster Tanh=2 first.gvt
    """
    trace = read_trace(find_trace(trace_path), needs=NEEDED, all_nodes=True)
    tasks = select_task(trace, task)
    for one in tasks[:MAX_TASKS]:
        simulation = simulate(
            trace,
            one,
            policy=policy[0],
            schedule=policy[1],
            device_threads=device_threads,
            infinite_streams=infinite_streams,
            faster={find_node(trace, one, at): times for at, times in faster},
        )
        show(
            simulation,
            trace,
            as_json=as_json,
            document=document_of,
            table=print_simulation,
        )
    note_first(MAX_TASKS, len(tasks))
