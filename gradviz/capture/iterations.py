"""Ends of the iterations of a training loop, derived from its optimizers.

Note [Iterations]
~~~~~~~~~~~~~~~~~
A loop with one optimizer steps it once per iteration. With several, as in a GAN, an
iteration ends with the last of them, which is known when the first steps again. So the
optimizers that stepped in the previous iteration are expected to step in this one too,
and it ends once all of them have. In the very first, none are known: it ends with the
first step, and optimizers that step after that, before the first one steps again, are
late members of it.

If one steps again while others are still expected, the loop has changed, and the
iteration had ended before: it is counted at once, and those others are no longer
expected. If the last late member steps again before the first does, it had started an
iteration of its own, like LBFGS continuing where Adam stopped.

A step without a backward since the last step belongs to the same iteration: several
optimizers for one loss, an optimizer that calls another, a step made only to create a
state to load into.
"""

import weakref
from collections.abc import Callable, Hashable
from typing import Final, TypeAlias

from gradviz.trace.reporting.ids import num_passes

_Optimizers: TypeAlias = dict[Hashable, "weakref.ref[object]"]


class Iterations:
    """Counts iterations by the steps of optimizers of either engine.

    It has no lock: two threads that step at the same moment may count one too few.

    Args:
        num_passes: Number of backward passes that have begun.
    """

    def __init__(self, num_passes: Callable[[], int] = num_passes) -> None:
        self._num_passes: Final = num_passes
        self._seen = num_passes()
        #: Those that have stepped in this iteration, and those that did in the last.
        self._members: _Optimizers = {}
        self._expected: _Optimizers = {}
        #: The last one that stepped though the iteration had ended.
        self._late: Hashable = None
        self._has_ended = False

    def ended_by(self, optimizer: object) -> int:
        """Note a step that has ended; how many iterations ended with it, mostly 1."""
        seen, self._seen = self._seen, self._num_passes()
        has_pass = seen != self._seen
        key = id(optimizer)
        self._members = _alive(self._members)
        if self._members and key not in self._members:
            self._members[key] = weakref.ref(optimizer)
            if not self._has_ended:
                return self._end_if_complete()
            if has_pass:
                self._late = key
            return 0
        return self._begin(optimizer) if has_pass else 0

    def _begin(self, optimizer: object) -> int:
        """The first step of an iteration."""
        key, before = id(optimizer), self._members
        self._members = {key: weakref.ref(optimizer)}
        was_alone = key == self._late
        was_missed = bool(before) and (was_alone or not self._has_ended)
        self._expected = self._members if was_alone else before
        self._late, self._has_ended = None, False
        return was_missed + self._end_if_complete()

    def _end_if_complete(self) -> int:
        self._has_ended = self._members.keys() >= _alive(self._expected).keys()
        return int(self._has_ended)


def _alive(some: _Optimizers) -> _Optimizers:
    return {key: one for key, one in some.items() if one() is not None}
