"""The program of ``gradviz run``: a script, module, string or Python command.

A command runs in this process, as a script does, for only this process is recorded. So
it has to be this Python, or a script of its environment, such as ``pytest``.
"""

import os
import re
import shutil
import sys
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Final, NamedTuple, TypeAlias

from gradviz.cli.run.program import (
    Program,
    ProgramNotFoundError,
    load_module,
    load_script,
    load_string,
)

Loader: TypeAlias = Callable[[str, Sequence[str]], Program]

_LONGEST_LABEL: Final = 100

#: Names of interpreters, and those that say no version.
_PYTHON: Final = re.compile(r"(?:python|pypy)(\d+(?:\.\d+)?)?t?(?:\.exe)?")

#: Options of Python with a value, and those after which the program follows.
_WITH_VALUE: Final = "WX"
_PROGRAMS: Final = "cm"

#: Commands and modules that start a program's processes and run no pass themselves.
_LAUNCHERS: Final = frozenset(
    {
        "torchrun",
        "torch.distributed.run",
        "torch.distributed.launch",
        "accelerate",
        "accelerate.commands.launch",
        "accelerate.commands.accelerate_cli",
        "deepspeed",
        "deepspeed.launcher.launch",
        "deepspeed.launcher.runner",
    }
)


class Target(NamedTuple):
    """A program to run.

    Attributes:
        load: Loads it.
        name: Its name: a path, a module, or Python code.
        args: Its arguments.
        label: Name for its trace.
        flags: Options of Python, which only a new process can have.
        note: Note for the user, empty if there is none.
    """

    load: Loader
    name: str
    args: tuple[str, ...]
    label: str
    flags: tuple[str, ...] = ()
    note: str = ""

    @property
    def is_launcher(self) -> bool:
        """True for ``torchrun`` and the like, whose children are the program."""
        if self.load is load_string:
            return False
        is_module = self.load is load_module
        name = self.name if is_module else Path(self.name).name
        return name.removesuffix(".__main__") in _LAUNCHERS

    def words(self) -> tuple[str, ...]:
        """The same, as ``gradviz run`` is told."""
        words = (self.name, *self.args)
        if self.load is load_module:
            return ("-m", *words)
        return ("-c", *words) if self.load is load_string else words

    def program(self) -> Program:
        """Load it; see `program.run`."""
        return self.load(self.name, self.args)


def target_of(
    word: str, args: Sequence[str], *, module: bool = False, string: bool = False
) -> Target:
    """Find out what a user means.

    Args:
        word: A path, a module or Python code, or the name of a command.
        args: Arguments that follow it.
        module: It is a module.
        string: It is Python code.

    Raises:
        ProgramNotFoundError: It is a command that cannot run in this process.
    """
    if module:
        return Target(load_module, word, tuple(args), _slug(word))
    if string:
        return Target(load_string, word, tuple(args), "string")
    if _PYTHON.fullmatch(Path(word).name):
        return _of_python(word, args)
    if os.sep not in word and not Path(word).is_file():
        word = _path_of_command(word) or word
    return Target(load_script, word, tuple(args), _slug(Path(word).stem))


def _of_python(word: str, args: Sequence[str]) -> Target:
    """Return the program that ``python ARGS...`` runs."""
    note = _checked(word)
    flags, rest = [], list(args)
    while rest and re.match("-[^-]", rest[0]):
        option = rest.pop(0)
        found = re.search(f"[{_WITH_VALUE}{_PROGRAMS}]", option[1:])
        if found is None:
            flags.append(option)
            continue
        letter, value = found[0], option[found.end() + 1 :]
        if not value:
            value = rest.pop(0) if rest else ""
        if before := option[1 : found.start() + 1]:
            flags.append(f"-{before}")
        if letter in _PROGRAMS:
            is_module = letter == "m"
            made = target_of(value, rest, module=is_module, string=not is_module)
            return made._replace(flags=tuple(flags), note=note)
        flags += f"-{letter}", value
    if not rest or rest[0] == "-":
        raise ProgramNotFoundError(
            f"{word} is given no program: expected a script, -m MODULE or -c CODE"
        )
    label = _slug(Path(rest[0]).stem)
    return Target(load_script, rest[0], tuple(rest[1:]), label, tuple(flags), note)


def _checked(word: str) -> str:
    """Return a note on the Python that a user names.

    Raises:
        ProgramNotFoundError: It is another one, and the user wants that.
    """
    found = shutil.which(word)
    if found is not None and _environment(found) == _environment(sys.executable):
        return ""
    version = _PYTHON.fullmatch(Path(word).name)
    is_any = os.sep not in word and (
        version is None or version[1] in {None, str(sys.version_info.major)}
    )
    if is_any:
        other = "" if found is None else f", not with {found}"
        return f"the program runs with gradviz's Python, {sys.executable}{other}"
    raise ProgramNotFoundError(
        f"{word} is not the Python that gradviz is installed for, {sys.executable}; "
        f"leave it out to run the program with that one, or install gradviz there and "
        f"use '{word} -m gradviz run'"
    )


def _environment(python: str) -> str:
    """Return the identity of an interpreter: its environment, or itself."""
    folder = Path(python).absolute().parent.parent
    if (folder / "pyvenv.cfg").is_file():
        return os.path.realpath(folder)
    return os.path.realpath(python)


def _path_of_command(name: str) -> str | None:
    """The script that a command is in the environment of this Python; None for none.

    Raises:
        ProgramNotFoundError: There is a command, but not of this Python.
    """
    own = shutil.which(name, path=str(Path(sys.executable).parent))
    found = own or shutil.which(name)
    if found is None:
        return None
    interpreter = _interpreter_of(found)
    if interpreter is None:
        raise ProgramNotFoundError(
            f"{name} is {found}, which is no Python program; only Python programs are "
            f"recorded: name the one that {name} starts"
        )
    if own is None and _environment(interpreter) != _environment(sys.executable):
        raise ProgramNotFoundError(
            f"{name} is {found}, of another Python than gradviz, {sys.executable}; "
            f"install it for that one, or name its module: -m {name}"
        )
    return found


def _interpreter_of(path: str) -> str | None:
    """The Python that a script says it is for; None if it is not a Python script."""
    with Path(path).open("rb") as file:
        head = file.read(1_000).decode(errors="replace")
    # Where the path of Python is too long for the first line, a shell finds it.
    found = re.match(r"#!(?:/bin/sh\s+'''exec' \"?)?\s*(.*?)(?:\"|\n)", head, re.DOTALL)
    words = found[1].split() if found else []
    if words and Path(words[0]).name == "env":
        words = [one for one in words[1:] if one[0] != "-"]
    if not words or not _PYTHON.fullmatch(Path(words[0]).name):
        return None
    return shutil.which(words[0]) or words[0]


def _slug(name: str) -> str:
    return re.sub(r"[^\w.-]+", "_", name)[:_LONGEST_LABEL]
