"""What there is to tell of one pass on one thread."""

from collections.abc import Hashable, Iterator
from typing import Final, TypeAlias

from gradviz.trace.events import (
    Event,
    GradientAccumulated,
    GradientBuffered,
    NodeCompleted,
    NodeStarted,
    TaskPopped,
    TaskPushed,
)
from gradviz.trace.joined import Inferred

#: Numbers and texts of rows, one after the other, as `Probe.told` takes them.
FlatRows: TypeAlias = list[int | str]


class Sheet:
    """Rows as they come; of what happens to every node there is a list by name.

    Attributes:
        popped, buffered, pushed, accumulated: Inferred.
        started, completed: Seen.
    """

    __slots__ = (
        "_others",
        "accumulated",
        "buffered",
        "completed",
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
        self.completed: FlatRows = []
        self._others: dict[Hashable, FlatRows] = {}

    def seen(self, kind: type[Event]) -> FlatRows:
        """The rows of a kind that happens rarely."""
        return self._others.setdefault(kind, [])

    def inferred(self, kind: type[Event]) -> FlatRows:
        """The same, of what nobody saw."""
        return self._others.setdefault(Inferred(kind), [])

    def rows(self) -> Iterator[tuple[Hashable, FlatRows]]:
        """All there are, by their key."""
        for key, name in _NAMED:
            yield key, getattr(self, name)
        yield from self._others.items()


_NAMED: Final[tuple[tuple[Hashable, str], ...]] = (
    (Inferred(TaskPopped), "popped"),
    (NodeStarted, "started"),
    (Inferred(GradientAccumulated), "accumulated"),
    (Inferred(GradientBuffered), "buffered"),
    (Inferred(TaskPushed), "pushed"),
    (NodeCompleted, "completed"),
)
