"""Pages whose programs are run: each Python block, and the text that it prints.

A page is one program. Its Python blocks run from top to bottom in one process, so that
later ones can use what earlier ones define; a block of ``text`` right after one is what
that one prints.
"""

import contextlib
import io
import json
import re
import sys
from pathlib import Path
from typing import NamedTuple

from tests.warm_python import run_warm

ROOT = Path(__file__).parents[2]
DOCS = ROOT / "docs"

_BLOCK = re.compile(
    r"^```python\n(?P<source>.*?)^```\n(\n```text\n(?P<output>.*?)^```\n)?",
    re.MULTILINE | re.DOTALL,
)


class Block(NamedTuple):
    """A program of a page.

    Attributes:
        line: Where it begins on the page, from 1.
        source: Python.
        output: What the page says it prints.
    """

    line: int
    source: str
    output: str


def blocks(page: Path) -> list[Block]:
    """The programs of a page, in their order."""
    text = page.read_text(encoding="utf-8")
    return [
        Block(
            text.count("\n", 0, match.start("source")) + 1,
            match["source"],
            match["output"] or "",
        )
        for match in _BLOCK.finditer(text)
    ]


def outputs(page: Path) -> list[str]:
    """Run the programs of a page in a process of their own; return their outputs."""
    done = run_warm("-W", "error", "-m", "tests.docs.pages", page)
    assert (done.exit_code, done.errors) == (0, "")
    printed: list[str] = json.loads(done.output)
    return printed


def run(page: Path) -> tuple[list[str], dict[str, object]]:
    """Run a page here; what its programs printed, and the names they defined."""
    names: dict[str, object] = {"__name__": "__main__"}
    printed = []
    for block in blocks(page):
        source = "\n" * (block.line - 1) + block.source  # lines as on the page
        with contextlib.redirect_stdout(io.StringIO()) as stdout:
            exec(compile(source, str(page), "exec"), names)
        printed.append(stdout.getvalue())
    return printed, names


if __name__ == "__main__":
    print(json.dumps(run(Path(sys.argv[1]))[0]))  # noqa: T201 - for `outputs`
