"""docs/cli.md and the help say the same."""

from collections.abc import Iterator
from pathlib import Path

import click
import pytest

from gradviz.cli.main import gradviz

PAGE = (Path(__file__).parents[2] / "docs" / "cli.md").read_text()


def commands(group: click.Group, *names: str) -> Iterator[tuple[str, click.Command]]:
    for name in group.list_commands(click.Context(group)):
        command = group.get_command(click.Context(group), name)
        assert command is not None
        yield " ".join((*names, name)), command
        if isinstance(command, click.Group):
            yield from commands(command, *names, name)


COMMANDS = dict(commands(gradviz))


@pytest.mark.parametrize("name", COMMANDS)
def test_every_command_and_option_is_on_the_page(name: str) -> None:
    assert name in PAGE
    for parameter in COMMANDS[name].params:
        if isinstance(parameter, click.Option) and not parameter.hidden:
            assert any(f"`{option}" in PAGE for option in parameter.opts)
            assert parameter.opts[-1] in PAGE


@pytest.mark.parametrize("name", COMMANDS)
def test_every_option_says_what_it_does(name: str) -> None:
    assert COMMANDS[name].help
    for parameter in COMMANDS[name].params:
        if isinstance(parameter, click.Option) and not parameter.hidden:
            assert parameter.help
