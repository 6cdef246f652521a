import gc
import re
import sys
import threading
import weakref
from pathlib import Path

import pytest

import gradviz
from gradviz.diagnostics.live_graphs import live_graphs, own_live_graphs
from gradviz.pytorch.watching.counted_passes import UncountedPasses
from gradviz.thread_frames import outwards, thread_frames, variables_of
from gradviz.trace.recording.recorder import alone


def test_each_thread_has_its_innermost_frame():
    waits, goes_on = threading.Event(), threading.Event()

    def elsewhere() -> None:
        waits.set()
        goes_on.wait(30)

    thread = threading.Thread(target=elsewhere)
    thread.start()
    waits.wait(30)
    frame = thread_frames()[thread.ident]
    goes_on.set()
    thread.join()

    names = []
    while frame is not None:
        names.append(frame.f_code.co_name)
        frame = frame.f_back
    assert "elsewhere" in names


@pytest.mark.parametrize("enabled", [True, False])
def test_collections_are_off_meanwhile_and_then_as_before(monkeypatch, enabled):
    """Note [Frames of threads]."""
    meanwhile = []
    monkeypatch.setattr(
        sys, "_current_frames", lambda: meanwhile.append(gc.isenabled()) or {}
    )
    was_enabled = gc.isenabled()
    (gc.enable if enabled else gc.disable)()
    try:
        assert thread_frames() == {}
        assert meanwhile == [False]
        assert gc.isenabled() is enabled
    finally:
        (gc.enable if was_enabled else gc.disable)()


def is_alone():
    with alone() as answer:
        return answer


def passes_exist():
    passes = UncountedPasses(is_alone.__code__, is_alone.__code__)
    passes.may_exist = True
    return passes.exist()


@pytest.mark.parametrize(
    "read", [thread_frames, is_alone, passes_exist, own_live_graphs, live_graphs]
)
def test_nothing_outlives_a_function_because_its_frame_was_read(read):
    """Note [Frames of threads]: no frame is in a cycle."""

    class Held:
        pass

    def program():
        held = Held()
        read()
        return weakref.ref(held)

    was_enabled = gc.isenabled()
    gc.disable()
    try:
        assert program()() is None
    finally:
        if was_enabled:
            gc.enable()


class Frame:
    """A frame that notes if collections are on while it is read."""

    def __init__(self, caller=None):
        self.caller = caller
        self.meanwhile = []

    @property
    def f_locals(self):
        self.meanwhile.append(gc.isenabled())
        return {"x": 1}

    @property
    def f_back(self):
        self.meanwhile.append(gc.isenabled())
        return self.caller


def test_collections_are_off_while_a_frame_is_read():
    """Note [Frames of threads]: the interpreter may crash in there."""
    frame = Frame(Frame())

    assert variables_of(frame) == {"x": 1}
    assert list(outwards(frame)) == [frame, frame.caller]
    assert frame.meanwhile == [False, False]
    assert frame.caller.meanwhile == [False]
    assert gc.isenabled()


def test_no_other_module_asks_for_frames_of_threads():
    """Note [Frames of threads]: the interpreter may hang in there."""
    sources = Path(gradviz.__path__[0]).rglob("*.py")
    ask = re.compile(r"sys\._current_(frames|exceptions)\b(?!`)")

    assert [one.name for one in sources if ask.search(one.read_text())] == [
        "thread_frames.py"
    ]
