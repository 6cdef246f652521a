"""Orders of ready tasks by name: PyTorch's, and others for comparison.

The engine runs passes in these orders, and `gradviz simulate` recorded ones. Wake-ups
and shutdowns come first in each: they are no work, and a thread that waits for one must
not wait behind work.
"""

import collections
import random
from collections.abc import Callable, Iterator

from gradviz.ready_order import (
    WAKE_UP_PRIORITY,
    Prioritized,
    PyTorchSchedule,
    Schedule,
)


def schedules_named(name: str) -> Callable[[], Schedule]:
    """Return a factory of schedules: of ``pytorch``, ``fifo`` or ``random:SEED``.

    The same seed draws the same order, on a graph for one device.

    Raises:
        ValueError: There is no such order.
    """
    kind, _, argument = name.partition(":")
    match kind, argument:
        case "pytorch", "":
            return PyTorchSchedule
        case "fifo", "":
            return FifoSchedule
        case "random", seed if seed.isdecimal():
            seeds = random.Random(int(seed))
            return lambda: RandomSchedule(random.Random(seeds.getrandbits(64)))
        case _:
            raise ValueError(
                f"unknown schedule {name!r}: expected 'pytorch', 'fifo' or "
                f"'random:SEED', such as 'random:7'"
            )


class FifoSchedule:
    """First in, first out: the order in which nodes become ready."""

    __slots__ = ("_tasks", "_urgent")

    def __init__(self) -> None:
        self._urgent: collections.deque[Prioritized] = collections.deque()
        self._tasks: collections.deque[Prioritized] = collections.deque()

    def push(self, task: Prioritized) -> None:
        """Add a task."""
        is_urgent = task.priority >= WAKE_UP_PRIORITY
        (self._urgent if is_urgent else self._tasks).append(task)

    def pop(self) -> Prioritized:
        """Remove and return the task that should run now.

        Raises:
            IndexError: There is none.
        """
        return (self._urgent or self._tasks).popleft()

    def __len__(self) -> int:
        return len(self._urgent) + len(self._tasks)

    def __iter__(self) -> Iterator[Prioritized]:
        return iter((*self._urgent, *self._tasks))


class RandomSchedule:
    """Any ready node, drawn at random: every legal order may happen.

    Args:
        source: Random number generator.
    """

    __slots__ = ("_random", "_tasks", "_urgent")

    def __init__(self, source: random.Random) -> None:
        self._random = source
        self._urgent: list[Prioritized] = []
        self._tasks: list[Prioritized] = []

    def push(self, task: Prioritized) -> None:
        """Add a task."""
        is_urgent = task.priority >= WAKE_UP_PRIORITY
        (self._urgent if is_urgent else self._tasks).append(task)

    def pop(self) -> Prioritized:
        """Remove and return the task that should run now.

        Raises:
            IndexError: There is none.
        """
        if self._urgent:
            return self._urgent.pop(0)
        tasks = self._tasks
        if not tasks:
            raise IndexError("pop from an empty schedule")
        chosen = self._random.randrange(len(tasks))
        tasks[chosen], tasks[-1] = tasks[-1], tasks[chosen]
        return tasks.pop()

    def __len__(self) -> int:
        return len(self._urgent) + len(self._tasks)

    def __iter__(self) -> Iterator[Prioritized]:
        return iter((*self._urgent, *self._tasks))
