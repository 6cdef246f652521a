"""What a class lays out when it is compiled is what it has when it is not."""

import gc
import importlib
import re
from pathlib import Path

import pytest

import gradviz

#: Set in the flags of a class whose objects the garbage collector knows.
HAVE_GC = 1 << 14

PACKAGE = Path(gradviz.__file__).parent
CLASS = re.compile(r"^cdef class (\w+).*:\n((?:    .*\n)*)", re.MULTILINE)
ABOVE_CLASS = re.compile(r"^@cython\.(\w+).*\n(?:@.*\n)*cdef class (\w+)", re.MULTILINE)
FIELDS = re.compile(r"^    cdef (?:public |readonly )?\w+ ([\w, ]+)$", re.MULTILINE)
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
    """How many of so many objects the collector counts, if there were some before."""

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
def test_what_is_said_above_a_class_is_heeded(module, name, word):
    cls = getattr(importlib.import_module(module), name)

    if word == "no_gc":
        assert bool(cls.__flags__ & HAVE_GC) is not gradviz.compiled
    else:
        assert word == "freelist", "nothing else is kept by compile_core.py"
        assert (counted_of(cls, 100) < 50) is gradviz.compiled
