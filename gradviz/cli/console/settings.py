"""Settings in files: what options are where nobody says.

There are two. ``~/.config/gradviz/config.toml`` is the user's. The nearest
``pyproject.toml`` from the current folder upwards is a folder's, by its table
``[tool.gradviz]``, and may have been made by anybody: see Note [Settings of a folder].

The command line wins over the environment, that over the folder's file, that over the
user's, and these over what a command itself takes: `click.Context.default_map` is the
place of both files. A table is looked at when its command is about to run, so that no
other command has to be imported.

Note [Settings of a folder]
~~~~~~~~~~~~~~~~~~~~~~~~~~~
Whoever unpacks an archive and looks at a trace in it has not asked for the archive's
settings. So these may say what is shown, and how, but never

* replace a file, or write one outside of the folder, links followed;
* begin another command or a program, as a viewer or a browser;
* be silent: each setting that takes effect is told, on stderr.

The user may do all that, on the command line, in the environment, in the own file.
"""

import importlib
import os
import re
from collections.abc import Callable, Collection, Mapping, Sequence
from pathlib import Path
from typing import Final, NamedTuple

import click

from gradviz.cli.console.notes import note
from gradviz.errors import UserError

NAME: Final = "pyproject.toml"

#: Options that only the user may set.
_USERS_OWN: Final = frozenset({"force", "quiet", "open", "then", "live"})


class SettingsError(UserError):
    """The file says something that no option can be: wrong usage."""

    exit_code = 2


class Settings(NamedTuple):
    """The settings of a command or of a group of commands.

    Attributes:
        path: The file.
        name: The table in it, such as ``tool.gradviz.show``; empty for all of a file.
        values: Values in the table, by key.
        is_users: True if it is the user's file, and no folder's.
        text: The whole file.
    """

    path: Path
    name: str
    values: Mapping[str, object]
    is_users: bool = False
    text: str = ""

    def full(self, key: str) -> str:
        """A key with the names of the tables that it is in."""
        return f"{self.name}.{key}" if self.name else key

    def wrong(self, key: str, why: str) -> SettingsError:
        """The error that a key is."""
        name = self.full(key)
        line = _line_of(name, self.text)
        where = f"line {line}: " if line else ""
        return SettingsError(f"{self.path}: {where}{name}: {why}")

    def part(self, key: str) -> "Settings":
        """The table within this one, empty if there is none.

        Raises:
            SettingsError: The value there is no table.
        """
        values = self.values.get(key, {})
        if not isinstance(values, dict):
            raise self.wrong(key, f"expected a table of options, got {values!r}")
        return self._replace(name=self.full(key), values=values)


def read_settings(folder: Path, commands: Collection[str]) -> tuple[Settings, ...]:
    """The settings of the user, and those of a folder, which win.

    Args:
        folder: Folder in which the search for ``pyproject.toml`` begins, upwards.
        commands: Commands that there may be tables for.

    Raises:
        SettingsError: A file is no TOML, or has something else than such tables.
    """
    found = tuple(one for one in (_users(), _folders(folder)) if one is not None)
    for table in found:
        for key in table.values:
            if key not in commands:
                raise table.wrong(key, f"no such command ({', '.join(commands)})")
    return found


def _users() -> Settings | None:
    home = os.environ.get("XDG_CONFIG_HOME") or "~/.config"
    path = Path(home).expanduser() / "gradviz" / "config.toml"
    try:
        content = path.read_bytes()
    except (OSError, RuntimeError):  # none, or nobody knows where home is
        return None
    document, text = _parsed(path, content)
    return Settings(path, "", document, True, text)


def _folders(folder: Path) -> Settings | None:
    for path in (one / NAME for one in (folder, *folder.parents)):
        try:
            content = path.read_bytes()
        except (FileNotFoundError, NotADirectoryError):
            continue
        except OSError as error:
            note(f"warning: {path} is ignored: {error.strerror}")
            continue
        try:
            document, text = _parsed(path, content)
        except SettingsError as error:
            if b"gradviz" in content:
                raise
            note(f"warning: {error}; so there are no settings in it")
            return None
        tool = Settings(path, "", document, False, text).part("tool")
        return tool.part("gradviz")
    return None


