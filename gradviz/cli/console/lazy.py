"""A Click group whose commands are imported when they are asked for."""

import difflib
import importlib
import inspect
from collections.abc import Mapping
from pathlib import Path
from typing import ClassVar, Final, NamedTuple

import click
from click.shell_completion import CompletionItem

from gradviz.cli.console.settings import (
    Settings,
    defaults_of,
    name_variables,
    read_settings,
)

#: Key of a context's settings of its command.
_SETTINGS: Final = "gradviz.settings"


class Entry(NamedTuple):
    """Place of a command, and its line in the help of its group.

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
        former: Former name -> name, of commands that were renamed.
    """

    entries: ClassVar[Mapping[str, Entry]] = {}
    former: ClassVar[Mapping[str, str]] = {}

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
        if command.help:  # "\b" keeps Click from joining the lines of a paragraph
            text = inspect.cleandoc(command.help)
            command.help = text.replace("\n\nExample:", "\n\n\b\nExample:")
        return command

    def resolve_command(
        self, ctx: click.Context, args: list[str]
    ) -> tuple[str | None, click.Command | None, list[str]]:
        """Find the command that `args` begin with, or say what may have been meant."""
        args = [self.former.get(args[0], args[0]), *args[1:]]
        try:
            name, command, rest = super().resolve_command(ctx, args)
        except click.UsageError as error:
            meant = difflib.get_close_matches(args[0], self.entries)
            if not meant or args[0].startswith("-"):
                raise
            told = " or ".join(repr(name) for name in meant)
            message = f"{error.message.rstrip('.')}. Did you mean {told}?"
            raise click.UsageError(message, ctx) from None
        if name is not None and command is not None and not ctx.resilient_parsing:
            self._settle(ctx, name, command, rest)
        return name, command, rest

    def _settle(
        self, ctx: click.Context, name: str, command: click.Command, args: list[str]
    ) -> None:
        """Let options of a command be what variables, and files of settings, say."""
        if ctx.parent is None:
            ctx.meta[_SETTINGS] = read_settings(Path.cwd(), self.entries)
        tables: tuple[Settings, ...] = ctx.meta[_SETTINGS]
        ctx.meta[_SETTINGS] = parts = tuple(table.part(name) for table in tables)
        of_command = click.Context(command, parent=ctx, info_name=name)
        name_variables(command, of_command)
        more = command.entries if isinstance(command, LazyGroup) else ()
        ctx.default_map = {name: defaults_of(command, parts, of_command, more, args)}

    def shell_complete(
        self, ctx: click.Context, incomplete: str
    ) -> "list[CompletionItem[str]]":  # generic from Click 8.5 on
        """Return completions: commands, from the entries alone, or options."""
        if incomplete.startswith("-"):
            return click.Command.shell_complete(self, ctx, incomplete)
        return [
            CompletionItem(name, help=entry.summary)
            for name, entry in self.entries.items()
            if name.startswith(incomplete)
        ]

    def format_commands(
        self, ctx: click.Context, formatter: click.HelpFormatter
    ) -> None:
        """Write the list of commands from the entries alone."""
        del ctx
        with formatter.section("Commands"):
            formatter.write_dl(
                [(name, entry.summary) for name, entry in self.entries.items()]
            )
