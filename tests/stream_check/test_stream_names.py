import sys
import weakref

import gradviz as gv
from gradviz.stream_check.stream_names import name_of_stream

at_module_level = gv.Stream("sim:0")


class Refuses:
    """Answers no question about itself."""

    def __getattribute__(self, name):
        raise AssertionError(f"asked for {name}")

    def __eq__(self, other):
        raise AssertionError("compared")

    __hash__ = None


def name_here(stream):
    return name_of_stream(str(stream), sys._getframe(1))


def test_a_variable_of_the_caller_is_found():
    mine = gv.Stream("sim:0")

    assert name_here(mine) == "mine"


def test_a_variable_of_the_module_is_found():
    assert name_here(at_module_level) == "at_module_level"


def test_a_stream_that_nobody_has_has_no_name():
    assert name_of_stream("sim:7/7", sys._getframe()) == ""


def test_an_attribute_of_a_class_is_found():
    class Holder:
        kept = gv.Stream("sim:0")

    assert name_here(Holder.kept) == "Holder.kept"


def test_nothing_of_the_program_is_run():
    odd = [Refuses()]
    odder = Refuses()
    last = gv.Stream("sim:0")

    assert name_here(last) == "last"
    del odd, odder


def test_nothing_is_kept_alive():
    class Thing:
        """Object that can be pointed to weakly."""

    thing, stream = Thing(), gv.Stream("sim:0")
    name_here(stream)
    gone = weakref.ref(thing)
    del thing

    assert gone() is None
