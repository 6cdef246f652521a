"""Rows of events of one pass on one thread."""

from collections.abc import Hashable, Iterator
from typing import Final, TypeAlias

from gradviz.trace.events import (
    BufferFreed,
    Event,
    GradientAccumulated,
    GradientBuffered,
    NodeCompleted,
    NodeStarted,
    TaskPopped,
    TaskPushed,
)
from gradviz.trace.format.row_layouts import Inferred

#: Numbers and texts of rows, one after the other, as `Probe.rows_reported` takes them.
FlatRows: TypeAlias = list[int | str]


class PassRows:
    """Rows of one pass on one thread, as they come.

    The kinds that happen at every node have a list by name.

    Attributes:
        popped, buffered, pushed, accumulated: Inferred.
        started, completed: Seen.
    """

    __slots__ = (
        "_others",
        "accumulated",
        "buffered",
        "completed",
        "freed",
        "popped",
        "pushed",
        "started",
    )

    def __init__(self) -> None:
        self.popped: FlatRows = []
        self.started: FlatRows = []
        self.accumulated: FlatRows = []
        self.buffered: FlatRows = []
        self.pushed: FlatRows = []
        self.freed: FlatRows = []
        self.completed: FlatRows = []
        self._others: dict[Hashable, FlatRows] = {}

    def seen(self, kind: type[Event]) -> FlatRows:
        """Return the list for rows of a kind that happens rarely."""
        return self._others.setdefault(kind, [])

    def inferred(self, kind: type[Event]) -> FlatRows:
        """Return the list for rows of an inferred kind."""
        return self._others.setdefault(Inferred(kind), [])

    def by_kind(self) -> Iterator[tuple[Hashable, FlatRows]]:
        """Yield all lists, by their key."""
        for key, name in _NAMED:
            yield key, getattr(self, name)
        yield from self._others.items()


_NAMED: Final[tuple[tuple[Hashable, str], ...]] = (
    (Inferred(TaskPopped), "popped"),
    (NodeStarted, "started"),
    (Inferred(GradientAccumulated), "accumulated"),
    (Inferred(GradientBuffered), "buffered"),
    (Inferred(TaskPushed), "pushed"),
    (Inferred(BufferFreed), "freed"),
    (NodeCompleted, "completed"),
)
