"""Docstrings that begin with a noun or a verb, and rooms in which all of them do."""

import ast
import re
from functools import cache
from pathlib import Path

import pytest

import gradviz

ROOT = Path(gradviz.__file__).parents[1]

#: A word that begins a clause, perhaps after a preposition ("To whom", "Of which").
CLAUSE = re.compile(
    r"(?:(?:to|of|for|in|on|at|by|with|from|under|after|before|since|until|as) )?"
    r"(?:what|whatever|who|whom|whose|whoever|which|whichever|whether"
    r"|where|wherever|when|whenever|why|how|however)\b"
    r"|(?:as|likewise|nothing that|all that)\b",
    re.IGNORECASE,
)

#: Folders for which only the share counts; the others have no such docstring.
LENIENT = (
    "tests/",
    *(f"gradviz/{room}/" for room in ("analysis", "cli", "pytorch", "render", "view")),
)

#: Share of such docstrings in all of gradviz/ and tests/. Only ever lower it.
AT_MOST = 0.02


@cache
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


def clauses() -> list[tuple[str, str]]:
    """Return those that begin with a clause."""
    return [(place, line) for place, line in docstrings() if CLAUSE.match(line)]


def test_a_clean_room_has_no_docstring_that_begins_with_a_clause():
    assert [one for one in clauses() if not one[0].startswith(LENIENT)] == []


def test_few_docstrings_begin_with_a_clause():
    found = clauses()
    assert len(found) <= AT_MOST * len(docstrings()), found


@pytest.mark.parametrize(
    "summary",
    [
        "What runs.",
        "To whom a node is reported.",
        "whether it ran",
        "As that of `Node`.",
    ],
)
def test_it_notices_a_clause(summary):
    assert CLAUSE.match(summary)


@pytest.mark.parametrize(
    "summary", ["Return whether it ran.", "Assert that it ran.", "Wheel of a queue."]
)
def test_it_accepts_a_verb_or_a_noun(summary):
    assert not CLAUSE.match(summary)
