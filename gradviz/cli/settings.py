"""``[tool.gradviz]`` in ``pyproject.toml``: what options are where nobody says.

The command line wins over the environment, that over the file, and the file over what a
command itself takes: `click.Context.default_map` is that third place. A table is looked
at when its command is about to run, so that no other command has to be imported.
"""

import importlib
from collections.abc import Collection, Mapping
from pathlib import Path
from typing import Final, NamedTuple

import click

from gradviz.errors import UserError

NAME: Final = "pyproject.toml"


class SettingsError(UserError):
    """The file says something that no option can be: wrong usage."""

    exit_code = 2


class Settings(NamedTuple):
    """The settings of a command or of a group of commands.

    Attributes:
        path: The file.
        name: The table in it, such as ``tool.gradviz.show``.
        values: What it says.
    """

    path: Path
    name: str
    values: Mapping[str, object]

    def wrong(self, key: str, why: str) -> SettingsError:
        """The error that a key is."""
        return SettingsError(f"{self.path}: {self.name}.{key}: {why}")

    def part(self, key: str) -> "Settings":
        """The table within this one, empty if there is none.

        Raises:
            SettingsError: What stands there is no table.
        """
        values = self.values.get(key, {})
        if not isinstance(values, dict):
            raise self.wrong(key, f"expected a table of options, got {values!r}")
        return Settings(self.path, f"{self.name}.{key}", values)


def read_settings(folder: Path, commands: Collection[str]) -> Settings | None:
    """The table of the nearest ``pyproject.toml`` from `folder` upwards.

    A file in which gradviz is not named costs no more than reading it.

    Args:
        folder: Where to begin.
        commands: For what the table may hold tables.

    Raises:
        SettingsError: It is no TOML, or ``tool.gradviz`` is no table of those.
    """
    for path in (one / NAME for one in (folder, *folder.parents)):
        try:
            content = path.read_bytes()
        except OSError:
            continue
        if b"gradviz" not in content:
            return None
        tomllib = importlib.import_module("tomllib")
        try:
            document = tomllib.loads(content.decode())
        except ValueError as error:  # no TOML, or no UTF-8
            raise SettingsError(f"{path}: it is no TOML: {error}") from None
        tool = document.get("tool", {})
        known = {"gradviz": tool.get("gradviz", {})} if isinstance(tool, dict) else {}
        table = Settings(path, "tool", known).part("gradviz")
        for key in table.values:
            if key not in commands:
                raise table.wrong(key, f"no such command ({', '.join(commands)})")
        return table
    return None


def defaults_of(
    command: click.Command,
    table: Settings,
    context: click.Context,
    more: Collection[str],
) -> dict[str, object]:
    """What a table says of the options of a command, by their parameters' names.

    Args:
        command: Whose.
        table: Its settings; an option is called as on the command line, without ``--``.
        context: Of the command.
        more: What else may stand there: the commands of a group.

    Raises:
        SettingsError: It names no option of it, or a value that this one cannot have.
    """
    options = {
        name.removeprefix("--"): option
        for option in command.get_params(context)
        if isinstance(option, click.Option) and not (option.is_eager or option.hidden)
        for name in option.opts
        if name.startswith("--")
    }
    defaults = {}
    for key, value in table.values.items():
        if key in more:
            continue
        if key not in options:
            known = ", ".join(sorted({*options, *more})) or "none"
            raise table.wrong(key, f"no such option (known are: {known})")
        option = options[key]
        assert option.name is not None
        defaults[option.name] = _checked(option, key, value, table, context)
    return defaults


def _checked(
    option: click.Option,
    key: str,
    value: object,
    table: Settings,
    context: click.Context,
) -> object:
    """The value, which Click converts when it is needed; tried here for its place."""
    expected = "true or false" if option.is_flag else "a text or a number"
    if option.multiple:
        expected = "a list of texts"
        fits = isinstance(value, list) and all(isinstance(one, str) for one in value)
    elif option.is_flag:
        fits = isinstance(value, bool)
    else:
        fits = isinstance(value, str | int | float) and not isinstance(value, bool)
    if not fits:
        raise table.wrong(key, f"expected {expected}, got {value!r}")
    try:
        option.process_value(context, value)
    except click.BadParameter as error:
        raise table.wrong(key, error.message.rstrip(".")) from None
    return value
