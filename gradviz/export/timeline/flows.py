"""Flows: the arrows between slices, and which of them begin and end at each run."""

from collections.abc import Callable

import numpy as np

from gradviz.export.timeline.activity import Activity
from gradviz.trace.format.table import Column

#: Gives the places of what belongs to a run, by the run's place.
Places = Callable[[int], list[int]]


class Flows:
    """Arrows from pushes to pops, and from node to node with a gradient.

    Each has a number of its own. There is none where one of its ends is not known.

    Args:
        what: Activity that the trace tells.

    Attributes:
        pushes: The numbers of the pushes that end at a run.
        taken: Those of the gradients that end at it.
        given: Those of the gradients that begin at it.
    """

    def __init__(self, what: Activity) -> None:
        size = len(what.runs.node)
        gradients = what.gradients
        known = (gradients.producer >= 0) & (gradients.consumer >= 0)
        self._num_pushes = len(what.queueing.run)
        first = self._num_pushes + 1
        self.pushes = _grouped(what.queueing.run, size, 1)
        self.taken = _grouped(np.where(known, gradients.consumer, -1), size, first)
        self.given = _grouped(np.where(known, gradients.producer, -1), size, first)

    def push(self, place: int) -> int:
        """Return the number of a push, by its index among the queued tasks."""
        return place + 1

    def gradient(self, number: int) -> int:
        """The place of a gradient by its number."""
        return number - self._num_pushes - 1


def _grouped(runs: Column, size: int, first: int) -> Places:
    """Return the numbers of each run's items, counted from `first`."""
    order = np.argsort(runs, kind="stable")
    bounds = np.searchsorted(runs[order], np.arange(size + 1)).tolist()

    def numbers(run: int) -> list[int]:
        found: list[int] = (order[bounds[run] : bounds[run + 1]] + first).tolist()
        return found

    return numbers
