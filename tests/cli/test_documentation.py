"""docs/cli.md, the pages of its commands and the help say the same."""

import re
from collections.abc import Iterator
from pathlib import Path

import click
import pytest

from gradviz.cli.main import gradviz

DOCS = Path(__file__).parents[2] / "docs"

PAGE = (DOCS / "cli.md").read_text()

#: That page, and those of the commands.
PAGES = "\n".join(page.read_text() for page in sorted(DOCS.glob("cli*.md")))


def commands(group: click.Group, *names: str) -> Iterator[tuple[str, click.Command]]:
    for name in group.list_commands(click.Context(group)):
        command = group.get_command(click.Context(group), name)
        assert command is not None
        yield " ".join((*names, name)), command
        if isinstance(command, click.Group):
            yield from commands(command, *names, name)


COMMANDS = dict(commands(gradviz))


@pytest.mark.parametrize("name", COMMANDS)
def test_every_command_and_option_is_on_a_page(name: str) -> None:
    assert name in PAGES
    for parameter in COMMANDS[name].params:
        if isinstance(parameter, click.Option) and not parameter.hidden:
            assert any(f"`{option}" in PAGES for option in parameter.opts)
            assert parameter.opts[-1] in PAGES


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
