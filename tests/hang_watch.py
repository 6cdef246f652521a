"""A timer that ends a process in which a test hangs, with the stacks of all threads.

Nothing softer is sure to get through to a thread that waits inside the interpreter.

Note [One timer for many tests]
~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~
pytest can arm such a timer for each test. Arming starts a thread, and disarming waits
until that thread has ended: a millisecond on busy cores, for each of 17,000 tests. This
timer runs on from test to test instead, and is armed anew only for a test that would
find too little time left. A hanging test is ended after its timeout at the earliest,
and after a tenth more at the latest.
"""

import faulthandler
import os
import sys
import time
from collections.abc import Iterator
from typing import Final

import pytest

#: The part of the timeout that the timer may have run before a test gets a new one.
SLACK: Final = 0.1

_armed_at: float | None = None


class HangWatch:
    """Plugin of pytest that keeps the timer armed while tests run."""

    def __init__(self, timeout_s: float) -> None:
        self._timeout_s = timeout_s
        # Tests may capture or close stderr itself.
        self._output = os.dup(sys.stderr.fileno())

    @pytest.hookimpl(wrapper=True)
    def pytest_runtest_protocol(self, nextitem: pytest.Item | None) -> Iterator[None]:
        global _armed_at
        now = time.monotonic()
        if _armed_at is None or now - _armed_at > SLACK * self._timeout_s:
            timeout_s = (1 + SLACK) * self._timeout_s
            faulthandler.dump_traceback_later(timeout_s, exit=True, file=self._output)
            _armed_at = now
        result = yield
        if nextitem is None:  # other processes may have tests left
            disarm()
        return result

    def pytest_enter_pdb(self) -> None:
        disarm()

    def pytest_unconfigure(self) -> None:
        disarm()
        os.close(self._output)


def disarm() -> None:
    """Stop the timer; the next test arms it anew."""
    global _armed_at
    faulthandler.cancel_dump_traceback_later()
    _armed_at = None
