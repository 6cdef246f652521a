"""``gradviz show events``."""

import json
import sys
import time
from collections.abc import Iterable
from itertools import islice
from pathlib import Path
from typing import Final

import click
import msgspec

from gradviz.analysis.moments.story import (
    MAX_EVENTS,
    Filter,
    Story,
    kinds_named,
    origin_of,
    select_events,
)
from gradviz.analysis.moments.subjects import Subject, subject_by_id
from gradviz.analysis.tables.executions import NodeNumbers
from gradviz.analysis.tables.passes import select_task
from gradviz.cli.console.notes import note
from gradviz.cli.console.options import (
    json_option,
    part_options,
    subject_options,
    tasks_option,
    trace_argument,
)
from gradviz.cli.console.trace_argument import find_trace, read_trace, warn_of_losses
from gradviz.render.terminal.over_time.events import (
    print_events,
    print_events_head,
    story_title,
)
from gradviz.render.words.event_words import EventWords
from gradviz.trace.events import AnyEvent
from gradviz.trace.format.model import Trace
from gradviz.trace.format.table import different

#: Seconds between two looks at a file that is followed.
POLL_S: Final = 0.1

#: Width of the column of times in a file that grows.
_TIME_COLUMNS: Final = 14

#: Number of lines written at once.
_BLOCK: Final = 1_000


@click.command("events")
@trace_argument
@subject_options
@tasks_option(None, "Only of these backward passes. [default: all events]")
@part_options
@click.option(
    "--limit",
    type=click.IntRange(min=0),
    metavar="N",
    help=f"The first N of them. [default: {MAX_EVENTS:,}]",
)
@click.option(
    "--follow",
    "is_followed",
    is_flag=True,
    help="Go on with what is written to TRACE, until its recording ends or Ctrl-C.",
)
@json_option
def command(  # noqa: PLR0913, PLR0917 - each of them narrows it down
    trace_path: Path | None,
    of: str | None,
    kinds: tuple[str, ...],
    task: str | None,
    begin_ns: int | None,
    end_ns: int | None,
    limit: int | None,
    is_followed: bool,
    as_json: bool,
) -> None:
    """Show what happened, event by event, in words: all, or the story of one thing.

    Times are counted from the trace's first event; from the begin of a pass with
    --pass or --of 'pass N'.

    Example:
        gradviz show events --of cpu --kind 'task_*' first.gvt
    """
    wanted = Filter(kinds=kinds_named(kinds), begin_ns=begin_ns, end_ns=end_ns)
    path = find_trace(trace_path)
    if is_followed:
        if task is not None:
            raise click.UsageError("a growing file has no last pass: leave out --pass")
        if of is not None:
            wanted = wanted._replace(subject=_by_id(of))
        _follow(path, wanted, limit, as_json=as_json)
        return
    trace = read_trace(path)
    if of is not None:
        # Loaded where it is asked for.
        from gradviz.analysis.moments.subject_search import (  # noqa: PLC0415
            find_subject,
        )

        wanted = wanted._replace(subject=find_subject(trace, of, task or "last"))
    if task is not None:
        wanted = wanted._replace(tasks=select_task(trace, task))
    origin_ns, since = origin_of(trace, wanted)
    story = select_events(
        trace, wanted, origin_ns, MAX_EVENTS if limit is None else limit
    )
    words = EventWords(trace, origin_ns, NodeNumbers(trace, _passes(story)))
    width = max((len(words.time(end)) for end in _ends(story)), default=0)
    if not as_json:
        threads = _threads(trace, story)
        title = story_title(wanted.subject, story.num_events, since)
        print_events_head(title, width, threads)
    _print(trace.events_of(story.tables), words, width, as_json=as_json)
    if story.omitted:
        note(
            f"the first {story.num_events:,} events are shown, {story.omitted:,} more "
            f"are not: --limit, --from, --until, --kind choose others"
        )


def _follow(path: Path, wanted: Filter, limit: int | None, *, as_json: bool) -> None:
    """Print the events of a file that grows, as they come."""
    from gradviz.trace.reading.following import follow  # noqa: PLC0415 - used here only

    left = sys.maxsize if limit is None else limit
    origin_ns = None
    for trace in follow(path, lambda: time.sleep(POLL_S)):
        if origin_ns is None:
            origin_ns, since = origin_of(trace, Filter())
            if not as_json:
                title = f"Events of {path}, times from when {since}"
                print_events_head(title, _TIME_COLUMNS)
        story = select_events(trace, wanted, origin_ns, left)
        words = EventWords(trace, origin_ns)
        events = trace.events_of(story.tables)
        _print(events, words, _TIME_COLUMNS, as_json=as_json)
        left -= story.num_events
        if left <= 0:
            return
    warn_of_losses(path, trace.losses)


def _by_id(text: str) -> Subject:
    subject = subject_by_id(text)
    if subject is None:
        raise click.UsageError(
            f"names cannot be looked up in a growing file: expected an id, such "
            f"as 'node 27', or 'stream sim:0/1', got --of {text!r}"
        )
    return subject


def _print(
    events: Iterable[AnyEvent], words: EventWords, width: int, *, as_json: bool
) -> None:
    if not as_json:
        print_events(events, words, width)
        return
    while lines := [
        json.dumps(msgspec.to_builtins(one)) for one in islice(events, _BLOCK)
    ]:
        click.echo("\n".join(lines), file=sys.stdout)


def _ends(story: Story) -> Iterable[int]:
    """The times that may be the longest to write."""
    for table in story.tables.values():
        yield from table["t_ns"][[0, -1]].tolist()


def _passes(story: Story) -> list[int]:
    """The passes in which it happened."""
    found = [different(table.narrow("task")) for table in story.tables.values()]
    return sorted({task for some in found for task in some.tolist() if task >= 0})


def _threads(trace: Trace, story: Story) -> dict[int, str]:
    """The names of the threads on which it happened."""
    numbers = {
        number
        for table in story.tables.values()
        for number in different(table.narrow("thread")).tolist()
    }
    return {number: trace.threads[number].name for number in sorted(numbers)}
