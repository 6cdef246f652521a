"""The ring of ``--keep-odd``: the last step, and those before it that are odd.

A step that has ended leaves the ring as a whole: its slices are kept with the nodes
they refer to, or forgotten. It ends only where no pass is under way; else it goes on
with the next one, so that no pass is torn.
"""

from collections.abc import Callable, Iterator, Sequence
from typing import NamedTuple

from gradviz.trace.format.scope import KeptSteps
from gradviz.trace.recording.rings.odd_steps import OddSteps
from gradviz.trace.recording.rings.ring import (
    NODES,
    Ring,
    RingNodes,
    RingSlice,
    nodes_of,
    size,
)


class _Step(NamedTuple):
    """The kept part of a step, or of several that passes tie together."""

    slices: tuple[RingSlice, ...]
    nodes: tuple[RingNodes, ...]
    size: int
    num_steps: int


class StepRing(Ring):
    """A ring that keeps odd steps; see `Ring` for the rest.

    Args:
        limit: Half of it is for the step that goes on, half for those that are kept.
        known: See `Ring`.
        keep: Number of odd steps that are wanted; see `OddSteps`.
    """

    def __init__(
        self, limit: int, known: Callable[[], tuple[set[int], set[int]]], keep: int
    ) -> None:
        super().__init__(limit // 2, known)
        self._keep = keep
        self._steps = OddSteps[_Step](keep)
        #: The durations of those that the ring holds, of which the last has ended.
        self._held: list[int] = []
        self._num_steps = 0

    def end_step(self, duration: int, *, has_open: bool) -> None:
        """End a step: all slices so far are of it, those that follow are not.

        Args:
            duration: Of the step.
            has_open: True if a pass is under way.
        """
        self._num_steps += 1
        self._held.append(duration)
        if has_open:
            return
        median = self._steps.median
        oddest = max(self._held, key=lambda one: abs(one - median))
        self._steps.add(oddest, self._hold)
        self._held = []
        self._clear()
        while sum(one.size for one in self._steps.held()) > self._limit:
            if not self._steps.drop_one():
                break

    def kept_steps(self) -> KeptSteps:
        """Return the header's entry on the kept steps."""
        return KeptSteps(
            keep=self._keep,
            total=self._num_steps,
            kept=sum(one.num_steps for one in self._steps.chosen()) + len(self._held),
            median_ns=self._steps.median,
        )

    def _hold(self) -> _Step:
        """Keep the contents of the ring."""
        slices = tuple(self._slices)
        used = {
            number
            for name, numbers in self._numbers(slices)
            if name in NODES
            for number in numbers
        }
        rows = [row for one in self._nodes for row in self._rows(one) if row.id in used]
        nodes = (nodes_of(self._round, rows),) if rows else ()
        held = sum(map(size, slices)) + sum(map(size, nodes))
        return _Step(slices, nodes, held, len(self._held))

    def _clear(self) -> None:
        """Forget the slices, and the nodes that no later pass can refer to.

        Of a pass that begins from now on, nodes may have come in the round before; see
        `_is_needed`.
        """
        self._slices.clear()
        self._slices_size = 0
        first = self._round - 1
        self._nodes = [one for one in self._nodes if one.round >= first]
        self._nodes_size = sum(map(size, self._nodes))
        for place, last in tuple(self._needed_until.items()):
            if last < first:
                del self._needed_until[place]

    def _all_slices(self) -> Iterator[RingSlice]:
        for step in self._steps.held():
            yield from step.slices
        yield from super()._all_slices()

    def _all_nodes(self) -> Iterator[RingNodes]:
        for step in self._steps.held():
            yield from step.nodes
        yield from super()._all_nodes()

    def _written(self) -> tuple[Sequence[RingNodes], Sequence[RingSlice]]:
        nodes, slices = super()._written()
        chosen = self._steps.chosen()
        return (
            [*(node for step in chosen for node in step.nodes), *nodes],
            [*(one for step in chosen for one in step.slices), *slices],
        )
