"""A Click group whose commands are imported when they are asked for."""

import difflib
import importlib
from collections.abc import Mapping
from typing import ClassVar, NamedTuple

import click


class Entry(NamedTuple):
    """Where a command is, and its line in the help of its group.

    Attributes:
        module: The module that holds it, under the name ``command``.
        summary: One sentence.
    """

    module: str
    summary: str


class LazyGroup(click.Group):
    """Lists its commands without importing them, so that ``--help`` answers at once.

    A command's module may then import what it needs at its top. A subclass says which
    commands there are.

    Attributes:
        entries: Name -> where the command is, in the order of the help.
    """

    entries: ClassVar[Mapping[str, Entry]] = {}

    def list_commands(self, ctx: click.Context) -> list[str]:
        """The names, in the order in which they are of use."""
        del ctx
        return list(self.entries)

    def get_command(self, ctx: click.Context, cmd_name: str) -> click.Command | None:
        """Import a command; None if there is none of this name."""
        del ctx
        if (entry := self.entries.get(cmd_name)) is None:
            return None
        command = importlib.import_module(entry.module).command
        assert isinstance(command, click.Command), entry.module
        return command

    def resolve_command(
        self, ctx: click.Context, args: list[str]
    ) -> tuple[str | None, click.Command | None, list[str]]:
        """Find the command that `args` begin with, or say what may have been meant."""
        try:
            return super().resolve_command(ctx, args)
        except click.UsageError as error:
            meant = difflib.get_close_matches(args[0], self.entries)
            if not meant or args[0].startswith("-"):
                raise
            told = " or ".join(repr(name) for name in meant)
            message = f"{error.message.rstrip('.')}. Did you mean {told}?"
            raise click.UsageError(message, ctx) from None

    def format_commands(
        self, ctx: click.Context, formatter: click.HelpFormatter
    ) -> None:
        """Write the list of commands from the entries alone."""
        del ctx
        with formatter.section("Commands"):
            formatter.write_dl(
                [(name, entry.summary) for name, entry in self.entries.items()]
            )
