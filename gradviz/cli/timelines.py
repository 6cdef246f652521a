"""Which timelines are meant: those of passes, or of training steps."""

from collections.abc import Sequence
from typing import Final, TypeVar

import click

from gradviz.analysis.passes import select_task
from gradviz.analysis.steps import select_steps
from gradviz.analysis.timeline import Timeline, build_timeline
from gradviz.cli.notes import note
from gradviz.errors import UserError
from gradviz.render.text import count, duration
from gradviz.trace.model import Trace

_One = TypeVar("_One")

#: So many are shown one below the other.
MAX_PANELS: Final = 16
step_option = click.option(
    "--step",
    metavar="N|N-M|last|slowest|all",
    help="Whole training steps: forward, backward passes and optimizer.",
)


class NoSuchTimeError(UserError):
    """There is nothing at the time that was asked for: wrong usage."""

    exit_code = 2


def timelines_of(
    trace: Trace,
    task: str,
    step: str | None,
    *,
    limit: int,
    is_each: bool = False,
) -> list[Timeline]:
    """The timelines that options name; of very many the first, which is said.

    Args:
        trace: The trace.
        task: Which passes.
        step: Which steps; None if it is passes.
        limit: So many nodes, and so many sleeps and kernels, all of them together.
        is_each: Whether each of several passes has a timeline of its own. Steps have.

    Raises:
        click.UsageError: Both passes and steps are named.
    """
    if step is not None and task != "last":
        raise click.UsageError("--step and --task exclude each other")
    if step is not None:
        steps = _first(select_steps(trace, step), "step")
        most = limit // len(steps)
        return [build_timeline(trace, one.tasks, one, limit=most) for one in steps]
    tasks = select_task(trace, task)
    if not is_each:
        return [build_timeline(trace, tasks, limit=limit)]
    some = _first(tasks, "pass")
    return [build_timeline(trace, [one], limit=limit // len(some)) for one in some]


def _first(some: Sequence[_One], noun: str) -> Sequence[_One]:
    if len(some) > MAX_PANELS:
        note(f"{MAX_PANELS} of {count(len(some), noun)} are shown, the first ones")
    return some[:MAX_PANELS]


def check_times(timelines: list[Timeline], begin_ns: int, end_ns: int | None) -> None:
    """Make sure that some of the timelines is shown.

    Raises:
        click.UsageError: The one time is not before the other.
        NoSuchTimeError: All timelines end before.
    """
    if end_ns is not None and end_ns <= begin_ns:
        raise click.UsageError("--until is not after --from: there is nothing between")
    longest = max(one.duration_ns for one in timelines)
    if begin_ns and begin_ns >= longest:
        raise NoSuchTimeError(
            f"there is nothing {duration(begin_ns)} after the begin: it ends after "
            f"{duration(longest)}"
        )
