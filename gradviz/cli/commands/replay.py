"""``gradviz replay``."""

import importlib
import os
import sys
from pathlib import Path
from typing import Final

import click

from gradviz.analysis.moments.event_replay import Replay, document_of
from gradviz.analysis.moments.story import Filter, kinds_named
from gradviz.analysis.moments.subject_search import find_subject
from gradviz.analysis.tables.passes import select_task
from gradviz.analysis.training.steps import select_steps
from gradviz.cli.console.chosen_timelines import step_option
from gradviz.cli.console.documents import print_document
from gradviz.cli.console.notes import note
from gradviz.cli.console.options import (
    at_option,
    force_option,
    limit_option,
    output_option,
    part_options,
    subject_options,
    task_option,
    trace_argument,
)
from gradviz.cli.console.output import called, check_output, format_of, write_output
from gradviz.cli.console.paging import paged
from gradviz.cli.console.trace_argument import find_trace, read_trace
from gradviz.render.replay.film import film
from gradviz.render.replay.plain import print_replay
from gradviz.render.replay.player import Player
from gradviz.render.words.text import count
from gradviz.trace.format.model import Trace

#: Maximum number of events in a film: each takes some kilobytes.
MAX_FILMED: Final = 200

#: Maximum number of events printed, unless `--limit` says otherwise.
MAX_PRINTED: Final = 500


@click.command("replay")
@trace_argument
@task_option
@step_option
@subject_options
@part_options
@at_option("The moment to start at; with --plain, the only one shown.")
@click.option(
    "--plain",
    is_flag=True,
    help="Print it as text, event by event, for logs and screen readers.",
)
@limit_option
@output_option("none, and it is played: FILE is an animated SVG of it")
@force_option
@click.option(
    "--json", "as_json", is_flag=True, help="Print JSON, one line for each event."
)
def command(  # noqa: PLR0913, PLR0917 - each of them narrows it down
    trace_path: Path | None,
    task: str,
    step: str | None,
    of: str | None,
    kinds: tuple[str, ...],
    begin_ns: int | None,
    end_ns: int | None,
    after_ns: int | None,
    plain: bool,
    limit: int | None,
    output: Path | None,
    force: bool,
    as_json: bool,
) -> None:
    """Play a backward pass, event by event: queues, workers, countdowns, and why.

    It fills the screen. The bottom line and ? list the keys. Times count from the start
    of the pass.

    Example:
        gradviz replay --plain --until 200us first.gvt
    """
    if output is not None:
        format_of(output, ("svg",))
        check_output(output, force=force)
    trace = read_trace(find_trace(trace_path))
    wanted = Filter(
        subject=None if of is None else find_subject(trace, of, task),
        tasks=_tasks(trace, task, step),
        kinds=kinds_named(kinds),
        begin_ns=begin_ns,
        end_ns=end_ns,
    )
    replay = Replay(trace, wanted)
    place = 0 if after_ns is None else max(replay.place_at(after_ns), 0)
    chosen = range(place, len(replay))
    if after_ns is not None:
        chosen = chosen[:1]
    shown = chosen[: limit or MAX_PRINTED]
    if output is not None:
        write_output(output, film(replay, shown[:MAX_FILMED]))
        note(
            f"filmed {count(min(len(shown), MAX_FILMED), 'event')} in {called(output)}"
        )
        return
    if not plain and not as_json and _is_on_terminal():
        # Here, so that no other command loads textual, nor this one to print.
        app = importlib.import_module("gradviz.render.replay.app")
        app.play(Player(replay, place))
        return
    _print(replay, shown, plain=plain, as_json=as_json)
    if len(shown) < len(chosen):
        note(
            f"the first {len(shown):,} events are shown, "
            f"{len(chosen) - len(shown):,} more are not: --limit, --from, --until, "
            f"--kind, --of choose others"
        )


def _print(replay: Replay, shown: range, *, plain: bool, as_json: bool) -> None:
    if as_json:
        for one in shown:
            print_document(document_of(replay.at(one)), replay.trace)
        return
    if not plain:
        note("no terminal to draw on: printing as with --plain")
    with paged(wanted=True):
        print_replay(replay, shown)


def _tasks(trace: Trace, task: str, step: str | None) -> tuple[int, ...]:
    """The passes, or those of the step, that options name."""
    if step is None:
        return select_task(trace, task)
    if task != "last":
        raise click.UsageError("--step and --pass exclude each other")
    return tuple(task for one in select_steps(trace, step) for task in one.tasks)


def _is_on_terminal() -> bool:
    """Return whether keys come from a terminal, and there is one to draw on."""
    # textual draws on stderr.
    every = (sys.stdin, sys.stdout, sys.stderr)
    return os.environ.get("TERM") != "dumb" and all(one.isatty() for one in every)
