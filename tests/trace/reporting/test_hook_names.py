"""Names of hooks: of everything that can be one, without running any of it."""

import functools

import pytest

from gradviz.trace.reporting.hook_names import name_of


def scale(grad):
    return grad * 2


def traced(function):
    @functools.wraps(function)
    def call(grad):
        return function(grad)

    return call


@traced
def decorated(grad):
    return grad


class Clip:
    def __call__(self, grad):
        return grad

    def method(self, grad):
        return grad


class Computed:
    """A hook whose attributes run code of the program."""

    def __getattribute__(self, name):
        raise AssertionError(name)

    def __call__(self, grad):
        return grad


def line_of(function):
    code = function.__code__
    return f"{__file__}:{code.co_firstlineno}"


@pytest.mark.parametrize(
    ("hook", "function", "defined_at"),
    [
        (scale, "scale", line_of(scale)),
        (functools.partial(scale), "scale", line_of(scale)),
        (decorated, "decorated", line_of(decorated.__wrapped__)),
        (Clip(), "Clip", line_of(Clip.__call__)),
        (Clip().method, "Clip.method", line_of(Clip.method)),
        (Computed(), "Computed", line_of(Computed.__call__)),
        (print, "print", ""),
        ([].append, "list.append", ""),
        (None, "NoneType", ""),
    ],
    ids=(
        *("function", "partial", "decorated", "callable", "method", "computed"),
        *("builtin", "method of a builtin", "nothing"),
    ),
)
def test_a_hook_is_named_by_what_the_program_wrote(hook, function, defined_at):
    named = name_of(hook)
    assert (named.function, named.defined_at) == (function, defined_at)
    assert named.registered_at == ""


def test_wrappers_that_wrap_themselves_end():
    def call():
        pass

    call.__wrapped__ = call
    assert name_of(call).function.endswith("call")
