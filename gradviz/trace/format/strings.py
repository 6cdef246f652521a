"""Texts as numbers: each is written to a trace once and referred to by its index."""

import itertools
import sys
from collections.abc import Sequence
from typing import Final

#: The table forgets what it knows at this size, so that a program that marks every
#: step with a text of its own does not fill memory. A text seen again gets a new index.
_MAX_KNOWN: Final = 20_000

#: Maximum number of definitions that wait for a writer that has fallen behind.
_MAX_PENDING: Final = 20_000

#: Longer texts are cut: an error's message can be as long as its author likes.
_MAX_LENGTH: Final = 2000

#: The index of a text that nobody kept.
LOST: Final = -1

#: Stands between lines of a program, the innermost first.
CALLED_BY: Final = " < "


class Strings:
    """A table of texts, filled by any thread and emptied by the writer.

    It takes no lock. Of two threads that meet a text for the first time at once each
    may define it, under an index of its own; both definitions are true. A definition
    is put where the writer finds it before its index is told to anybody.
    """

    def __init__(self) -> None:
        self._known: dict[str, int] = {}
        self._next = itertools.count().__next__
        self._pending: list[tuple[int, str]] = []

    def intern(self, text: str) -> int:
        """The index of `text`, `LOST` if the writer has fallen behind. Any thread."""
        index = self._known.get(text)  # nearly always there
        return self._index(text, _MAX_PENDING) if index is None else index

    def define(self, text: str) -> int:
        """The index of `text`, however many wait. The writer's thread only.

        What waits, it will take itself, and a graph of nodes may have more texts than
        ever wait for a writer: a name for each of its modules.
        """
        return self._index(text, sys.maxsize)

    def _index(self, text: str, most_pending: int) -> int:
        if len(text) > _MAX_LENGTH:
            text = shortened(text, _MAX_LENGTH)
        index = self._known.get(text)
        if index is None:
            if len(self._pending) >= most_pending:
                return LOST
            if len(self._known) >= _MAX_KNOWN:
                self._known.clear()
            index = self._next()
            self._pending.append((index, _encodable(text)))
            self._known[text] = index
        return index

    def known(self) -> set[int]:
        """Indices that `intern` may return again without a new definition."""
        return set(self._known.values())

    def take(self) -> list[tuple[int, str]]:
        """The definitions made since the last call. The writer's thread only."""
        pending = self._pending
        taken = pending[:]
        del pending[: len(taken)]  # See Note [Taking rows] in `buffer`.
        return taken


def shortened(text: str, length: int) -> str:
    """`text`, or its first `length` characters and how many there were."""
    if len(text) <= length:
        return text
    return f"{text[:length]}... ({len(text)} characters)"


def without_folders(location: str) -> str:
    """Return the file and line of a ``path:line``, or of each of several."""
    lines = location.replace("\\", "/").split(CALLED_BY)
    return CALLED_BY.join(one.rpartition("/")[2] for one in lines)


def one_a_line(names: Sequence[str]) -> str:
    """The names of a parameter as they stand in a definition."""
    if not names:  # as nearly everywhere but in models
        return ""
    return "\n".join(name.replace("\n", " ") for name in names)


def writable(text: str) -> str:
    """`text`, cut if it is long, with whatever UTF-8 cannot hold spelled out."""
    return _encodable(shortened(text, _MAX_LENGTH))


def _encodable(text: str) -> str:
    return text.encode("utf-8", "backslashreplace").decode("utf-8")
