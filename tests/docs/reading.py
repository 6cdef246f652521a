"""docs/reading-a-trace.md: its commands are run over the trace that lies beside it.

    python -m tests.docs.reading            writes what they print into the page, anew
    python -m tests.docs.reading --record   records the trace anew first

The trace is a recording of examples/13_reading_a_trace like any other, made once: its
figures are those of one run on one machine. What the page says in its sentences has to
be looked at after ``--record``.

A block of ``console`` is commands after ``$`` and what each prints (``| head -N`` and
``| tail -N`` are understood), a block of ``python`` a program and, in a block of
``text`` right after it, what that prints. All of them run one after the other in one
folder, where the trace is ``training.gvt``.
"""

import contextlib
import io
import re
import shlex
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from pathlib import Path
from typing import Final

from click.testing import CliRunner

from gradviz.cli.main import gradviz
from tests.docs.pages import DOCS, ROOT

PAGE: Final = DOCS / "reading-a-trace.md"
TRACE: Final = DOCS / "training.gvt"
EXAMPLE: Final = ROOT / "examples" / "13_reading_a_trace" / "main.py"

_BLOCK: Final = re.compile(
    r"^```console\n(?P<console>.*?)^```\n"
    r"|^```python\n(?P<source>.*?)^```\n(\n```text\n(?P<output>.*?)^```\n)?",
    re.MULTILINE | re.DOTALL,
)
_COMMAND: Final = re.compile(r"^\$ .*\n", re.MULTILINE)

#: A quantity with its unit, as the views print it and as sentences repeat it.
_FIGURE: Final = re.compile(r"\b\d[\d,]*(?:\.\d+)? (?:ns|µs|ms|s|B|KB|KiB|MB|MiB)\b")

#: As wide as the page.
_WIDTH: Final = "92"


def record() -> None:
    """Write the trace anew; the lines in it are of a program in some folder."""
    folder = Path(tempfile.gettempdir()) / "example"
    folder.mkdir(exist_ok=True)
    shutil.copy(EXAMPLE, folder / "training.py")
    command = ["-m", "gradviz", "run", "-f", "-o", TRACE, "training.py"]
    subprocess.run([sys.executable, *map(str, command)], cwd=folder, check=True)


def written_anew(text: str, folder: Path) -> str:
    """The page, with what its blocks print now; `folder` is empty."""
    shutil.copy(TRACE, folder / "training.gvt")
    names: dict[str, object] = {"__name__": "__main__"}

    def block(match: re.Match[str]) -> str:
        if match["console"] is not None:
            commands = _COMMAND.findall(match["console"])
            return f"```console\n{''.join(map(_with_output, commands))}```\n"
        printed = _printed(match["source"], names)
        end = f"\n```text\n{printed}```\n" if printed else ""
        return f"```python\n{match['source']}```\n{end}"

    with contextlib.chdir(folder):
        return _BLOCK.sub(block, text)


def figures_without_source(text: str) -> Iterator[str]:
    """Figures of sentences that no output of their section shows."""
    for section in re.split(r"^## ", text, flags=re.MULTILINE):
        shown = "".join(match[0] for match in _BLOCK.finditer(section))
        for figure in _FIGURE.findall(_BLOCK.sub("", section)):
            if figure not in shown:
                yield f"{section.splitlines()[0]}: {figure}"


def _with_output(line: str) -> str:
    """A command and what it prints; ``| head -N`` and ``| tail -N`` cut that."""
    command, *cuts = line[2:].split(" | ")
    program, *arguments = shlex.split(command)
    assert program == "gradviz", line
    result = CliRunner(env={"COLUMNS": _WIDTH}).invoke(gradviz, arguments)
    lines = result.output.splitlines(keepends=True)
    for cut in cuts:
        name, count = cut.split()
        number = int(count.lstrip("-"))
        lines = {"head": lines[:number], "tail": lines[-number:]}[name]
    if result.exit_code:
        lines.append(f"[exit code {result.exit_code}]\n")
    return line + "".join(f"{one.rstrip()}\n" for one in lines)


def _printed(source: str, names: dict[str, object]) -> str:
    with contextlib.redirect_stdout(io.StringIO()) as stdout:
        exec(compile(source, str(PAGE), "exec"), names)
    return stdout.getvalue()


if __name__ == "__main__":
    if "--record" in sys.argv:
        record()
    with tempfile.TemporaryDirectory() as anywhere:
        PAGE.write_text(written_anew(PAGE.read_text(), Path(anywhere)))
