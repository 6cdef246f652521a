"""Odd steps: those of a long run that took unusually long or short, in bounded space.

Note [Farthest from a median]
~~~~~~~~~~~~~~~~~~~~~~~~~~~~~
The median moves as steps arrive, so the steps that are farthest from it now need not be
in the end. But whatever it will be, the N steps farthest from it are among the N
longest and the N shortest. So these 2 N are kept, and the final choice is made on
request.

The first step, which warms up, is kept and not compared with the others. A sample of N
steps, each equally likely, shows the usual ones.
"""

from bisect import insort
from collections.abc import Callable, Iterator
from random import Random
from typing import Final, Generic, TypeVar

Kept = TypeVar("Kept")

#: Of so many durations the median is exact; of more it is that of a sample.
_MOST_DURATIONS: Final = 100_000


class OddSteps(Generic[Kept]):
    """Decides which steps are kept. One thread at a time.

    Args:
        keep: Number of odd steps that are wanted, and of those in the sample.

    Attributes:
        total: Steps so far.
    """

    def __init__(self, keep: int) -> None:
        self.total = 0
        self._keep = keep
        self._durations: list[int] = []  # sorted
        #: Durations and numbers of steps, sorted; the longest with numbers below 0, so
        #: that of those that took as long the first stays, and is not replaced.
        self._longest: list[tuple[int, int]] = []
        self._shortest: list[tuple[int, int]] = []
        self._sample: list[int] = []
        self._held: dict[int, Kept] = {}
        self._random = Random(0)  # its own: the program's is left as it is

    def add(self, duration: int, hold: Callable[[], Kept]) -> None:
        """Take the next step, and keep it or not.

        Args:
            duration: Of the step, in any unit.
            hold: Returns what is to be kept of it; called only if it is.
        """
        number, self.total = self.total, self.total + 1
        if number:
            self._note(duration)
            self._compare(duration, number)
        else:
            self._sample.append(number)
        wanted = self._wanted()
        if number in wanted:
            self._held[number] = hold()
        for gone in self._held.keys() - wanted:
            del self._held[gone]

    @property
    def median(self) -> int:
        """The median duration of all but the first step; 0 if there is none."""
        some = self._durations
        return some[len(some) // 2] if some else 0

    def held(self) -> Iterator[Kept]:
        """Everything that is held, in the order of the steps."""
        for number in sorted(self._held):
            yield self._held[number]

    def chosen(self) -> list[Kept]:
        """Return the first step, the odd ones and the sample, in their order."""
        numbers = {*self._sample, *self._oddest()[: self._keep]}
        return [self._held[one] for one in sorted(numbers) if one in self._held]

    def drop_one(self) -> bool:
        """Drop the least interesting step; False if only one is left."""
        if len(self._held) < 2:
            return False
        order = [*self._oddest(), *self._sample]
        least = max(self._held, key=order.index)
        del self._held[least]
        return True

    def _note(self, duration: int) -> None:
        if len(self._durations) < _MOST_DURATIONS:
            insort(self._durations, duration)
        elif (place := self._random.randrange(self.total)) < _MOST_DURATIONS:
            del self._durations[place]
            insort(self._durations, duration)

    def _compare(self, duration: int, number: int) -> None:
        insort(self._longest, (duration, -number))
        del self._longest[: -self._keep]
        insort(self._shortest, (duration, number))
        del self._shortest[self._keep :]
        if len(self._sample) <= self._keep:  # the first step is one more
            self._sample.append(number)
        elif (place := self._random.randrange(number)) < self._keep:
            self._sample[place + 1] = number

    def _oddest(self) -> list[int]:
        """The candidates, the one farthest from the median first."""
        median = self.median
        some = {(abs(one - median), abs(number)) for one, number in self._extremes()}
        return [number for _, number in sorted(some, key=lambda one: (-one[0], one[1]))]

    def _wanted(self) -> set[int]:
        return {*self._sample, *(abs(number) for _, number in self._extremes())}

    def _extremes(self) -> Iterator[tuple[int, int]]:
        yield from self._longest
        yield from self._shortest
