import contextlib
import sys
import threading
import types
from pathlib import Path

import numpy as np
import pytest

from gradviz.trace.format.strings import Strings
from gradviz.trace.reporting.location import Locations, Stacks, is_of_program


@pytest.fixture
def strings():
    return Strings()


@pytest.fixture
def here(strings):
    return Locations(strings.intern).of_caller


@pytest.fixture
def text(strings):
    """The text of an index."""
    known = {}

    def find(index):
        known.update(strings.take())
        return known[index]

    return find


def in_module(name, here, folder="/somewhere"):
    """A function that asks from the second line of a module of this name."""
    space = {"__name__": name, "here": here}
    source = "def call(*arguments):\n    return here()"
    exec(compile(source, f"{folder}/{name}.py", "exec"), space)
    return space["call"]


#: Where installers put packages, also those of an environment inside of the program.
INSTALLED = f"{Path(__file__).parent}/.venv/lib/python3.11/site-packages/layers"


def test_it_is_the_line_that_calls(here, text):
    line = sys._getframe().f_lineno + 1
    index = here()

    assert text(index) == f"{__file__}:{line}"


def test_of_generated_code_in_no_module_it_is_the_line_of_its_caller(here, text):
    space = {"here": here}
    exec(compile("def call():\n    return here()", "<generated>", "exec"), space)

    line = sys._getframe().f_lineno + 1
    index = space["call"]()

    assert text(index) == f"{__file__}:{line}"


def test_lines_are_told_apart(here, text):
    first = text(here())
    second = text(here())

    assert int(second.rpartition(":")[2]) == int(first.rpartition(":")[2]) + 1


def test_a_line_is_the_same_each_time(here):
    assert len({here() for _ in range(3)}) == 1


def test_equal_code_in_two_files_has_two_places(here, text):
    one, two = in_module("one", here), in_module("two", here)

    assert [text(call()) for call in (one, two, one)] == [
        "/somewhere/one.py:2",
        "/somewhere/two.py:2",
        "/somewhere/one.py:2",
    ]


@pytest.mark.parametrize(
    "module", ["gradviz.ops.elementwise.arithmetic", "gradviz", "numpy.core"]
)
def test_frames_of_libraries_are_passed_over(here, text, module):
    call = in_module(module, here)
    line = sys._getframe().f_lineno + 1
    index = call()

    assert text(index) == f"{__file__}:{line}"


def test_a_package_whose_name_only_begins_like_ours_is_the_users(here, text):
    call = in_module("gradvizards", here)

    assert text(call()) == "/somewhere/gradvizards.py:2"


def test_a_call_that_comes_back_through_numpy_is_the_users(here, text):
    class Tensor:
        __array_function__ = in_module("gradviz.tensor", here)

    line = sys._getframe().f_lineno + 1
    index = np.sum(Tensor())

    assert text(index) == f"{__file__}:{line}"


def test_a_thread_of_the_library_has_no_place(here, text):
    found = []
    call = in_module("gradviz.engine", here)
    thread = threading.Thread(target=found.extend, args=(map(call, (1,)),))
    thread.start()
    thread.join()

    assert [text(index) for index in found] == [""]


# --- two lines: a library's, and the program's own ------------------------------------


def test_after_a_librarys_line_comes_the_innermost_of_the_program(here, text):
    layer = in_module("layer", here, INSTALLED)

    def model():
        return layer()

    line = sys._getframe().f_lineno - 2
    index = model()

    assert text(index) == f"{INSTALLED}/layer.py:2 < {__file__}:{line}"


def test_the_standard_library_is_one_too(here, text):
    found = []
    call = in_module("gradviz.engine", here)
    with contextlib.ExitStack() as stack:
        stack.callback(found.extend, map(call, (1,)))

    (library, own) = text(found[0]).split(" < ")
    assert library.startswith(f"{contextlib.__file__}:")
    assert own.startswith(f"{__file__}:")


def test_one_line_of_a_library_is_told_apart_by_who_called_it(here, text):
    layer = in_module("layer", here, INSTALLED)

    first = text(layer())
    second = text(layer())

    lines = [int(one.rpartition(":")[2]) for one in (first, second)]
    assert lines[1] == lines[0] + 1
    assert text(in_module("main", layer)()).endswith(
        "/layer.py:2 < /somewhere/main.py:2"
    )


def test_a_module_that_a_library_generates_elsewhere_is_the_librarys(
    here, text, monkeypatch
):
    package = types.ModuleType("layers")
    package.__file__ = f"{INSTALLED}/__init__.py"
    monkeypatch.setitem(sys.modules, "layers", package)
    generated = in_module("layers.generated", here, "/tmp/layers")

    line = sys._getframe().f_lineno + 1
    index = generated()

    assert text(index) == f"/tmp/layers/layers.generated.py:2 < {__file__}:{line}"


def test_a_library_that_no_program_called_stands_alone(here, text):
    found = []
    call = in_module("layer", here, INSTALLED)
    thread = threading.Thread(target=found.extend, args=(map(call, (1,)),))
    thread.start()
    thread.join()

    assert [text(index) for index in found] == [f"{INSTALLED}/layer.py:2"]


def test_a_function_that_a_library_calls_back_has_one_line(here, text):
    call = in_module("main", here)
    through = in_module("layer", call, INSTALLED)

    assert text(through()) == "/somewhere/main.py:2"


def test_full_stacks_have_the_lines_of_libraries_too(strings, text):
    layer = in_module("layer", Stacks(strings.intern).of_caller, INSTALLED)
    line = sys._getframe().f_lineno + 1
    index = layer()

    start = f"{INSTALLED}/layer.py:2 < {__file__}:{line} < "
    assert text(index).startswith(start)


@pytest.mark.parametrize(
    ("path", "is_own"),
    [
        (__file__, True),
        ("train.py", True),
        ("<string>", True),
        ("/home/me/editable/src/layers/attention.py", True),
        (f"{INSTALLED}/attention.py", False),
        ("C:\\Python\\Lib\\site-packages\\layers\\attention.py", False),
        ("/usr/lib/python3/dist-packages/layers.py", False),
        (contextlib.__file__, False),
        (f"{sys.prefix}/bin/gradviz", False),
        ("<frozen runpy>", False),
    ],
)
def test_files_that_were_installed_are_not_the_programs(path, is_own):
    assert is_of_program(path) == is_own


def test_a_full_table_is_forgotten_and_filled_again(here, monkeypatch):
    monkeypatch.setattr("gradviz.trace.reporting.location._MAX_KNOWN", 1)
    pairs = {(here(), here()) for _ in range(2)}

    assert len(pairs) == 1
