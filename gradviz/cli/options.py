"""Options and arguments that several commands share."""

import functools
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import TypeVar

import click
from click.shell_completion import CompletionItem

from gradviz.cli.paging import paged
from gradviz.render import text

Command = TypeVar("Command", bound=Callable[..., object])

force_option = click.option(
    "-f", "--force", is_flag=True, help="Replace the output if it exists."
)

quiet_option = click.option(
    "-q", "--quiet", is_flag=True, help="Say nothing but errors and warnings."
)

open_option = click.option(
    "--open",
    "is_opened",
    is_flag=True,
    help="Show it with the viewer of the desktop.",
)


def json_option(command: Callable[..., object]) -> Callable[..., object]:
    """``--json``; what a person reads instead goes through a pager where it is long.

    A command that follows something that grows, ``--follow``, is shown as it comes.
    """

    @functools.wraps(command)
    def in_pager(*, no_pager: bool, **given: object) -> object:
        wanted = not (no_pager or given["as_json"] or given.get("is_followed"))
        with paged(wanted=wanted):
            return command(**given)

    pager = click.option(
        "--no-pager",
        is_flag=True,
        help="Print all at once, however long it is and small the terminal.",
    )
    json = click.option(
        "--json", "as_json", is_flag=True, help="Print JSON instead of a table."
    )
    return json(pager(in_pager))


def complete_task(
    context: click.Context, parameter: click.Parameter, incomplete: str
) -> list[str]:
    """The words that mean passes; their numbers nobody needs to look up."""
    del context, parameter
    words = ("last", "slowest", "failed", "all")
    return [word for word in words if word.startswith(incomplete)]


def complete_trace(
    context: click.Context, parameter: click.Parameter, incomplete: str
) -> "list[CompletionItem[str]]":  # generic from Click 8.5 on
    """Files ``*.gvt``; where there are none, folders in which there may be some."""
    del context, parameter
    folder, slash, name = incomplete.rpartition("/")
    here = Path(folder + slash)
    names = sorted(one.name for one in here.glob("*.gvt") if one.name.startswith(name))
    found = [CompletionItem(folder + slash + one) for one in names]
    return found or [CompletionItem(incomplete, type="dir")]


def tasks_option(default: str | None, help: str) -> Callable[[Command], Command]:  # noqa: A002 - Click's word
    """Which passes a command is about, if it has a default of its own."""
    return click.option(
        "--task",
        default=default,
        show_default=True,
        metavar="N|N-M|last|slowest|failed|all",
        shell_complete=complete_task,
        help=help,
    )


task_option = tasks_option("last", "Which backward passes.")

limit_option = click.option(
    "--limit",
    type=click.IntRange(min=1),
    metavar="N",
    help="Show no more than the first N rows.",
)

trace_argument = click.argument(
    "trace_path",
    metavar="[TRACE]",
    required=False,
    type=click.Path(path_type=Path),
    shell_complete=complete_trace,
)


def nanoseconds(
    context: click.Context, parameter: click.Parameter, value: str | None
) -> int | None:
    """What a time means that is written with its unit, as views print it: ``1.5ms``.

    Raises:
        click.BadParameter: It is no such time.
    """
    del context, parameter
    if value is None:
        return None
    found = text.nanoseconds(value)
    if found is None:
        raise click.BadParameter(f"{value!r} is no time such as 1.5ms, 20us or 2s")
    return found


def at_option(help: str) -> Callable[[Command], Command]:  # noqa: A002 - Click's word
    """The moment that is meant, ``after_ns``, if one is."""
    return click.option(
        "--at", "after_ns", callback=nanoseconds, metavar="TIME", help=help
    )


def part_options(command: Command) -> Command:
    """The part of the time that is meant, ``begin_ns`` and ``end_ns``."""
    until = click.option(
        "--until",
        "end_ns",
        callback=nanoseconds,
        metavar="TIME",
        help="Not after that time.",
    )
    begin = click.option(
        "--from",
        "begin_ns",
        callback=nanoseconds,
        metavar="TIME",
        help="Not before: so long after the begin, such as 1.5ms.",
    )
    return begin(until(command))


def sort_option(keys: Sequence[str], default: str) -> Callable[[Command], Command]:
    """What rows are sorted by: one of `keys`."""
    return click.option(
        "--sort",
        type=click.Choice(keys),
        default=default,
        show_default=True,
        help="What to sort by: of numbers the largest comes first.",
    )


def filter_option(keys: Sequence[str]) -> Callable[[Command], Command]:
    """Which rows are meant: ``KEY=TEXT``, any number of times, as pairs."""

    def pairs(
        context: click.Context, parameter: click.Parameter, value: Sequence[str]
    ) -> tuple[tuple[str, str], ...]:
        del context, parameter
        found = []
        for one in value:
            key, equals, text = one.partition("=")
            if key not in keys or not equals:
                raise click.BadParameter(
                    f"{one!r} is no KEY=TEXT with one of the keys {', '.join(keys)}"
                )
            found.append((key, text))
        return tuple(found)

    return click.option(
        "--filter",
        "filters",
        multiple=True,
        callback=pairs,
        metavar="KEY=TEXT",
        help=f"Only what has TEXT in its KEY, which is {', '.join(keys[:-1])} or "
        f"{keys[-1]}; with *, ? or [...] that is all of it. Several have to hold.",
    )


def output_option(default: str) -> Callable[[Command], Command]:
    """The file to write; `default` describes what it is called if not named."""
    return click.option(
        "-o",
        "--output",
        type=click.Path(path_type=Path, allow_dash=True),
        metavar="FILE",
        help=f"What to write, - for stdout. [default: {default}]",
    )
