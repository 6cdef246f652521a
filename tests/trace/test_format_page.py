"""The pages on the trace file say what the code does."""

import ast
import re
from pathlib import Path

import pytest

from gradviz.trace.events import KINDS
from gradviz.trace.format.columns import __doc__ as columns_doc
from gradviz.trace.format.definitions import VERSION
from gradviz.trace.format.frames import MAGIC, MAX_UNPACKED, FrameType
from tests.docs import trace_format

ROOT = Path(__file__).parents[2]
PAGE = (ROOT / "docs" / "trace-format.md").read_text(encoding="utf-8")


def section(name):
    """Return the text between two comments of the page."""
    return re.search(rf"<!-- {name} -->\n(.*?)\n<!-- end -->", PAGE, re.DOTALL)[1]


@pytest.mark.parametrize("page", trace_format.PAGES, ids=lambda page: page.stem)
def test_every_event_and_every_enum_is_on_the_page_as_it_is_in_the_code(page):
    assert trace_format.written_page(page) == page.read_text(encoding="utf-8"), (
        "run python -m tests.docs.trace_format"
    )


def test_every_event_is_in_one_table():
    in_tables = [code for codes in trace_format.families() for code in codes]

    assert [in_tables.count(code) for code in KINDS] == [1] * len(KINDS)


def test_every_type_of_frame_is_on_the_page():
    rows = [line.split(" | ")[:2] for line in section("frames").splitlines()[2:]]

    assert rows == [[f"| {one.value}", one.name.lower()] for one in FrameType]


def test_the_layout_of_columns_is_that_of_the_code():
    layout = columns_doc[columns_doc.index("    thread u32") :].split("\n\n")[0]

    assert "\n".join(line[4:] for line in layout.splitlines()) in PAGE


def test_the_constants_are_those_of_the_code():
    assert f"`{MAGIC.hex(' ')}`" in PAGE
    assert f"{MAX_UNPACKED >> 20} MiB" in PAGE
    assert f"version {VERSION[0]}.{VERSION[1]}" in PAGE


def test_every_guarantee_names_tests_that_exist():
    named = re.findall(r"`(tests/\S+?\.py)::(\w+)`", PAGE)
    found = {
        (path, node.name)
        for path in {path for path, _ in named}
        for node in ast.walk(ast.parse((ROOT / path).read_text(encoding="utf-8")))
        if isinstance(node, ast.FunctionDef)
    }

    assert len(named) > 10
    assert set(named) <= found
