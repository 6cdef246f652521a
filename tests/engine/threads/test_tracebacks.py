import traceback
from pathlib import Path
from types import TracebackType
from typing import Any

import pytest

import gradviz
from gradviz.engine import Engine
from gradviz.engine.threads.tracebacks import shorten
from tests.engine.nodes import PLACES, run_at

PACKAGE = str(Path(gradviz.__file__).parent)


@pytest.mark.parametrize("place", PLACES)
def test_between_execute_and_a_node_is_nothing(engine: Engine, place: str):
    def a_line_of_the_users(grad: Any) -> Any:
        raise ValueError("mine")

    with pytest.raises(ValueError, match="mine") as caught:
        run_at(engine, place, a_line_of_the_users)

    frames = traceback.extract_tb(caught.value.__traceback__)
    ours = [frame for frame in frames if frame.filename.startswith(PACKAGE)]
    assert [frame.name for frame in ours] == ["execute"]
    assert frames[-1].name == "a_line_of_the_users"


def test_an_error_that_was_never_raised_has_none():
    error = ValueError()

    shorten(error)

    assert error.__traceback__ is None


def test_a_frame_may_have_no_line():
    """An interrupt may strike a bytecode that belongs to no line."""

    def somewhere() -> None:
        raise ValueError

    somewhere.__code__ = somewhere.__code__.replace(co_linetable=b"")
    with pytest.raises(ValueError, match=r"^$") as caught:
        somewhere()

    shorten(caught.value)

    entry = caught.value.__traceback__
    while entry.tb_next is not None:
        entry = entry.tb_next
    without = TracebackType(None, entry.tb_frame, entry.tb_lasti, -1)
    assert entry.tb_frame.f_code.co_name == "somewhere"
    assert entry.tb_lineno == without.tb_lineno  # None, or -1 in early 3.11


def raised_in(*names: object) -> ValueError:
    """An error that went through a function of a module of each of these names."""
    error = ValueError()

    def fail() -> None:
        raise error

    call: Any = fail
    for name in reversed(names):
        scope = {"__name__": name, "call": call}
        exec("def function(): call()", scope)
        call = scope["function"]
    with pytest.raises(ValueError, match=r"^$"):
        call()
    assert error.__traceback__ is not None
    error.__traceback__ = error.__traceback__.tb_next  # without this function's
    return error


def modules_of(error: BaseException) -> list[object]:
    found = []
    entry = error.__traceback__
    while entry is not None:
        found.append(entry.tb_frame.f_globals.get("__name__"))
        entry = entry.tb_next
    return found


@pytest.mark.parametrize(
    ("names", "kept"),
    [
        (["gradviz.a", "gradviz.b", "mine"], ["gradviz.a", "mine"]),
        (["gradviz.a", "mine", "gradviz", "yours"], ["gradviz.a", "mine", "yours"]),
        (["mine", "gradviz.a", "gradviz.b"], ["mine"]),
        (["gradviz_of_mine", "gradvizier"], ["gradviz_of_mine", "gradvizier"]),
        ([None, 5, "gradviz.a", b"gradviz"], [None, 5, b"gradviz"]),
    ],
)
def test_frames_of_gradviz_are_left_out_but_for_the_first(names, kept):
    error = raised_in(*names)

    shorten(error)

    assert modules_of(error) == [*kept, __name__]


def test_traceback_entries_after_the_removed_frames_are_kept_and_not_copied():
    error = raised_in("gradviz.a", "mine", "gradviz.b", "gradviz.c", "yours")
    entry = error.__traceback__
    for _ in range(4):
        entry = entry.tb_next

    shorten(error)

    assert modules_of(error) == ["gradviz.a", "mine", "yours", __name__]
    assert error.__traceback__.tb_next.tb_next is entry
