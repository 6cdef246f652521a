"""What the part of a pass on one worker waits for."""

from collections.abc import Mapping
from typing import NamedTuple

from gradviz.distributed.ids import worker_of


class Waits(NamedTuple):
    """What the part of a pass on one worker waits for.

    Attributes:
        unfed: What it sent whose gradients have not come: message -> in words.
        unanswered: The messages to whose senders it has given gradients, of those who
            have not answered.
        awaited: Those of them whose answers it waits for.
        has_begun: Whether the pass has come here at all.
        has_ended: Whether it is over here.
    """

    unfed: Mapping[int, str]
    unanswered: frozenset[int] = frozenset()
    awaited: frozenset[int] = frozenset()
    has_begun: bool = True
    has_ended: bool = False

    def in_words(self) -> str:
        """The gradients that have not come; nothing where the pass has not begun."""
        return ", ".join(self.unfed.values()) if self.has_begun else ""


def underway(waits: Mapping[int, Waits]) -> dict[int, str]:
    """What has left one worker and not come to the other: message -> in words.

    Gradients of a message, or the answer to them of a worker whose part is over. It is
    on its way; if it stays so, it was lost.

    Args:
        waits: What each worker waits for.
    """
    every = waits.values()
    unfed = {number: words for one in every for number, words in one.unfed.items()}
    sent = frozenset[int]().union(*(one.unanswered for one in every))
    found = {number: f"gradients for {unfed[number]}" for number in sent & unfed.keys()}
    for number in frozenset[int]().union(*(one.awaited for one in every)):
        node = worker_of(number)
        if node in waits and waits[node].has_ended:
            found[number] = (
                f"the answer of node {node} to gradients for its message {number}"
            )
    return dict(sorted(found.items()))
