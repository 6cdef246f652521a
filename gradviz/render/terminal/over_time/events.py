"""Events, one per line: time, thread, pass, and description."""

from collections.abc import Iterable, Mapping
from itertools import islice
from typing import Final

from rich.cells import cell_len
from rich.console import Console
from rich.text import Text

from gradviz.analysis.moments.subjects import Subject
from gradviz.render.terminal.cells import make_console, name_text, wrapped
from gradviz.render.terminal.row_printer import BLOCK
from gradviz.render.words.event_words import EventWords
from gradviz.render.words.text import clean, count
from gradviz.trace.events import AnyEvent

_HEAD: Final = ("ms", "thread", "pass", "what happened")

#: Maximum number of threads named.
_MAX_THREADS: Final = 20


def story_title(subject: Subject | None, num_events: int, since: str) -> str:
    """Return the title of a story, in a line."""
    of = ""
    if subject is not None:
        name = name_text(subject.name)
        number = f"{subject.kind} {subject.number}"
        of = (
            f" of {name}"
            if subject.kind in {"pass", "stream"}
            else f" of {number} {name}"
        )
    return f"{count(num_events, 'event')}{of}, times from when {since}"


def print_events_head(
    title: str,
    width: int,
    threads: Mapping[int, str] | None = None,
    console: Console | None = None,
) -> None:
    """Print the title of the events below.

    Args:
        title: A line in bold.
        width: Number of columns that times take.
        threads: The names of threads.
        console: Console to print to.
    """
    console = console or make_console()
    console.print(Text(clean(title), style="bold"), soft_wrap=True)
    if threads:
        named = [f"{number} {name_text(name)}" for number, name in threads.items()]
        more = f" and {len(named) - _MAX_THREADS:,} more" * (len(named) > _MAX_THREADS)
        legend = f"threads: {', '.join(named[:_MAX_THREADS])}{more}"
        console.print(Text(legend, style="dim"), soft_wrap=True)
    console.print(Text(_line(width, *_HEAD), style="dim"), soft_wrap=True)


def print_events(
    events: Iterable[AnyEvent],
    words: EventWords,
    width: int,
    console: Console | None = None,
) -> None:
    """Print a line for each event; on a terminal long ones are wrapped.

    Args:
        events: In their order.
        words: Words for the events.
        width: Number of columns that times take.
        console: Console to print to.
    """
    console = console or make_console()
    left = iter(events)
    while block := list(islice(left, BLOCK)):
        lines = [
            _line(
                width,
                words.time(event.t_ns),
                str(event.thread),
                words.pass_number(event.task),
                words.sentence(event),
            )
            for event in block
        ]
        if console.is_terminal:
            indent = " " * len(_line(width, "", "", "", "x")[:-1])
            lines = [part for line in lines for part in _wrapped(line, console, indent)]
        console.file.write("\n".join(lines) + "\n")
    console.file.flush()


def _line(width: int, time: str, thread: str, task: str, words: str) -> str:
    return f"{time:>{width}}  {thread:>6}  {task:>4}  {words}"


def _wrapped(line: str, console: Console, indent: str) -> list[str]:
    if cell_len(line) <= console.width:
        return [line]
    return wrapped(line, console.width, others=indent)
