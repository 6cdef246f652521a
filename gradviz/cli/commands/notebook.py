"""``%%gradviz`` in IPython and Jupyter: a cell is recorded, and what it did is shown.

The line of the magic is a command line of gradviz, which means the cell's recording.
"""

import contextlib
import importlib
import shlex
import tempfile
from collections.abc import Callable
from pathlib import Path
from typing import Any, Final, Protocol

import click

from gradviz.capture.session import Recording, record
from gradviz.cli.console.notes import note
from gradviz.cli.console.options import force_option, task_option
from gradviz.cli.main import gradviz
from gradviz.drawing.page import HEIGHT, HEIGHTS
from gradviz.errors import UserError

#: Command whose output is shown where nothing is asked for.
_USUAL: Final = ("show", "order")


class Shell(Protocol):
    """The part of IPython's shell that is needed."""

    def register_magic_function(
        self, func: Callable[..., object], magic_kind: str, magic_name: str
    ) -> None:
        """Let cells begin with ``%%name``."""

    def run_cell(self, raw_cell: str) -> object:
        """Run a cell, and show what it raises."""


def register(shell: Shell) -> None:
    """Let cells of a shell begin with ``%%gradviz``."""

    def magic(line: str, cell: str) -> None:
        try:
            _magic.main(shlex.split(line), standalone_mode=False, obj=(shell, cell))
        except click.ClickException as error:
            note(error.format_message())
        except (UserError, ValueError) as error:  # quotes that nothing closes
            note(str(error))

    shell.register_magic_function(magic, "cell", "gradviz")


@click.command("%%gradviz", context_settings={"allow_interspersed_args": False})
@click.option("-o", "--output", type=click.Path(path_type=Path), metavar="FILE")
@force_option
@click.argument("words", metavar="[COMMAND]...", nargs=-1, type=click.UNPROCESSED)
@click.pass_obj
def _magic(
    shell_and_cell: tuple[Shell, str],
    output: Path | None,
    force: bool,
    words: tuple[str, ...],
) -> None:
    """Record the cell, and run a command of gradviz on the recording.

    The recording is kept if -o says where. Without a command the order is shown.
    """
    shell, cell = shell_and_cell
    with tempfile.TemporaryDirectory() as folder:
        path = output or Path(folder, "cell.gvt")
        with record(path, force=force, source="torch if imported") as recording:
            shell.run_cell(cell)
        if recording.problem:
            note(recording.problem)
        if not recording.counts.tasks:
            note("the cell ran no backward pass")
            return
        if words[:1] == ("page",):
            _page.main([*words[1:]], standalone_mode=False, obj=recording)
        else:
            _show(words or _USUAL, path, Path(folder))


@click.command("%%gradviz page")
@task_option
@click.option("--height", type=click.IntRange(*HEIGHTS), default=HEIGHT)
@click.option("--embed", is_flag=True)
@click.pass_obj
def _page(recording: Recording, task: str, height: int, *, embed: bool) -> None:
    """Show the interactive page of a recording below the cell."""
    display: Any = importlib.import_module("IPython.display")
    display.display(recording.page(task, height=height, embed=embed))


def _show(words: tuple[str, ...], trace: Path, folder: Path) -> None:
    """Run a command; a picture that it draws appears below the cell."""
    picture = folder / "picture.svg"
    is_picture = words[0] == "render" and not {"-o", "--output"} & {*words}
    if is_picture:
        words = (*words, "-q", "-o", str(picture))
    with contextlib.suppress(SystemExit):  # what went wrong has been said
        gradviz.main(words, obj=trace)
    if is_picture and picture.exists():
        display: Any = importlib.import_module("IPython.display")
        drawn = {
            "image/svg+xml": display.SVG(filename=str(picture)).data,
            # Shown by Jupyter for a notebook that it does not trust.
            "text/plain": "A picture: Jupyter shows it if the notebook is trusted",
        }
        display.display(drawn, raw=True)
