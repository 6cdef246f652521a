"""Promises and parity name tests that exist, and leave nothing out."""

import ast
import re
from functools import cache
from pathlib import Path

import pytest

from tests.docs.citations import cited_by_code, cited_by_pages
from tests.docs.pages import DOCS, ROOT

#: A test, or a class of tests, as a page names it.
TEST = re.compile(r"`([\w/]+\.py)::([\w:]+)`")

STATES = ("same", "better", "partly", "not applicable", "not yet")

#: Pages on parity with PyTorch, in the order of their rows.
PARITY = ("parity.md", "parity-passes.md", "parity-facts.md")

#: Keys of the rows of these pages: the reference table of PyTorch's engine, the
#: facts measured on it, and the table of its distributed engine.
ROWS = [
    *(f"L{number}" for number in range(1, 14)),
    *(f"Q{number}" for number in range(1, 9)),
    "outstanding_tasks",
    "has_error",
    "future_completed",
    "keep_graph",
    "mutex",
    "not_ready",
    "dependencies",
    "nodes_in_graph",
    "graph_roots",
    "exec_info",
    "captured_vars",
    "thread_locals",
    "leaf_streams",
    "caller_current_streams",
    "owner",
    "reentrant_depth",
    "exit_on_error",
    "cpu_ready_queue",
    "future_result",
    "final_callbacks",
    "warning_handler",
    "id",
    *(f"X{number}" for number in range(1, 12)),
    *(f"I{number}" for number in range(1, 9)),
    *(f"M{number}" for number in range(1, 7)),
    *(f"E{number}" for number in range(1, 11)),
    *(f"V{number}" for number in range(1, 9)),
    *(f"R{number}" for number in range(1, 8)),
    *(f"P{number}" for number in range(1, 5)),
    *(f"RE{number}" for number in range(1, 9)),
    *(f"K{number}" for number in range(1, 9)),
    *(f"N{number}" for number in range(1, 7)),
    *(f"S{number}" for number in range(1, 8)),
    *(f"C{number}" for number in (*range(1, 10), *range(11, 20))),
    *(f"C{number}" for number in (20, 22, 25, 26)),
    *(f"G{number}" for number in range(1, 19)),
    *(f"D{number}" for number in range(1, 15)),
]

#: What docs/faults.md must have a row for: all faults but those of other processes,
#: for nothing is distributed yet.
FAULTS = [f"F{number:02}" for number in range(1, 26)]


@cache
def named_in(path: Path) -> set[str]:
    """The tests of a file, as ``test`` or ``Class::test``."""
    found = set()
    for node in ast.parse(path.read_text(encoding="utf-8")).body:
        if isinstance(node, ast.FunctionDef):
            found.add(node.name)
        elif isinstance(node, ast.ClassDef):
            methods = (one for one in node.body if isinstance(one, ast.FunctionDef))
            found |= {f"{node.name}::{one.name}" for one in methods}
    return found


def rows(*names: str) -> list[list[str]]:
    """The cells of every row of the tables of pages, headings left out."""
    cells = [
        [cell.strip() for cell in line.strip("|").split(" | ")]
        for name in names
        for line in (DOCS / name).read_text(encoding="utf-8").splitlines()
        if line.startswith("| ")
    ]
    return [row for row in cells if row[-1] != "shown by"]


@pytest.mark.parametrize(
    ("name", "fewest"),
    [
        ("promises.md", 50),
        ("faults.md", 40),
        *((name, 50) for name in PARITY),
        ("parity-tensors.md", 3),
    ],
)
def test_every_test_that_is_named_exists(name: str, fewest: int):
    named = TEST.findall((DOCS / name).read_text(encoding="utf-8"))

    assert len(named) > fewest
    missing = [
        f"{path}::{test}"
        for path, test in named
        if not (ROOT / "tests" / path).exists()
        or test not in named_in(ROOT / "tests" / path)
    ]
    assert missing == []


@pytest.mark.parametrize("name", ["promises.md", "faults.md"])
def test_every_promise_is_shown_by_a_test(name: str):
    assert [row for row in rows(name) if not TEST.search(row[-1])] == []


def test_parity_has_every_row_once_and_in_order():
    assert [row[0] for row in rows(*PARITY)] == ROWS


def test_every_row_of_parity_says_how_things_stand():
    for identifier, _, state, shown_by in rows(*PARITY):
        matched = re.match(r"\*\*(.+?)\*\*(.*)", state)
        assert matched, identifier
        kind, explanation = matched.groups()
        assert kind in STATES, identifier
        assert explanation or kind in {"same", "not yet"}, identifier
        is_shown = bool(TEST.search(shown_by))
        assert is_shown or kind in {"not applicable", "not yet"}, identifier


def test_there_is_a_row_for_every_fault_once_and_in_order():
    keys = [row[0] for row in rows("faults.md")]

    assert [key for key in keys if re.fullmatch(r"F\d\d", key)] == FAULTS


def test_every_row_that_is_cited_is_there():
    cited = cited_by_code() | cited_by_pages()

    assert len(cited) > 150
    assert cited.keys() - {*ROWS, *FAULTS} == set(), "no row of docs/ has these keys"


def test_every_row_is_cited_unless_there_is_nothing_to_cite_it():
    absent = {
        row[0]
        for row in rows(*PARITY)
        if re.match(r"\*\*(not applicable|not yet)\*\*", row[2])
    }
    fields = {row for row in ROWS if not re.match(r"[A-Z]", row)}

    assert {*ROWS, *FAULTS} - absent - fields - cited_by_code().keys() == set()