def _parsed(path: Path, content: bytes) -> tuple[dict[str, object], str]:
    tomllib = importlib.import_module("tomllib")
    try:
        text = content.decode()
        return tomllib.loads(text), text
    except ValueError as error:  # no TOML, or no UTF-8
        raise SettingsError(f"{path}: it is not TOML: {error}") from None


def name_variables(command: click.Command, context: click.Context) -> None:
    """Call the environment variables of a command's options after their long names.

    Click calls them after the parameters of functions, which works, too.

    Args:
        command: Command that has the options.
        context: Of the command.
    """
    for option in command.get_params(context):
        if isinstance(option, click.Option) and not option.is_eager:
            words = [one[2:] for one in option.opts if one.startswith("--")]
            option.envvar = [
                f"{context.auto_envvar_prefix}_{word.replace('-', '_').upper()}"
                for word in words
            ]


def defaults_of(
    command: click.Command,
    tables: Sequence[Settings],
    context: click.Context,
    more: Collection[str],
    args: Sequence[str],
) -> dict[str, object]:
    """Settings for the options of a command, by their parameters' names.

    Args:
        command: Command that has the options.
        tables: Its settings, later ones win; an option is called as on the command
            line, without ``--``.
        context: Of the command.
        more: Other keys that may stand there: the commands of a group.
        args: Arguments of the command line.

    Raises:
        SettingsError: A table names no option of it, or a value that this one cannot
            have, or one that only the user may set.
    """
    options = {
        name.removeprefix("--"): option
        for option in command.get_params(context)
        if isinstance(option, click.Option) and not (option.is_eager or option.hidden)
        for name in option.opts
        if name.startswith("--")
    }
    is_told = not {"-q", "--quiet"}.intersection(args)
    defaults: dict[str, object] = {}
    for table in tables:
        for key, value in table.values.items():
            if key in more:
                continue
            if key not in options:
                known = ", ".join(sorted({*options, *more})) or "none"
                raise table.wrong(key, f"no such option (known are: {known})")
            option = options[key]
            assert option.name is not None
            checked = _checked(option, key, value, table, context)
            if table.is_users:
                defaults[option.name] = checked
                continue
            checked = _harmless(option, key, checked, table)
            defaults[option.name] = (
                _announced(key, checked, table) if is_told else checked
            )
    return defaults


def _harmless(option: click.Option, key: str, value: object, table: Settings) -> object:
    """The value, if a folder may set it; of a path where that is.

    Raises:
        SettingsError: It may not.
    """
    if key in _USERS_OWN:
        raise table.wrong(
            key,
            "a project may not set this: use the command line, the environment or "
            "~/.config/gradviz/config.toml",
        )
    if not isinstance(option.type, click.Path) or value == "-":
        return value
    folder = table.path.parent.resolve()
    path = (folder / str(value)).resolve()
    if folder not in path.parents:
        raise table.wrong(key, f"{str(value)!r} is not inside {folder}")
    return value


def _announced(key: str, value: object, table: Settings) -> Callable[[], object]:
    """The value for Click, which asks for it where nobody else says anything."""
    told: list[bool] = []

    def take() -> object:
        if not told:
            told.append(True)
            note(f"{table.path} sets --{key} to {value!r}")
        return value

    return take


def _line_of(name: str, text: str) -> int:
    """The line of a file where a key is given a value, or its table begins; 0: unknown.

    As far as that can be seen: the parser of Python keeps no lines.
    """
    *tables, key = name.split(".")
    inside: list[str] = []
    for number, line in enumerate(text.splitlines(), start=1):
        if header := re.match(r"\s*\[+([^\]]*)\]", line):
            inside = _names(header[1])
            if inside == [*tables, key]:
                return number
        elif assigned := re.match(r"([^=#]+)=", line):
            names = [*inside, *_names(assigned[1])]
            if names == [*tables, key]:
                return number
    return 0


def _names(dotted: str) -> list[str]:
    return [one.strip().strip("\"'") for one in dotted.split(".")]


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
