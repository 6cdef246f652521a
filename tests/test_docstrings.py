"""Docstrings, and comments, begin with a noun or a verb."""

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

#: A line of source that may begin a docstring; ruff has the first sentence stand there.
LINE = re.compile(r'^\s*[rR]?"""(.*)', re.MULTILINE)

#: A text in three quotes that begins a line: a docstring, nearly always.
DOCSTRING = re.compile(r'^\s*[rR]?"""(.*?)"""', re.MULTILINE | re.DOTALL)

#: An entry of `Args`, `Attributes` and the like that begins with a clause.
ENTRY = re.compile(
    r"^ +\*{0,2}\w+(?:, \*{0,2}\w+)*: "
    r"(?:(?:to|of|for|in|on|at|by|with|from|along|after|before|since|until) )?"
    r"(?:what|who|whom|whose|which|where|when|why|how|whether)\b.*",
    re.IGNORECASE | re.MULTILINE,
)


#: A line of a comment that begins with a clause in place of a noun.
COMMENT = re.compile(
    r"^ *#:? (?:What|Whatever|Who|Whom|Whose|Whoever|Which|Whether|Why|How)\b.*",
    re.MULTILINE,
)


#: A test whose name begins with a clause in place of its subject.
CLAUSE_NAME = re.compile(
    r"\bdef test_(?:what|whatever|who|whom|whose|where|whether|which|how)_\w*"
)


def in_clauses(source: str) -> list[str]:
    """Return the first line of each docstring that begins with a clause.

    Few sources have a line that may begin one, and only they are parsed.
    """
    if not any(map(CLAUSE.match, LINE.findall(source))):
        return []
    return [
        doc.splitlines()[0]
        for node in ast.walk(ast.parse(source))
        if isinstance(
            node, ast.Module | ast.ClassDef | ast.FunctionDef | ast.AsyncFunctionDef
        )
        and (doc := ast.get_docstring(node))
        and CLAUSE.match(doc)
    ]


def test_no_docstring_begins_with_a_clause():
    files = [*(ROOT / "gradviz").rglob("*.py"), *(ROOT / "tests").rglob("*.py")]
    found = {
        str(file.relative_to(ROOT)): in_clauses(file.read_text("utf-8"))
        for file in files
    }

    assert {file: lines for file, lines in found.items() if lines} == {}


def test_no_entry_of_a_docstring_begins_with_a_clause():
    found = {
        str(file.relative_to(ROOT)): [
            entry.strip()
            for text in DOCSTRING.findall(file.read_text("utf-8"))
            for entry in ENTRY.findall(text)
        ]
        for file in (ROOT / "gradviz").rglob("*.py")
    }

    assert {file: entries for file, entries in found.items() if entries} == {}


def test_no_comment_begins_with_a_clause():
    found = {
        str(file.relative_to(ROOT)): COMMENT.findall(file.read_text("utf-8"))
        for file in (ROOT / "gradviz").rglob("*.py")
    }

    assert {file: lines for file, lines in found.items() if lines} == {}


def test_no_test_is_named_by_a_clause():
    found = {
        str(file.relative_to(ROOT)): CLAUSE_NAME.findall(file.read_text("utf-8"))
        for file in (ROOT / "tests").rglob("test_*.py")
    }

    assert {file: names for file, names in found.items() if names} == {}


def test_it_notices_an_entry():
    assert ENTRY.search("        where: Of which node.")
    assert not ENTRY.search("        where: The node, which is none.")


def test_it_notices_docstrings_of_modules_classes_and_functions():
    source = """
QQQWhat it is.QQQ
class A:
    rQQQWhose it is.QQQ
    def f(self):
        QQQReturn it.QQQ
        async def g():
            QQQTo whom it goes.QQQ
    text = QQQ
How it is.
QQQ
"""

    assert in_clauses(source.replace("QQQ", '"' * 3)) == [
        "What it is.",
        "Whose it is.",
        "To whom it goes.",
    ]


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
