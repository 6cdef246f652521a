"""Citations of rows of the pages on parity and of docs/faults.md.

A row is cited by its key, in a comment, a docstring or the text of a page, alone or as
one of a range, "(Q2-Q4)".
"""

import ast
import io
import re
import tokenize
from collections import defaultdict
from collections.abc import Iterable, Iterator
from functools import cache

from tests.docs.pages import DOCS, ROOT

_KEY = re.compile(r"\b(?:RE|[A-Z])\d{1,2}\b")
_RANGE = re.compile(r"\b(RE|[A-Z])(\d{1,2})-\1(\d{1,2})\b")
_OF_A_TABLE = re.compile(r"^\| \S+ \|", re.MULTILINE)
_PROGRAM = re.compile(r"^```.*?^```", re.MULTILINE | re.DOTALL)

#: What looks like a key and is none.
_OTHERS = {"B2", "B4"}  # Bernoulli's numbers


@cache
def cited_by_code() -> dict[str, set[str]]:
    """Key -> the modules and tests that cite it."""
    paths = [*(ROOT / "gradviz").rglob("*.py"), *(ROOT / "tests").rglob("*.py")]
    return _places(
        (str(path.relative_to(ROOT)), text)
        for path in paths
        if _KEY.search(source := path.read_text(encoding="utf-8"))
        for text in _comments_and_docstrings(source)
    )


def cited_by_pages() -> dict[str, set[str]]:
    """Key -> the pages that cite it, outside of their programs."""
    pages = [*DOCS.glob("*.md"), *ROOT.glob("*.md")]
    return _places(
        (page.name, _OF_A_TABLE.sub("", _PROGRAM.sub("", page.read_text("utf-8"))))
        for page in pages
    )


def _places(texts: Iterable[tuple[str, str]]) -> dict[str, set[str]]:
    places: defaultdict[str, set[str]] = defaultdict(set)
    for place, text in texts:
        for key in _keys(text):
            places[key].add(place)
    return dict(places)


def _keys(text: str) -> set[str]:
    keys = set(_KEY.findall(text))
    for family, first, last in _RANGE.findall(text):
        keys |= {f"{family}{number}" for number in range(int(first), int(last))}
    return keys - _OTHERS


def _comments_and_docstrings(source: str) -> Iterator[str]:
    for token in tokenize.generate_tokens(io.StringIO(source).readline):
        if token.type == tokenize.COMMENT:
            yield token.string
    for node in ast.walk(ast.parse(source)):
        if isinstance(node, ast.Module | ast.ClassDef | ast.FunctionDef):
            yield ast.get_docstring(node) or ""
