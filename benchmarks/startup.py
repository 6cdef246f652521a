"""How long a person waits for each command on a small trace, from start to end.

Each command runs its own example, as the help has it. Processes are started anew, with
compiled bytecode; what of it is Python's own start, and NumPy's import, stands beside.
"""

import os
import shlex
import subprocess
import sys
import time
from collections.abc import Iterator, Mapping
from pathlib import Path

import click

import gradviz
from benchmarks.timing import Contestant
from gradviz.cli.main import gradviz as root

#: Milliseconds that the help may take, and any command.
HELP_MS = 150
COMMAND_MS = 400

#: What a start is compared with.
BARE = "python -c pass"

#: What is no command: Python, NumPy, and the program that ``gradviz run`` runs.
OTHERS = (BARE, "import numpy", "python train.py")

#: Examples ask about its Tanh.
_PROGRAM = """
import gradviz as gv

model = gv.nn.Sequential(gv.nn.Linear(3, 4), gv.nn.Tanh(), gv.nn.Linear(4, 1))
for _ in range(3):
    model(gv.ones(2, 3)).sum().backward()
"""


def startups(folder: Path, *, own_time: bool) -> dict[str, Contestant]:
    """What starts Python, or gradviz with one of its commands, by name.

    Args:
        folder: An empty one, for the traces and what is made of them.
        own_time: Count processor time.
    """
    (folder / "train.py").write_text(_PROGRAM)
    for name in ("first", "second"):
        with gradviz.record(folder / f"{name}.gvt"):
            exec(_PROGRAM, {})
    others = (["-c", "pass"], ["-c", "import numpy"], ["train.py"])
    lines = {
        **dict(zip(OTHERS, others, strict=True)),
        "gradviz --help": ["-m", "gradviz", "--help"],
    }
    for name, example in _examples(root):
        lines[name] = ["-m", "gradviz", *shlex.split(example)[1:]]
    return {
        name: _Started(words, folder, own_time=own_time)
        for name, words in lines.items()
    }


class _Started:
    """Starts a process in a folder; returns the seconds it takes."""

    def __init__(self, words: list[str], folder: Path, *, own_time: bool) -> None:
        self._words = [sys.executable, *words]
        self._folder = folder
        self._own_time = own_time

    def __call__(self) -> float:
        kept = {*self._folder.iterdir()}
        began = time.perf_counter()
        child = subprocess.Popen(
            self._words,
            cwd=self._folder,
            env=_surroundings(self._folder),
            stdin=subprocess.DEVNULL,
            stdout=subprocess.DEVNULL,
            stderr=subprocess.PIPE,
        )
        assert child.stderr is not None
        said = child.stderr.read().decode()
        _, status, usage = os.wait4(child.pid, 0)
        took = time.perf_counter() - began
        child.returncode = os.waitstatus_to_exitcode(status)
        # diff exits with 1 where there is a difference.
        assert child.returncode in {0, 1}, f"{self._words}: {said}"
        for new in {*self._folder.iterdir()} - kept:
            if new.is_file():
                new.unlink()
        return usage.ru_utime + usage.ru_stime if self._own_time else took


def _examples(group: click.Group, *names: str) -> Iterator[tuple[str, str]]:
    """The commands, and the line that their helps have as an example."""
    for name in group.list_commands(click.Context(group)):
        command = group.get_command(click.Context(group), name)
        assert command is not None
        assert command.help is not None
        if isinstance(command, click.Group):
            yield from _examples(command, *names, name)
        else:
            example = command.help.partition("Example:\n")[2].strip()
            yield " ".join((*names, name)), example.splitlines()[0]


def _surroundings(folder: Path) -> Mapping[str, str]:
    """This environment, but bytecode is written, and kept beside the traces."""
    kept = {
        **os.environ,
        "PYTHONPYCACHEPREFIX": str(folder / "bytecode"),
        "GRADVIZ_RUN_FORCE": "1",  # of a trace that other examples want
    }
    kept.pop("PYTHONDONTWRITEBYTECODE", None)
    return kept
