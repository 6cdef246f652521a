"""Docstrings begin with a noun or a verb."""

import ast
import re
from pathlib import Path

import pytest

import gradviz

ROOT = Path(gradviz.__file__).parents[1]

#: A word that begins a clause, perhaps after a preposition ("To whom", "Of which").
CLAUSE = re.compile(
    r"(?:(?:to|of|for|in|on|at|by|with|from|under|after|before|since|until|as) )?"
    r"(?:what|whatever|who|whom|whose|whoever|which|whichever|whether"
    r"|where|wherever|when|whenever|why|how|however)\b"
    r"|(?:as|if|is|so|such as|likewise|nothing that|all that)\b",
    re.IGNORECASE,
)


def docstrings() -> tuple[tuple[str, str], ...]:
    """Return the place and the first line of each docstring."""
    files = [*(ROOT / "gradviz").rglob("*.py"), *(ROOT / "tests").rglob("*.py")]
    return tuple(
        (f"{file.relative_to(ROOT)}:{node.body[0].lineno}", doc.splitlines()[0])
        for file in sorted(files)
        for node in ast.walk(ast.parse(file.read_bytes()))
        if isinstance(
            node, ast.Module | ast.ClassDef | ast.FunctionDef | ast.AsyncFunctionDef
        )
        and (doc := ast.get_docstring(node))
    )


def test_no_docstring_begins_with_a_clause():
    assert [one for one in docstrings() if CLAUSE.match(one[1])] == []


@pytest.mark.parametrize(
    "summary",
    [
        "What runs.",
        "To whom a node is reported.",
        "whether it ran",
        "As that of `Node`.",
        "Such as ``cuda:0``.",
    ],
)
def test_it_notices_a_clause(summary):
    assert CLAUSE.match(summary)


@pytest.mark.parametrize(
    "summary", ["Return whether it ran.", "Assert that it ran.", "Wheel of a queue."]
)
def test_it_accepts_a_verb_or_a_noun(summary):
    assert not CLAUSE.match(summary)
