"""Options and arguments that several commands share."""

import functools
import sys
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from types import MappingProxyType
from typing import TypeVar

import click
from click.shell_completion import CompletionItem

from gradviz.render.words import text

Command = TypeVar("Command", bound=Callable[..., object])


def recorded_output_option(program: str) -> Callable[[Command], Command]:
    """Return the option that names the trace of a command which records.

    Args:
        program: The name of a program in that of the default, for the help text.
    """
    return click.option(
        "-o",
        "--output",
        type=click.Path(path_type=Path),
        metavar="FILE",
        help=f"The trace to write. [default: gradviz-{program}.<pid>.gvt here]",
    )


force_option = click.option(
    "-f", "--force", is_flag=True, help="Replace the output if it exists."
)

quiet_option = click.option(
    "-q", "--quiet", is_flag=True, help="Print only errors and warnings."
)

open_option = click.option(
    "--open",
    "is_opened",
    is_flag=True,
    help="Open it in the desktop's viewer.",
)


def json_option(command: Callable[..., object]) -> Callable[..., object]:
    """``--json``; what a person reads instead goes through a pager where it is long.

    A command that follows something that grows, ``--follow``, is shown as it comes.
    """

    @functools.wraps(command)
    def in_pager(*, no_pager: bool, **given: object) -> object:
        wanted = not (no_pager or given["as_json"] or given.get("is_followed"))
        if not (wanted and sys.stdout.isatty()):
            return command(**given)
        # Loaded where it is asked for.
        from gradviz.cli.console.paging import paged  # noqa: PLC0415

        with paged(wanted=True):
            return command(**given)

    pager = click.option(
        "--no-pager",
        is_flag=True,
        help="Do not page long output.",
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
    """Return an option that selects passes, with a default of its own."""
    return click.option(
        "--pass",
        "--task",  # its former name
        "task",
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
    help="Show at most the first N rows.",
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
    """Parse a time with its unit, as views print it: ``1.5ms``.

    Raises:
        click.BadParameter: The text is no such time.
    """
    del context, parameter
    if value is None:
        return None
    found = text.nanoseconds(value)
    if found is None:
        raise click.BadParameter(f"{value!r} is not a time such as 1.5ms, 20us or 2s")
    return found


def at_option(help: str) -> Callable[[Command], Command]:  # noqa: A002 - Click's word
    """The moment that is meant, ``after_ns``, if one is."""
    return click.option(
        "--at", "after_ns", callback=nanoseconds, metavar="TIME", help=help
    )


def subject_options(command: Command) -> Command:
    """Add ``--of`` and ``--kind`` to a command: the events that it is about."""
    of = click.option(
        "--of",
        "of",
        metavar="WHAT",
        help=(
            "Only of one thing: node Mul:3, queue 0, thread 2, pass 5, stream sim:0/1."
        ),
    )
    kind = click.option(
        "--kind",
        "kinds",
        metavar="KIND",
        multiple=True,
        help="Only of this kind, such as task_popped, or task_*; may be given again.",
    )
    return of(kind(command))


def part_options(command: Command) -> Command:
    """The part of the time that is meant, ``begin_ns`` and ``end_ns``."""
    until = click.option(
        "--until",
        "end_ns",
        callback=nanoseconds,
        metavar="TIME",
        help="Only up to this time.",
    )
    begin = click.option(
        "--from",
        "begin_ns",
        callback=nanoseconds,
        metavar="TIME",
        help="Only from this time on, counted from the start, such as 1.5ms.",
    )
    return begin(until(command))


class Keys(click.Choice[str]):
    """A choice of keys, some of which had other names.

    Args:
        keys: The keys.
        former: Their former names.
    """

    def __init__(self, keys: Sequence[str], former: Mapping[str, str]) -> None:
        super().__init__(keys)
        self._former = former

    def convert(
        self,
        value: str,
        param: click.Parameter | None,
        ctx: click.Context | None,
    ) -> str:
        """Return the key of that name, present or former."""
        return super().convert(self._former.get(value, value), param, ctx)


def sort_option(
    keys: Sequence[str],
    default: str,
    former: Mapping[str, str] = MappingProxyType({}),
) -> Callable[[Command], Command]:
    """Return the option that sorts rows by one of `keys`.

    Args:
        keys: The keys, named as the columns of the table.
        default: One of them.
        former: Former names of keys, which still work.
    """
    return click.option(
        "--sort",
        type=Keys(keys, former),
        default=default,
        show_default=True,
        help="Sort by this column; durations and counts start at the largest.",
    )


def filter_option(
    keys: Sequence[str], former: Mapping[str, str] = MappingProxyType({})
) -> Callable[[Command], Command]:
    """Return an option for filters ``KEY=TEXT``, any number of times, as pairs.

    Args:
        keys: The keys, named as the columns of the table.
        former: Former names of keys, which still work.
    """

    def pairs(
        context: click.Context, parameter: click.Parameter, value: Sequence[str]
    ) -> tuple[tuple[str, str], ...]:
        del context, parameter
        found = []
        for one in value:
            key, equals, text = one.partition("=")
            key = former.get(key, key)
            if key not in keys or not equals:
                raise click.BadParameter(
                    f"{one!r} is not KEY=TEXT with one of the keys {', '.join(keys)}"
                )
            found.append((key, text))
        return tuple(found)

    return click.option(
        "--filter",
        "filters",
        multiple=True,
        callback=pairs,
        metavar="KEY=TEXT",
        help=f"Only rows whose column KEY contains TEXT: {', '.join(keys[:-1])} or "
        f"{keys[-1]}. With *, ? or [...], TEXT must match the whole cell. Several "
        "filters must all match.",
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
