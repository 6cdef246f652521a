import sys
import threading

import numpy as np
import pytest

from gradviz.trace.location import Locations
from gradviz.trace.strings import Strings


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


def in_module(name, here):
    """A function that asks from the second line of a module of this name."""
    space = {"__name__": name, "here": here}
    source = "def call(*arguments):\n    return here()"
    exec(compile(source, f"/somewhere/{name}.py", "exec"), space)
    return space["call"]


def test_it_is_the_line_that_calls(here, text):
    line = sys._getframe().f_lineno + 1
    index = here()

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


def test_a_full_table_is_forgotten_and_filled_again(here, monkeypatch):
    monkeypatch.setattr("gradviz.trace.location._MAX_KNOWN", 1)
    pairs = {(here(), here()) for _ in range(2)}

    assert len(pairs) == 1
