"""Flows: the arrows between slices, and which of them begin and end at each run."""

from typing import TypeVar

import numpy as np

from gradviz.export.timeline.activity import Activity
from gradviz.trace.format.table import Column

#: One place or many.
Places = TypeVar("Places", int, Column)


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
        self.pushes = FlowsOfRuns(what.queueing.run, size, 1)
        self.taken = FlowsOfRuns(np.where(known, gradients.consumer, -1), size, first)
        self.given = FlowsOfRuns(np.where(known, gradients.producer, -1), size, first)

    def push(self, place: Places) -> Places:
        """Return the number of a push, by its index among the queued tasks."""
        return place + 1

    def gradient(self, number: int) -> int:
        """The place of a gradient by its number."""
        return number - self._num_pushes - 1


class FlowsOfRuns:
    """The numbers of the flows of each run, counted from `first`."""

    def __init__(self, runs: Column, num_runs: int, first: int) -> None:
        order = np.argsort(runs, kind="stable")
        self._bounds = np.searchsorted(runs[order], np.arange(num_runs + 1))
        self._numbers = order + first

    def of(self, run: int) -> list[int]:
        """Return those of one run."""
        begin, end = self._bounds[run : run + 2].tolist()
        found: list[int] = self._numbers[begin:end].tolist()
        return found

    def of_all(self, runs: Column) -> tuple[Column, Column]:
        """Return those of many runs, one after the other, and how many each has."""
        begin, end = self._bounds[runs], self._bounds[runs + 1]
        many = end - begin
        places = np.repeat(end - np.cumsum(many), many) + np.arange(many.sum())
        return self._numbers[places], many
