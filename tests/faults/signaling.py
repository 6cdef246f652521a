"""Programs that send themselves signals while they run the engine."""

import signal
import threading
from collections.abc import Callable
from typing import Self

from tests.faults.scene import wait_until


class Handler:
    """Handler of SIGUSR1 while a program runs the engine, and no longer.

    Args:
        function: Is called for each signal.
    """

    def __init__(self, function: Callable[[], object]) -> None:
        self._function = function
        self._is_active = False

    def __enter__(self) -> Self:
        signal.signal(signal.SIGUSR1, self._handle)
        self._is_active = True
        return self

    def __exit__(self, *error: object) -> None:
        # Stays installed: a signal on its way would end the program.
        self._is_active = False

    def _handle(self, number: int, frame: object) -> None:
        if self._is_active:
            self._function()


def signal_main(is_noticed: Callable[[], bool]) -> None:
    """Send the main thread signals until it has noticed one.

    One that comes when the thread is about to sleep interrupts nothing: Python notices
    it when the thread wakes up.
    """

    def send() -> bool:
        signal.pthread_kill(threading.main_thread().ident or 0, signal.SIGUSR1)
        return is_noticed()

    wait_until(send)


def raising(error: BaseException) -> Callable[[], object]:
    """Return the body of a handler or a node that fails."""

    def function() -> None:
        raise error

    return function


def once(function: Callable[[], object]) -> Callable[[], object]:
    """`function` the first time, and nothing after that."""
    left = [function]

    def call() -> None:
        if left:
            left.pop()()

    return call
