"""Callbacks for a program's later calls into parts that it may never load.

``gradviz run`` registers them before the program starts. This module imports nothing of
ours, so a program that only uses PyTorch pays for no engine, optimizer or actor.
"""

from collections.abc import Callable, Sequence
from contextlib import AbstractContextManager
from typing import Any, Final, Protocol

#: Called with the boxes of the workers that one `spawn` starts. Its result is entered
#: before they run, and left when all have ended or the program is interrupted, before
#: their processes end.
around_actors: Final[list[Callable[[Sequence[Any]], AbstractContextManager[None]]]] = []

#: Called with an optimizer, ours or PyTorch's, that has made a step, or that a
#: GradScaler kept from it because gradients were infinite.
after_step: Final[list[Callable[[object], None]]] = []

#: Called on a watchdog's thread after each report of a standstill.
after_standstill: Final[list[Callable[[], None]]] = []


class WatchableEngine(Protocol):
    """The part of an engine that ``gradviz run`` uses."""

    def watch(self, seconds: float, write: Callable[[str], object]) -> None:
        """See `gradviz.engine.Engine.watch`."""

    def dump_state(self) -> str:
        """See `gradviz.engine.Engine.dump_state`."""


#: Called with the default engine by the thread that makes it, before anyone uses it.
after_default_engine: Final[list[Callable[[WatchableEngine], None]]] = []
