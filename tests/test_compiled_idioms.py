"""Lines that are written for the compiler say so; docs/compiled-core.md says why."""

import ast
import re
from collections.abc import Iterator
from pathlib import Path

import pytest

PACKAGE = Path(__file__).parents[1] / "gradviz"
PAGE = PACKAGE.parent / "docs" / "compiled-core.md"
COMPILED = sorted(path.with_suffix(".py") for path in PACKAGE.rglob("*.pxd"))


def marks(text: str) -> dict[int, str]:
    """The word that each marked line has, by the number of the line."""
    found = {}
    for number, line in enumerate(text.split("\n"), start=1):
        if match := re.search(r"# when compiled: (\w+)$", line):
            found[number] = match[1]
    return found


def odd_lines(text: str) -> Iterator[tuple[int, str]]:
    """Lines that are written for the compiler alone, with the word for each."""
    for node in ast.walk(ast.parse(text)):
        if isinstance(node, ast.If) and "isinstance" in ast.unparse(node.test):
            first = node.body[0]
            if isinstance(first, ast.Assign) and all(
                isinstance(one, ast.Name) for one in (first.value, *first.targets)
            ):
                yield first.lineno, "typed"
        elif isinstance(node, ast.For) and isinstance(node.body[0], ast.AugAssign):
            if re.fullmatch(r"\w+ \+= 1", ast.unparse(node.body[0])):
                yield node.body[0].lineno, "index"
        elif isinstance(node, ast.Assign):
            made = re.fullmatch(r"(\w+)\.__new__\(\1\)", ast.unparse(node.value))
            if made and isinstance(node.targets[0], ast.Name):
                yield node.lineno, "new"


def test_the_page_explains_each_mark_and_no_other():
    used = {
        word
        for path in PACKAGE.rglob("*.py")
        for word in marks(path.read_text(encoding="utf-8")).values()
    }

    listed = re.findall(
        r"^\| `(\w+)` \|", PAGE.read_text(encoding="utf-8"), re.MULTILINE
    )
    assert sorted(used) == sorted(listed)


@pytest.mark.parametrize("path", COMPILED, ids=lambda path: path.stem)
def test_a_line_for_the_compiler_is_marked(path: Path):
    text = path.read_text(encoding="utf-8")
    marked = marks(text)

    assert [
        (number, word) for number, word in odd_lines(text) if marked.get(number) != word
    ] == []
