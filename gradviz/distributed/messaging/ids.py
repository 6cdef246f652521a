"""Ids that are unique across workers: 16 bits of worker, 48 of counter.

Contexts, the messages of a forward pass and backward passes have such ids.

Source: torch/csrc/distributed/autograd/context/container.h (D12).
"""

import itertools
from typing import Final

#: Number of bits of an id that count.
COUNTER_BITS: Final = 48

#: The last worker that there can be.
MAX_WORKER: Final = 2**16 - 1

_MAX_COUNT: Final = 2**COUNTER_BITS - 1


def worker_of(identifier: int) -> int:
    """The worker that gave out an id."""
    return identifier >> COUNTER_BITS


class Ids:
    """Gives out the ids of one worker; any thread.

    Args:
        worker: Its rank.
        first: Number at which the counter begins.

    Raises:
        ValueError: There can be no such worker.
    """

    def __init__(self, worker: int, first: int = 0) -> None:
        if not 0 <= worker <= MAX_WORKER:
            raise ValueError(
                f"worker {worker} cannot be: ids have room for 0 to {MAX_WORKER}"
            )
        self.max = (worker << COUNTER_BITS) + _MAX_COUNT
        #: One step of C: two threads never get the same.
        self._counter = itertools.count((worker << COUNTER_BITS) + first)

    def next(self) -> int:
        """Another one.

        Raises:
            RuntimeError: All have been given out.
        """
        identifier = next(self._counter)
        if identifier > self.max:
            raise RuntimeError("We have used all the ids of this worker")
        return identifier
