"""Note [Objects under construction]."""

import re
import sys
import threading
from pathlib import Path

import pytest

import gradviz
from gradviz.live_objects import instances_of


def test_objects_are_found_by_their_type_and_not_by_what_they_say():
    class Kind:
        pass

    class Derived(Kind):
        pass

    class Pretender:
        __class__ = Kind

    objects = [Kind(), Derived(), Pretender()]

    assert {id(one) for one in instances_of(Kind)} == {id(one) for one in objects[:2]}


class Turns:
    """A thread that makes tuples: at each turn it ends one, and begins another.

    Attributes:
        num_made: How many it could cut to their length.
        errors: Why it could not cut others.
    """

    def __init__(self):
        self.num_made, self.errors = 0, []
        self._begun, self._goes_on = threading.Semaphore(0), threading.Semaphore(0)
        self._is_over = False
        self._thread = threading.Thread(target=self._make)

    def __enter__(self):
        self._thread.start()
        self._begun.acquire()
        return self

    def __exit__(self, *error):
        self._is_over = True
        self._goes_on.release()
        self._thread.join()

    def take(self, frame, event, argument):
        """Let the other thread have a turn; a trace function."""
        frame.f_trace_opcodes = True
        self._goes_on.release()
        self._begun.acquire()
        return self.take

    def _make(self):
        while not self._is_over:
            try:
                self.num_made += len(tuple(self._items()))
            except SystemError as error:
                self.errors.append(error)

    def _items(self):
        self._begun.release()
        self._goes_on.acquire()
        yield "one, where there is room for ten"


@pytest.fixture
def turns():
    with Turns() as turns:
        yield turns


def test_another_thread_may_end_a_tuple_between_any_two_bytecodes(turns):
    class Kind:
        pass

    one = Kind()
    sys._getframe().f_trace_opcodes = True  # or 3.12.1 would not trace them
    sys.settrace(turns.take)
    try:
        found = instances_of(Kind)
    finally:
        sys.settrace(None)

    assert found == [one]
    assert turns.errors == []
    assert turns.num_made > 20


def test_nobody_else_makes_a_list_of_all_objects():
    """A search for holders of a graph may: a user asked for it, or it is `alone`."""
    asks = re.compile(r"(?<!`)gc\.get_(objects|referrers)\b")
    folder = Path(gradviz.__file__).parent

    found = {
        path.relative_to(folder).as_posix()
        for path in folder.rglob("*.py")
        if asks.search(path.read_text())
    }
    assert found == {"live_objects.py", "diagnostics/live_graphs.py"}
