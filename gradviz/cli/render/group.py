"""``gradviz render``: pictures of a trace."""

import click

from gradviz.cli.console.lazy import Entry, LazyGroup


class Render(LazyGroup):
    """The pictures."""

    entries = {  # noqa: RUF012 - declared by LazyGroup
        "graph": Entry(
            "gradviz.cli.render.render_graph",
            "The graph of a backward pass, and its order.",
        ),
        "timeline": Entry(
            "gradviz.cli.render.render_timeline",
            "What each thread did, as bars over time.",
        ),
        "memory": Entry(
            "gradviz.cli.render.render_memory", "Bytes held, over time and by whom."
        ),
        "queues": Entry(
            "gradviz.cli.render.render_queues", "Ready queues: length and contents."
        ),
        "replay": Entry(
            "gradviz.cli.render.render_replay",
            "A film: graph, queues and countdowns, event by event.",
        ),
        "report": Entry(
            "gradviz.cli.render.render_report", "A page to look at passes in a browser."
        ),
    }


@click.group("render", cls=Render)
def command() -> None:
    """Draw a trace into a file.

    TRACE defaults to the newest *.gvt of the current folder.

    Example:
        gradviz render graph first.gvt
    """
