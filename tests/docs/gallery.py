"""docs/gallery.md: its pictures are those that its commands draw.

    python -m tests.docs.gallery            draws all pictures anew
    python -m tests.docs.gallery --record   records the traces anew first

A block of ``console`` is commands. ``gradviz run`` records an example; its trace lies
in docs/gallery, so that pictures do not change with the speed of a machine. All other
commands are run over that trace, and write a picture beside it or print to the page.
"""

import contextlib
import re
import shlex
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from pathlib import Path
from typing import Final, NamedTuple

from click.testing import CliRunner

from gradviz.cli.main import gradviz
from tests.docs.pages import DOCS, ROOT

PAGE: Final = DOCS / "gallery.md"
PICTURES: Final = DOCS / "gallery"
IMAGES: Final = DOCS / "images"

_COMMAND: Final = re.compile(r"^\$ gradviz (.*(?:\\\n.*)*)", re.MULTILINE)


#: No ``dot`` of the machine, whose layout depends on its version: that of pygraphviz,
#: which is installed with the tests.
_NO_DOT: Final = {"PATH": ""}


class Command(NamedTuple):
    """A command of the page.

    Attributes:
        arguments: What follows ``gradviz``.
        written: The name of the file that it writes.
    """

    arguments: tuple[str, ...]
    written: str


def commands() -> Iterator[Command]:
    """Those of the page, in their order."""
    for line in _COMMAND.findall(PAGE.read_text(encoding="utf-8")):
        arguments = tuple(shlex.split(line.replace("\\\n", " ")))
        yield Command(arguments, arguments[arguments.index("-o") + 1])


def record(folder: Path) -> None:
    """Write the traces anew, of programs in some folder."""
    shutil.copytree(ROOT / "examples", folder, dirs_exist_ok=True)
    for command in commands():
        if command.arguments[0] == "run":
            run = [sys.executable, "-m", "gradviz", *command.arguments]
            subprocess.run(run, cwd=folder, check=True)
            shutil.copy(folder / command.written, PICTURES)


def draw(folder: Path) -> Iterator[tuple[Path, Path]]:
    """Draw each picture below `folder`, which is empty.

    Yields:
        Where it lies, and where it is kept: here, or in docs/images, which pages show.
    """
    for page in (PICTURES, IMAGES):
        (folder / page.name).mkdir()
    folder /= PICTURES.name
    for trace in PICTURES.glob("*.gvt"):
        shutil.copy(trace, folder)
    with contextlib.chdir(folder):
        for command in commands():
            if command.arguments[0] != "run":
                done = CliRunner(env=_NO_DOT).invoke(gradviz, command.arguments)
                assert done.exit_code == 0, done.output
                yield folder / command.written, PICTURES / command.written


if __name__ == "__main__":
    with tempfile.TemporaryDirectory() as anywhere:
        if "--record" in sys.argv:
            record(Path(anywhere, "examples"))
        drawn = Path(anywhere, "drawn")
        drawn.mkdir()
        for picture, kept in draw(drawn):
            shutil.copy(picture, kept)
