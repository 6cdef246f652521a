"""The page docs/trace-format.md says what the code does."""

import ast
import enum
import re
from pathlib import Path

import pytest

from gradviz.trace.columns import __doc__ as columns_doc
from gradviz.trace.definitions import VERSION
from gradviz.trace.events import KINDS, kind_name, own_columns
from gradviz.trace.frames import MAGIC, MAX_UNPACKED, FrameType
from gradviz.trace.probe import Hook, How, Push, Role, Skip

ROOT = Path(__file__).parents[2]
PAGE = (ROOT / "docs" / "trace-format.md").read_text(encoding="utf-8")


def section(name):
    """What stands between two comments of the page."""
    return re.search(rf"<!-- {name} -->\n(.*?)\n<!-- end -->", PAGE, re.DOTALL)[1]


def field(column):
    """How the page writes a column."""
    if column.type is int:
        return f"`{column.name}`"
    name = "text" if column.type is str else column.type.__name__
    return f"`{column.name}`: {name}"


def test_every_event_is_on_the_page_with_its_code_and_its_fields():
    rows = [
        f"| {code} | `{kind_name(kind)}` | {', '.join(map(field, own_columns(kind)))} "
        f"| {kind.__doc__.splitlines()[0]} |"
        for code, kind in KINDS.items()
    ]
    table = "\n".join(
        ["| code | kind | own fields | meaning |", "|--|--|--|--|", *rows]
    )

    assert section("events") == table


@pytest.mark.parametrize("members", [Push, How, Skip, Role, Hook])
def test_every_member_of_an_enum_is_on_the_page(members: type[enum.IntEnum]):
    values = ", ".join(f"{one.value} {one.name.lower()}" for one in members)

    assert f"| {members.__name__} | {values} |" in section("enums")


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
