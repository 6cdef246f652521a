"""The order in which the docstrings of the engine have its rooms and modules read."""

import ast
import re
from collections.abc import Iterator
from pathlib import Path

import pytest

import gradviz.engine

FOLDER = Path(gradviz.engine.__file__).parent
ROOMS = [FOLDER, *(path.parent for path in FOLDER.glob("*/__init__.py"))]


def members(room: Path) -> set[str]:
    """The modules of a room, and the rooms inside of it."""
    modules = {path.stem for path in room.glob("*.py")} - {"__init__"}
    return modules | {path.parent.name for path in room.glob("*/__init__.py")}


def order(room: Path) -> list[str]:
    doc = ast.get_docstring(ast.parse((room / "__init__.py").read_bytes()))
    return [word for word in re.findall(r"`(\w+)`", doc or "") if word in members(room)]


def imported(path: Path, room: Path) -> Iterator[str]:
    """The members of a room that a file imports, be it for a type."""
    prefix = ".".join(("gradviz", *room.relative_to(FOLDER.parent).parts, ""))
    for node in ast.walk(ast.parse(path.read_bytes())):
        if isinstance(node, ast.ImportFrom):
            names = [f"{node.module}.{alias.name}" for alias in node.names]
        elif isinstance(node, ast.Import):
            names = [alias.name for alias in node.names]
        else:
            continue
        yield from (
            name.removeprefix(prefix).split(".")[0]
            for name in names
            if name.startswith(prefix)
        )


@pytest.mark.parametrize("room", ROOMS, ids=lambda room: room.name)
def test_it_names_every_member_once(room):
    assert sorted(order(room)) == sorted(members(room))


@pytest.mark.parametrize(
    ("room", "member"),
    [(room, member) for room in ROOMS for member in sorted(members(room))],
    ids=lambda one: one if isinstance(one, str) else one.name,
)
def test_a_member_needs_only_those_before_it(room, member):
    before = {*order(room)[: order(room).index(member)], member}
    files = [room / f"{member}.py", *(room / member).glob("*.py")]
    for path in filter(Path.exists, files):
        assert {*imported(path, room)} <= before
