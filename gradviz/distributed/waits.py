"""What the part of a pass on one worker waits for."""

from collections.abc import Iterable, Mapping
from typing import NamedTuple


class Waits(NamedTuple):
    """What the part of a pass on one worker waits for.

    Attributes:
        unfed: What it sent whose gradients have not come: message -> in words.
        unanswered: The messages to whose senders it has given gradients, of those who
            have not answered.
        has_begun: Whether the pass has come here at all.
    """

    unfed: Mapping[int, str]
    unanswered: frozenset[int]
    has_begun: bool = True

    def in_words(self) -> str:
        """The gradients that have not come; nothing where the pass has not begun."""
        return ", ".join(self.unfed.values()) if self.has_begun else ""


def underway(waits: Iterable[Waits]) -> dict[int, str]:
    """Gradients that have left one worker and not come to the other: message -> words.

    They are on their way; if they stay so, they were lost.
    """
    every = [*waits]
    unfed = {number: words for one in every for number, words in one.unfed.items()}
    sent = frozenset[int]().union(*(one.unanswered for one in every))
    return {number: unfed[number] for number in sorted(sent & unfed.keys())}
