"""The order among ready tasks: PyTorch's, ties included."""

from collections.abc import Callable
from typing import NamedTuple, TypeVar

import pytest
from hypothesis import given
from hypothesis import strategies as st

from gradviz.engine import AccumulateGrad, Engine, PyTorchSchedule
from gradviz.engine.graph.node import MAX_SEQUENCE_NR
from gradviz.ready_order import DEPTH_SHIFT, SHUTDOWN_PRIORITY, WAKE_UP_PRIORITY
from tests.engine.nodes import Leaf, Pass

T = TypeVar("T")


class Task(NamedTuple):
    name: str
    priority: int


def drained(schedule: PyTorchSchedule) -> list[str]:
    return [schedule.pop().name for _ in range(len(schedule))]


def of_node(depth: int, sequence_nr: int) -> int:
    return (depth << DEPTH_SHIFT) + sequence_nr


def test_shutdown_comes_before_wake_up_before_any_node():
    """Q2, Q6: whatever the depth of the nodes."""
    schedule = PyTorchSchedule()
    for task in (
        Task("deep", of_node(8_193, MAX_SEQUENCE_NR)),
        Task("wake-up", WAKE_UP_PRIORITY),
        Task("shallow", of_node(0, 0)),
        Task("shutdown", SHUTDOWN_PRIORITY),
    ):
        schedule.push(task)

    assert drained(schedule) == ["shutdown", "wake-up", "deep", "shallow"]


def test_a_deeper_pass_comes_before_any_sequence_nr():
    """Q2, RE7."""
    schedule = PyTorchSchedule()
    schedule.push(Task("leaf of the outer pass", of_node(0, MAX_SEQUENCE_NR)))
    schedule.push(Task("inner", of_node(1, 0)))
    schedule.push(Task("innermost", of_node(2, 0)))

    assert drained(schedule) == ["innermost", "inner", "leaf of the outer pass"]


def test_the_node_made_last_comes_first():
    """Q2: larger sequence_nr first."""
    schedule = PyTorchSchedule()
    for sequence_nr in (3, 9, 1, 7):
        schedule.push(Task(str(sequence_nr), of_node(0, sequence_nr)))

    assert drained(schedule) == ["9", "7", "3", "1"]


# PyTorch 2.13, one node that feeds k leaves, in the order of its edges (G3).
GOLDEN_ORDER = {
    2: [0, 1],
    3: [0, 1, 2],
    4: [0, 2, 1, 3],
    5: [0, 2, 4, 1, 3],
    6: [0, 2, 5, 4, 1, 3],
    7: [0, 2, 5, 6, 4, 1, 3],
    8: [0, 2, 6, 5, 7, 4, 1, 3],
    9: [0, 2, 6, 8, 5, 7, 4, 1, 3],
    10: [0, 2, 6, 9, 8, 5, 7, 4, 1, 3],
}


@pytest.mark.parametrize("k", GOLDEN_ORDER)
def test_leaves_of_one_node_run_in_pytorchs_order(engine: Engine, k: int):
    """Q4, G3, N2."""
    ran: list[int] = []
    leaves = [AccumulateGrad(Leaf()) for _ in range(k)]
    for index, leaf in enumerate(leaves):
        leaf.post_hooks = (lambda _, index=index: ran.append(index),)

    engine.execute([(Pass(*leaves), 0)], [1.0])

    assert ran == GOLDEN_ORDER[k]


@given(
    st.lists(
        st.one_of(st.just("pop"), st.integers(0, 4)), min_size=1, max_size=80
    ).filter(lambda steps: "pop" in steps)
)
def test_it_moves_as_a_heap_of_libstdcxx_does(steps: list[str | int]):
    """Q4: any mix of pushes and pops, few distinct priorities, so that ties abound."""
    schedule, heap = PyTorchSchedule(), StdPriorityQueue[Task](by_priority)
    for number, step in enumerate(steps):
        if isinstance(step, int):
            task = Task(f"{number}", step)
            schedule.push(task)
            heap.push(task)
        elif len(schedule):
            assert schedule.pop() is heap.pop()

    assert [schedule.pop() for _ in range(len(schedule))] == heap.drain()


def test_a_schedule_lists_what_waits_in_it_and_counts_it():
    schedule = PyTorchSchedule()
    for name in "abc":
        schedule.push(Task(name, 0))
    schedule.pop()

    assert sorted(task.name for task in schedule) == ["b", "c"]
    assert len(schedule) == 2


def by_priority(left: Task, right: Task) -> bool:
    return left.priority < right.priority


class StdPriorityQueue(list[T]):
    """`std::priority_queue`, written from the C++ of bits/stl_heap.h and nothing else.

    The names are those of that header; the arrows of its iterators became indices.
    """

    def __init__(self, compare: Callable[[T, T], bool]) -> None:
        super().__init__()
        self.compare = compare

    def push(self, value: T) -> None:
        self.append(value)
        self.push_heap(len(self) - 1, 0, value)

    def pop(self) -> T:  # type: ignore[override]
        result = self[0]
        value = self[-1]
        if len(self) > 1:
            self.adjust_heap(0, len(self) - 1, value)
        del self[-1]
        return result

    def drain(self) -> list[T]:
        return [self.pop() for _ in range(len(self))]

    def push_heap(self, hole_index: int, top_index: int, value: T) -> None:
        parent = (hole_index - 1) // 2
        while hole_index > top_index and self.compare(self[parent], value):
            self[hole_index] = self[parent]
            hole_index = parent
            parent = (hole_index - 1) // 2
        self[hole_index] = value

    def adjust_heap(self, hole_index: int, length: int, value: T) -> None:
        top_index = hole_index
        second_child = hole_index
        while second_child < (length - 1) // 2:
            second_child = 2 * (second_child + 1)
            if self.compare(self[second_child], self[second_child - 1]):
                second_child -= 1
            self[hole_index] = self[second_child]
            hole_index = second_child
        if length % 2 == 0 and second_child == (length - 2) // 2:
            second_child = 2 * (second_child + 1)
            self[hole_index] = self[second_child - 1]
            hole_index = second_child - 1
        self.push_heap(hole_index, top_index, value)
