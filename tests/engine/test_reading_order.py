"""The order in which the engine's docstring has its modules read."""

import ast
import re
from collections.abc import Iterator
from pathlib import Path

import pytest

import gradviz.engine

FOLDER = Path(gradviz.engine.__file__).parent
MODULES = {path.stem for path in FOLDER.glob("*.py")} - {"__init__"}
ORDER = re.findall(r"`(\w+)`", gradviz.engine.__doc__ or "")


def imported(module: str) -> Iterator[str]:
    """The modules of the engine that one of them imports, be it for a type."""
    for node in ast.walk(ast.parse((FOLDER / f"{module}.py").read_bytes())):
        if isinstance(node, ast.ImportFrom):
            names = [f"{node.module}.{alias.name}" for alias in node.names]
        elif isinstance(node, ast.Import):
            names = [alias.name for alias in node.names]
        else:
            continue
        yield from (name.split(".")[2] for name in names if "gradviz.engine." in name)


def test_it_names_every_module_once():
    assert sorted(ORDER) == sorted(MODULES)


@pytest.mark.parametrize("module", sorted(MODULES))
def test_a_module_needs_only_those_before_it(module):
    assert {*imported(module)} <= {*ORDER[: ORDER.index(module)]}
