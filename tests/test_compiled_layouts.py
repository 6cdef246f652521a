"""Layouts of compiled classes equal those of pure Python."""

import gc
import importlib
import inspect
import re
from pathlib import Path

import pytest

import gradviz
from gradviz.trace.node_reports import NodeReports

#: Set in the flags of a class whose objects the garbage collector knows.
HAVE_GC = 1 << 14

PACKAGE = Path(gradviz.__file__).parent
CLASS = re.compile(r"^cdef class (\w+).*:\n((?:    .*\n)*)", re.MULTILINE)
ABOVE_CLASS = re.compile(r"^@cython\.(\w+).*\n(?:@.*\n)*cdef class (\w+)", re.MULTILINE)
FIELDS = re.compile(r"^    cdef (?:public |readonly )?\w+ ([\w, ]+)$", re.MULTILINE)
METHODS = re.compile(r"^    cpdef (\w+\(.*\))$", re.MULTILINE)
LAYOUTS = sorted(PACKAGE.rglob("*.pxd"))


def classes() -> list[tuple[str, str, set[str]]]:
    found = []
    for path in LAYOUTS:
        module = ".".join(path.relative_to(PACKAGE.parent).with_suffix("").parts)
        for name, body in CLASS.findall(path.read_text()):
            fields = ",".join(FIELDS.findall(body)).replace(" ", "").split(",")
            found.append((module, name, {*fields} - {""}))
    return found


def said_above_classes() -> list[tuple[str, str, str]]:
    return [
        (".".join(path.relative_to(PACKAGE.parent).with_suffix("").parts), name, word)
        for path in LAYOUTS
        for word, name in ABOVE_CLASS.findall(path.read_text())
    ]


def counted_of(cls: type, number: int) -> int:
    """Return how many of so many objects the collector counts."""

    def make() -> list[object]:
        return [cls.__new__(cls) for _ in range(number)]

    make()
    gc.disable()
    try:
        before = gc.get_count()[0]
        held = make()
        return gc.get_count()[0] - before if held else number
    finally:
        gc.enable()


def declared(path: Path, name: str) -> set[str]:
    """The methods of a class that others call without making objects for the call."""
    (body,) = [body for one, body in CLASS.findall(path.read_text()) if one == name]
    return {*METHODS.findall(body)}


def test_there_are_some():
    assert len(LAYOUTS) > 10
    assert len(classes()) > 5


@pytest.mark.parametrize(("module", "name", "fields"), classes())
def test_a_class_has_the_same_fields_compiled_and_not(module, name, fields):
    cls = getattr(importlib.import_module(module), name)

    assert {*vars(cls)["__slots__"]} == fields


@pytest.mark.parametrize("path", LAYOUTS, ids=lambda path: path.stem)
def test_a_layout_lies_beside_its_module(path):
    assert path.with_suffix(".py").exists()


@pytest.mark.parametrize(("module", "name", "word"), said_above_classes())
def test_a_freelist_above_a_class_takes_effect_where_it_is_compiled(module, name, word):
    cls = getattr(importlib.import_module(module), name)

    assert word == "freelist", "nothing else is kept by compile_core.py"
    assert (counted_of(cls, 100) < 50) is gradviz.compiled


@pytest.mark.parametrize(("module", "name"), sorted({one[:2] for one in classes()}))
def test_objects_that_hold_objects_are_known_to_the_collector(module, name):
    """Else a cycle through one would never be freed."""
    cls = getattr(importlib.import_module(module), name)
    holds_none = {"NodeReports", "Version", "Knowledge"}

    assert bool(cls.__flags__ & HAVE_GC) or (gradviz.compiled and name in holds_none)


@pytest.mark.parametrize(
    ("module", "name"),
    [("trace/node_reports", "NodeReports"), ("trace/recording/node_rows", "NodeRows")],
)
def test_a_report_of_every_node_is_called_directly(module, name):
    path = PACKAGE / f"{module}.pxd"
    cls = getattr(importlib.import_module(f"gradviz.{module.replace('/', '.')}"), name)
    reports = [one for one in vars(NodeReports) if not one.startswith("_")]

    lines = {
        f"{one}({', '.join(inspect.signature(getattr(cls, one)).parameters)})"
        for one in reports
    }
    missing = "".join(f"\n    cpdef {one}" for one in lines - declared(path, name))
    assert not missing, f"{path.name} lacks in class {name}:{missing}"
