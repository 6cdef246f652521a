"""Pages that ask traces: their commands are run over the traces that lie beside them.

    python -m tests.docs.reading            writes what they print into the pages, anew
    python -m tests.docs.reading --record   records the traces of PyTorch's pages first

Each trace is a recording like any other, made once: its figures are those of one run on
one machine. What a page says in its sentences has to be looked at after ``--record``;
``--record NAME.gvt ...`` records only those.

A block of ``console`` is commands after ``$`` and what each prints (``| head -N`` and
``| tail -N`` are understood), a block of ``python`` a program and, in a block of
``text`` right after it, what that prints. All of them run one after the other in one
folder, with the traces that the page names. Commands that record are only shown; so
are blocks whose first line is ``# NAME.py``, recorded as ``NAME.gvt``.
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
from typing import Final, NamedTuple

from click.testing import CliRunner

from gradviz.cli.main import gradviz
from tests.docs.pages import DOCS, ROOT

PAGES: Final = (
    "reading-a-trace.md",
    "reading-time.md",
    "reading-memory.md",
    "reading-changes.md",
    "recording-less.md",
    "pytorch.md",
    "questions.md",
)
TRACES: Final = DOCS / "traces"


class Program(NamedTuple):
    """An example that a trace was recorded of.

    Attributes:
        example: Its folder.
        name: The name its file had, as the lines in the trace say.
        arguments: Those it was started with.
        has_ranks: Whether it starts processes, whose traces are merged.
    """

    example: str
    name: str
    arguments: tuple[str, ...] = ()
    has_ranks: bool = False

    @property
    def source(self) -> str:
        """Python; paths are those of the example."""
        path = ROOT / "examples" / self.example / "main.py"
        return path.read_text().replace("__file__", repr(str(path)))


#: Traces of examples; all others are of programs on a page.
EXAMPLES: Final = {
    "training.gvt": Program("13_reading_a_trace", "training.py"),
    "slow.gvt": Program("21_pytorch_slow_step", "train.py"),
    "faster.gvt": Program("21_pytorch_slow_step", "train.py", ("--unbind",)),
    "late-rank.gvt": Program("20_pytorch_ddp", "main.py", ("--late", "20"), True),
}

_BLOCK: Final = re.compile(
    r"^```console\n(?P<console>.*?)^```\n"
    r"|^```python\n(?P<source>.*?)^```\n(\n```text\n(?P<output>.*?)^```\n)?",
    re.MULTILINE | re.DOTALL,
)
_COMMAND: Final = re.compile(r"^\$ .*\n", re.MULTILINE)
_PROGRAM: Final = re.compile(
    r"^```python\n(# (?P<name>\w+)\.py\n.*?)^```\n", re.MULTILINE | re.DOTALL
)
_NAMED: Final = re.compile(r"\b[\w-]+\.gvt\b")

#: A quantity with its unit, as the views print it and as sentences repeat it.
_FIGURE: Final = re.compile(r"\b\d[\d,]*(?:\.\d+)? (?:ns|µs|ms|s|B|KB|KiB|MB|MiB)\b")

#: Commands that record or listen; what they print is no text of a page.
_ONLY_SHOWN: Final = ("run", "attach", "view")

#: As wide as the page.
_WIDTH: Final = "92"


def programs(text: str) -> dict[str, str]:
    """Return the programs on a page by the names of their traces."""
    return {f"{name}.gvt": source for source, name in _PROGRAM.findall(text)}


def source_of(name: str) -> str:
    """Return the program that a trace was recorded of."""
    if name in EXAMPLES:
        return EXAMPLES[name].source
    texts = [(DOCS / page).read_text() for page in PAGES]
    return next(found[name] for found in map(programs, texts) if name in found)


def record(name: str) -> None:
    """Record one trace anew; the lines in it are of a program in some folder."""
    example = EXAMPLES.get(name)
    folder = Path(tempfile.gettempdir()) / "example"
    folder.mkdir(exist_ok=True)
    path = folder / (example.name if example else f"{name.removesuffix('.gvt')}.py")
    path.write_text(source_of(name))
    command = [sys.executable, "-m", "gradviz", "run", "-f", "-o", str(TRACES / name)]
    command += ["--follow-children"] if example and example.has_ranks else []
    command += [*_options_of(name), path.name, *(example.arguments if example else ())]
    # Some of the programs fail: that is what their traces are for.
    subprocess.run(command, cwd=folder, check=False)
    if example and example.has_ranks:
        ranks = sorted(TRACES.glob(f"{name.removesuffix('.gvt')}.*.gvt"))
        command = [sys.executable, "-m", "gradviz", "merge", "-f", "-o", TRACES / name]
        subprocess.run([*command, *ranks], check=True)
        for rank in ranks:
            rank.unlink()


def _options_of(name: str) -> list[str]:
    """Return the options with which a page records the trace of a program on it."""
    texts = "".join((DOCS / page).read_text() for page in PAGES)
    found = re.search(
        rf"^\$ gradviz run (.*)-o {re.escape(name)} ", texts, re.MULTILINE
    )
    return shlex.split(found[1]) if found else []


def written_anew(text: str, folder: Path) -> str:
    """The page, with what its blocks print now; `folder` is empty."""
    for name in set(_NAMED.findall(text)):
        if (TRACES / name).exists():
            shutil.copy(TRACES / name, folder / name)
    names: dict[str, object] = {"__name__": "__main__"}

    def block(match: re.Match[str]) -> str:
        if match["console"] is not None:
            commands = _COMMAND.findall(match["console"])
            return f"```console\n{''.join(map(_with_output, commands))}```\n"
        if _PROGRAM.match(match[0]):
            return match[0]
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
    if arguments[0] in _ONLY_SHOWN:
        return line
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
        exec(compile(source, "page", "exec"), names)
    return stdout.getvalue()


if __name__ == "__main__":
    if "--record" in sys.argv:
        named = [word for word in sys.argv if word.endswith(".gvt")]
        for trace in named or EXAMPLES:
            record(trace)
    for name in PAGES:
        with tempfile.TemporaryDirectory() as anywhere:
            page = DOCS / name
            page.write_text(written_anew(page.read_text(), Path(anywhere)))
