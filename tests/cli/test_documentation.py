"""docs/cli.md, the pages of its commands and the help say the same."""

import re
from collections.abc import Iterator
from pathlib import Path

import click
import pytest

from gradviz.cli.main import gradviz

DOCS = Path(__file__).parents[2] / "docs"

PAGE = (DOCS / "cli.md").read_text()

#: An option, as text names it.
NAMED = re.compile(r"`(--?[a-z][\w-]*)")

#: A row of a table of options: its first cell.
ROW = re.compile(r"^\| (`-.*?[^\\]) \|", re.MULTILINE)

#: The former name of an option, on docs/cli.md alone, and a second one that is not in
#: the help.
FORMER, SECOND = {"--task"}, {"--to"}


def commands(group: click.Group, *names: str) -> Iterator[tuple[str, click.Command]]:
    for name in group.list_commands(click.Context(group)):
        command = group.get_command(click.Context(group), name)
        assert command is not None
        yield " ".join((*names, name)), command
        if isinstance(command, click.Group):
            yield from commands(command, *names, name)


COMMANDS = dict(commands(gradviz))


def sections() -> dict[str, str]:
    """By command, the section about it; that of a group is without its commands."""
    found = {}
    for page in sorted(DOCS.glob("cli-*.md")):
        # A third level that is no command, such as "Advice", belongs to the one above.
        parts = re.split(
            r"^##(?: |# (?=gradviz ))", page.read_text(), flags=re.MULTILINE
        )
        for part in parts[1:]:
            heading, text = part.split("\n", 1)
            found[heading.removeprefix("gradviz ")] = text
    return found


SECTIONS = sections()


def names_of(*names: str) -> set[str]:
    """The options of commands, by all that they are called but their former names."""
    return {
        option
        for name in names
        for one in COMMANDS[name].params
        if isinstance(one, click.Option) and not one.hidden
        for option in (*one.opts, *one.secondary_opts)
    } - FORMER


@pytest.mark.parametrize("name", COMMANDS)
def test_the_section_of_a_command_has_its_options(name: str) -> None:
    group = name.rpartition(" ")[0]  # it has what its commands have in common
    named = NAMED.findall(SECTIONS[name] + SECTIONS.get(group, ""))

    assert names_of(name) - {*named} == set()


@pytest.mark.parametrize("name", COMMANDS)
def test_the_tables_of_a_section_have_no_option_of_another_command(name: str) -> None:
    cells = ROW.findall(SECTIONS[name])
    members = [one for one in COMMANDS if f"{one} ".startswith(f"{name} ")]

    assert {*NAMED.findall(" ".join(cells))} - names_of(*members) <= SECOND


def test_the_former_name_of_an_option_is_on_the_page() -> None:
    assert {*NAMED.findall(PAGE)} >= FORMER


@pytest.mark.parametrize("name", COMMANDS)
def test_the_page_begins_with_every_command(name: str) -> None:
    synopsis = PAGE.split("```")[1].replace("\n  ", " ")
    *group, command = name.split()

    lines = [
        one for one in synopsis.splitlines() if {"gradviz", *group} <= {*one.split()}
    ]
    assert any(command in re.split(r"[ |]", line) for line in lines)


@pytest.mark.parametrize("name", COMMANDS)
def test_every_option_says_what_it_does(name: str) -> None:
    assert COMMANDS[name].help
    for parameter in COMMANDS[name].params:
        if isinstance(parameter, click.Option) and not parameter.hidden:
            assert parameter.help


def options() -> dict[str, dict[str, click.Option]]:
    """By their names, the options of the commands that have them."""
    found: dict[str, dict[str, click.Option]] = {}
    for name, command in COMMANDS.items():
        for parameter in command.params:
            if isinstance(parameter, click.Option):
                for option in parameter.opts:
                    found.setdefault(option, {})[name] = parameter
    return found


@pytest.mark.parametrize(("name", "by_command"), options().items())
def test_an_option_means_the_same_in_every_command(name, by_command) -> None:
    forms = {
        (
            *(option for option in one.opts if option[1] != "-"),  # its letter
            one.is_flag,
            one.multiple,
            None if isinstance(one.type, click.Choice) else one.metavar,
        )
        for one in by_command.values()
    }

    assert len(forms) == 1, by_command


@pytest.mark.parametrize("name", COMMANDS)
def test_commands_complete_their_traces_and_those_that_show_data_have_json(
    name,
) -> None:
    command = COMMANDS[name]
    metavars = {one.metavar or "" for one in command.params}
    arguments = [one for one in command.params if isinstance(one, click.Argument)]
    if any("TRACE" in metavar for metavar in metavars):
        assert all(one._custom_shell_complete for one in arguments)
    if name.startswith(("show ", "explain", "check", "diff", "simulate", "doctor")):
        assert any("--json" in one.opts for one in command.params)
