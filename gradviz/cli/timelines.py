"""Which timeline is meant: that of passes, or of a training step."""

import click

from gradviz.analysis.passes import select_task
from gradviz.analysis.steps import select_step
from gradviz.analysis.timeline import Timeline, build_timeline
from gradviz.trace.model import Trace

step_option = click.option(
    "--step",
    metavar="N|last|slowest",
    help="A whole training step: forward, backward passes and optimizer.",
)


def timeline_of(trace: Trace, task: str, step: str | None) -> Timeline:
    """The timeline of the passes, or of the step, that options name.

    Raises:
        click.UsageError: Both are named.
    """
    if step is None:
        return build_timeline(trace, select_task(trace, task))
    if task != "last":
        raise click.UsageError("--step and --task exclude each other")
    found = select_step(trace, step)
    return build_timeline(trace, found.tasks, found)
