"""``gradviz show``: the views of a trace in the terminal.

In: a trace. Out: tables, or JSON. Here are the names of all views. Read `show_summary`,
or the view that you want: one file each.
"""

import click

from gradviz.cli.console.lazy import Entry, LazyGroup


class Show(LazyGroup):
    """The views."""

    former = {"utilisation": "utilization"}  # noqa: RUF012 - declared by LazyGroup
    entries = {  # noqa: RUF012 - declared by LazyGroup
        "summary": Entry(
            "gradviz.cli.show.show_summary",
            "Totals of a trace, and the nodes that took most of the time.",
        ),
        "memory": Entry(
            "gradviz.cli.show.show_memory",
            "Bytes that were held, when, and by which nodes.",
        ),
        "order": Entry(
            "gradviz.cli.show.show_order", "Nodes in the order in which they ran."
        ),
        "parameters": Entry(
            "gradviz.cli.show.show_parameters",
            "Parameters with and without a gradient, and why.",
        ),
        "events": Entry("gradviz.cli.show.show_events", "Events one by one, in words."),
        "queues": Entry(
            "gradviz.cli.show.show_queues",
            "Tasks in the ready queues, and how long they waited.",
        ),
        "critical": Entry(
            "gradviz.cli.show.show_critical",
            "The chain of nodes that set the time of a pass.",
        ),
        "utilization": Entry(
            "gradviz.cli.show.show_utilization",
            "Busy and idle time of each thread.",
        ),
        "collectives": Entry(
            "gradviz.cli.show.show_collectives",
            "Collectives of data-parallel ranks, and the late rank.",
        ),
        "timeline": Entry(
            "gradviz.cli.show.show_timeline", "The work of each thread over time."
        ),
    }


@click.group("show", cls=Show)
def command() -> None:
    """Show a trace in the terminal.

    TRACE defaults to the newest *.gvt of the current folder.

    Example:
        gradviz show order first.gvt
    """
