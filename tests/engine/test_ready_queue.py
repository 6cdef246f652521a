"""The queue in front of a worker: many producers, one consumer."""

from typing import NamedTuple

import pytest

from gradviz.engine.ready_queue import Empty, ReadyQueue
from gradviz.engine.schedule import PyTorchSchedule
from gradviz.engine.sync import THREADS
from tests.engine.nodes import in_thread, start_thread


class Task(NamedTuple):
    name: str
    priority: int


def new_queue(device: int = -1) -> ReadyQueue[Task]:
    return ReadyQueue(THREADS, PyTorchSchedule, device)


def test_all_that_has_arrived_takes_part_in_the_decision():
    """Q2, Q5: what others pushed and what the consumer pushed are one queue."""
    queue = new_queue()
    queue.push(Task("b", 2))
    queue.push_own(Task("a", 3))
    in_thread(lambda: queue.push(Task("c", 1)))

    assert [queue.pop().name for _ in range(3)] == ["a", "b", "c"]


def test_pop_sleeps_until_another_thread_pushes():
    """Q7."""
    queue = new_queue()
    popped = start_thread(lambda: queue.pop().name)

    queue.push(Task("a", 0))

    assert popped.result(10) == "a"


def test_pop_gives_up_after_its_timeout():
    """Q7."""
    with pytest.raises(Empty):
        new_queue().pop(timeout=0.0)


def test_the_length_counts_every_task_wherever_it_waits():
    """Q7."""
    queue = new_queue()
    assert len(queue) == 0
    assert queue.is_empty()

    queue.push(Task("a", 0))
    assert not queue.is_empty()
    queue.push_own(Task("b", 0))

    assert len(queue) == 2
    queue.pop()
    assert len(queue) == 1


def test_a_queue_is_called_by_its_device_or_by_its_id():
    caller, device = new_queue(), new_queue(device=3)

    assert caller.name == f"caller {caller.id}"
    assert device.name == "device 3"
    assert caller.id != device.id
