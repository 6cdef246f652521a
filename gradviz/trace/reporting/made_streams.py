"""Streams that a program makes: the line of each, and a call when the first appears.

Backends report them here, below themselves, so that a recording can ask for them before
any backend is loaded. A program of PyTorch's loads none.
"""

import weakref
from collections.abc import Callable
from typing import Final

from gradviz.locks import SafeRLock

#: The line at which each stream was made, by its text; the latest, as streams come from
#: a pool. Objects that become text when asked. Any thread: one store each.
_made_at: Final[dict[str, object]] = {}

#: Methods to call for the first stream that is not a default one; None once there is
#: one. Guarded by `_first_lock`, with which nothing is called.
_waiting_for_first: list[weakref.WeakMethod[Callable[[], None]]] | None = []
_first_lock: Final = SafeRLock()  # a finalizer may come in between


def stream_made(stream: str, line: object) -> None:
    """Note that the program has made a stream, not a default one.

    Args:
        stream: Its text, such as ``sim:0/1``.
        line: The line of the program, an object with that text; None if unknown.
    """
    if line:
        _made_at[stream] = line
    if _waiting_for_first is not None:
        _tell_of_first()


def made_at(stream: str) -> str:
    """Return the line of the program that made a stream, empty if it is not known."""
    line = _made_at.get(stream)
    return "" if line is None else str(line)


def on_first_stream(call: Callable[[], None]) -> None:
    """Call a method when the program makes its first stream, not a default one.

    At once if it has any. Else by the thread that makes it, before it has the stream.
    The method's object is not kept alive for it.
    """
    global _waiting_for_first
    with _first_lock:
        waiting = _waiting_for_first
        if waiting is not None:
            alive = [method for method in waiting if method() is not None]
            _waiting_for_first = [*alive, weakref.WeakMethod(call)]
            return
    call()


def _tell_of_first() -> None:
    global _waiting_for_first
    with _first_lock:
        waiting, _waiting_for_first = _waiting_for_first, None
    for method in waiting or ():
        if (call := method()) is not None:
            call()
