"""``gradviz show``: the views of a trace in the terminal."""

import click

from gradviz.cli.lazy import Entry, LazyGroup


class Show(LazyGroup):
    """The views."""

    entries = {  # noqa: RUF012 - declared by LazyGroup
        "summary": Entry(
            "gradviz.cli.show_summary", "What a trace holds, and where the time went."
        ),
        "memory": Entry(
            "gradviz.cli.show_memory", "What was held in memory, when, and by whom."
        ),
        "order": Entry(
            "gradviz.cli.show_order", "The nodes in the order in which they ran."
        ),
        "events": Entry(
            "gradviz.cli.show_events", "What happened, event by event, in words."
        ),
        "queues": Entry(
            "gradviz.cli.show_queues", "What lay in the ready queues, and for how long."
        ),
        "critical": Entry(
            "gradviz.cli.show_critical", "What the time of a backward pass went to."
        ),
        "utilisation": Entry(
            "gradviz.cli.show_utilisation", "Whether the workers of a pass were busy."
        ),
        "timeline": Entry(
            "gradviz.cli.show_timeline", "What each thread did, and when."
        ),
    }


@click.group("show", cls=Show)
def command() -> None:
    """Show a trace in the terminal.

    TRACE defaults to the newest *.gvt of the current folder.

    Example:
        gradviz show order first.gvt
    """
