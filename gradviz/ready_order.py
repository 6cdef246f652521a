"""The order of ready tasks in PyTorch's engine.

A schedule is a collection that decides one thing: `pop` returns the task that should
run now. It belongs to the one thread that consumes its queue, so nothing here locks.

The engine runs tasks in this order; a reader of a trace checks that it did. So this
module knows of neither.
"""

from collections.abc import Callable, Iterable, Iterator
from typing import Final, Generic, Protocol, TypeVar

T = TypeVar("T")


class Prioritized(Protocol):
    """A task as a schedule knows it."""

    @property
    def priority(self) -> int:
        """Priority: larger runs first; see Note [Priority in a ready queue]."""


class Schedule(Protocol):
    """A policy, and the tasks that wait under it."""

    def push(self, task: Prioritized) -> None:
        """Add a task."""

    def pop(self) -> Prioritized:
        """Remove and return the task that should run now.

        Raises:
            IndexError: There is none.
        """

    def __len__(self) -> int: ...
    def __iter__(self) -> Iterator[Prioritized]: ...


def in_order(
    start: T,
    waiting: dict[T, int],
    receivers: Callable[[T], Iterable[T]],
    priority: Callable[[T], int],
    schedule: Schedule,
) -> Iterator[T]:
    """Yield tasks in the order in which one thread would run them.

    When a task is yielded, the other ready ones are in `schedule`, and those that it
    makes ready are not yet.

    Args:
        start: The first task.
        waiting: Number of gradients that each other task waits for; counted down.
        receivers: Returns the receivers of a task's gradients, once for each.
        priority: The larger runs first.
        schedule: Empty; chooses among items of `ReadyTask`.
    """
    schedule.push(ReadyTask(start, priority(start)))
    while len(schedule):
        ready = schedule.pop()
        assert isinstance(ready, ReadyTask)
        yield ready.what
        for receiver in receivers(ready.what):
            waiting[receiver] -= 1
            if waiting[receiver] == 0:
                schedule.push(ReadyTask(receiver, priority(receiver)))


class ReadyTask(Generic[T]):
    """An item in the schedule of `in_order`, with its priority."""

    __slots__ = ("priority", "what")

    def __init__(self, what: T, priority: int) -> None:
        self.what = what
        self.priority = priority


# Note [Priority in a ready queue]
# ~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~
# PyTorch compares tasks in this order: shutdown first, then wake-ups (tasks without a
# node), then the larger reentrant depth, then the larger sequence_nr. All of that is
# one integer here: `depth << 64 | sequence_nr` for a node, and two numbers above
# every depth for the others.
#
# Deeper first, so that a backward inside a backward is never starved by the outer one
# that waits for it. Later sequence_nr first, so that the pass unwinds the forward.
#
# Ties are common: every AccumulateGrad has the largest sequence_nr there is. Among
# equals PyTorch's order is that of a C++ binary heap, which is neither first-in nor
# last-in first-out; `PyTorchSchedule` repeats its moves exactly.
# Source: torch/csrc/autograd/engine.h, ReadyQueue::CompareNodeTaskTime (Q2-Q4).

DEPTH_SHIFT: Final = 64
WAKE_UP_PRIORITY: Final = 1 << 128
SHUTDOWN_PRIORITY: Final = 1 << 129


class PyTorchSchedule:
    """PyTorch's order, ties included: `std::push_heap` and `std::pop_heap`.

    Differs from `heapq` in which of two equal tasks comes first, and only in that.

    Attributes:
        heap: The tasks, always the same list; to look at.
    """

    __slots__ = ("heap",)

    def __init__(self) -> None:
        self.heap: list[Prioritized] = []

    def push(self, task: Prioritized) -> None:
        """Add a task."""
        heap = self.heap
        heap.append(task)
        hole = len(heap) - 1
        if hole and heap[(hole - 1) >> 1].priority < task.priority:
            self._sift_up(hole, task)

    def pop(self) -> Prioritized:
        """Remove and return the task with the largest priority.

        The last task fills the empty top: the hole sinks, the larger child rising into
        it (the right one of equals), while that child is not smaller than the task.
        libstdc++ lets the hole sink to a leaf and the task rise from there, which ends
        in the same place.

        Raises:
            IndexError: There is none.
        """
        heap = self.heap
        last = heap.pop()
        if not heap:
            return last
        top = heap[0]
        priority = last.priority
        size = len(heap)
        hole = 0
        child = 2
        while child <= size:
            # There is no right child beyond the end.
            if child == size or heap[child].priority < heap[child - 1].priority:
                child -= 1
            larger = heap[child]
            if larger.priority < priority:
                break
            heap[hole] = larger
            hole = child
            child = 2 * hole + 2
        heap[hole] = last
        return top

    def peek(self) -> Prioritized:
        """Return the task that `pop` would remove.

        Raises:
            IndexError: There is nothing.
        """
        return self.heap[0]

    def _sift_up(self, hole: int, task: Prioritized) -> None:
        heap = self.heap
        priority = task.priority
        while hole > 0:
            parent = (hole - 1) >> 1
            above = heap[parent]
            if above.priority >= priority:
                break
            heap[hole] = above
            hole = parent
        heap[hole] = task

    def __len__(self) -> int:
        return len(self.heap)

    def __iter__(self) -> Iterator[Prioritized]:
        return iter(tuple(self.heap))
