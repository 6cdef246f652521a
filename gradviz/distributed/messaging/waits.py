"""Waits of the part of a pass on one worker."""

from collections.abc import Mapping
from typing import NamedTuple

from gradviz.distributed.messaging.ids import worker_of


class Waits(NamedTuple):
    """Gradients and answers that the part of a pass on one worker waits for.

    Attributes:
        unfed: Tensors it sent whose gradients have not arrived: message -> description.
        unanswered: The messages to whose senders it has given gradients, for senders
            that have not answered.
        awaited: Those of them whose answers it waits for.
        has_begun: True if the pass has started here at all.
        has_ended: True if it is over here.
    """

    unfed: Mapping[int, str]
    unanswered: frozenset[int] = frozenset()
    awaited: frozenset[int] = frozenset()
    has_begun: bool = True
    has_ended: bool = False

    def in_words(self) -> str:
        """The gradients that have not come; nothing where the pass has not begun."""
        return ", ".join(self.unfed.values()) if self.has_begun else ""


def in_flight(waits: Mapping[int, Waits]) -> dict[int, str]:
    """Return messages that left one worker and have not reached another.

    They are gradients of a message, or an answer to them from a worker whose part is
    over. One that stays in flight was lost.

    Args:
        waits: The waits of each worker.
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
