"""The timelines that options name: those of passes, or of training steps."""

from collections.abc import Sequence
from typing import Final, TypeVar

import click

from gradviz.analysis.tables.passes import select_task
from gradviz.analysis.timelines.timeline_lanes import Timeline, build_timeline
from gradviz.cli.console.notes import note
from gradviz.render.words.text import count
from gradviz.trace.format.model import Trace

_One = TypeVar("_One")

#: Maximum number of timelines, one below the other.
MAX_PANELS: Final = 16
step_option = click.option(
    "--step",
    metavar="N|N-M|last|slowest|all",
    help="Whole training steps: forward, backward passes and optimizer.",
)


def timelines_of(
    trace: Trace,
    task: str,
    step: str | None,
    *,
    limit: int,
    is_each: bool = False,
    has_modules: bool = False,
    is_by_worker: bool = False,
) -> list[Timeline]:
    """The timelines that options name; of very many the first, which is said.

    Args:
        trace: The trace.
        task: Passes to show.
        step: Steps to show; None if it is passes.
        limit: So many nodes, and so many sleeps and kernels, all of them together.
        is_each: True if each of several passes has a timeline of its own. Steps have.
        has_modules: True if passes have the rows of modules that forwards have.
        is_by_worker: True if each worker has one lane, if there are workers, and ranks
            stand beside those that their passes have collectives with.

    Raises:
        click.UsageError: Both passes and steps are named.
    """
    found = _timelines_of(
        trace, task, step, limit=limit, is_each=is_each, has_ranks=is_by_worker
    )
    # Loaded where a picture needs them.
    if is_by_worker:
        from gradviz.analysis.timelines.worker_lanes import (  # noqa: PLC0415
            with_worker_lanes,
        )

        by_worker = [with_worker_lanes(one) for one in found]
        if any(
            one is not it for one, it in zip(by_worker, found, strict=True)
        ):  # in which rows say nothing of modules
            return by_worker
    if has_modules:
        from gradviz.analysis.timelines.module_rows import (  # noqa: PLC0415
            with_module_rows,
        )

        found = [with_module_rows(trace, one) for one in found]
    return found


def _timelines_of(
    trace: Trace,
    task: str,
    step: str | None,
    *,
    limit: int,
    is_each: bool,
    has_ranks: bool,
) -> list[Timeline]:
    if step is not None and task != "last":
        raise click.UsageError("--step and --pass exclude each other")
    if step is not None:
        # Loaded where it is asked for.
        from gradviz.analysis.training.steps import select_steps  # noqa: PLC0415

        steps = _first(select_steps(trace, step), "step")
        most = limit // len(steps)
        return [build_timeline(trace, one.tasks, one, limit=most) for one in steps]
    tasks = select_task(trace, task)
    if has_ranks and not is_each:
        # Loaded where a picture needs it.
        from gradviz.analysis.timelines.worker_lanes import (  # noqa: PLC0415
            with_ranks,
        )

        tasks = with_ranks(trace, tasks)
    if not is_each:
        return [build_timeline(trace, tasks, limit=limit)]
    some = _first(tasks, "pass")
    return [build_timeline(trace, [one], limit=limit // len(some)) for one in some]


def _first(some: Sequence[_One], noun: str) -> Sequence[_One]:
    if len(some) > MAX_PANELS:
        note(f"{MAX_PANELS} of {count(len(some), noun)} are shown, the first ones")
    return some[:MAX_PANELS]
