"""What a class lays out when it is compiled is what it has when it is not."""

import importlib
import re
from pathlib import Path

import pytest

import gradviz

PACKAGE = Path(gradviz.__file__).parent
CLASS = re.compile(r"^cdef class (\w+).*:\n((?:    .*\n)*)", re.MULTILINE)
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
