"""The queue in front of a worker: many producers, one consumer."""

from typing import NamedTuple

import pytest

from gradviz.engine.graph.sync import THREADS
from gradviz.engine.tasks.ready_queue import Empty, ReadyQueue
from gradviz.named_orders import FifoSchedule
from gradviz.ready_order import PyTorchSchedule
from tests.engine.nodes import in_thread, start_thread


class Task(NamedTuple):
    name: str
    priority: int


def new_queue(device: int = -1) -> ReadyQueue:
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

    assert popped.result(60) == "a"


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


def test_a_queue_that_is_cleared_gives_all_its_tasks_back():
    """F11: what the consumer has seen, and what it has not."""
    queue = new_queue()
    queue.push_own(Task("seen", 1))
    queue.push(Task("unseen", 2))

    tasks = queue.clear()

    assert sorted(task.name for task in tasks) == ["seen", "unseen"]
    assert queue.is_empty()
    assert len(queue) == len(queue.seen) == queue.num_unseen == 0
    queue.push_own(Task("next", 3))
    assert [task.name for task in queue.snapshot()] == ["next"]
    assert queue.pop().name == "next"


def test_tasks_that_the_consumer_has_not_seen_are_counted_separately():
    """RE8."""
    queue = new_queue()
    queue.push(Task("a", 1))
    queue.push(Task("b", 2))
    assert (len(queue.seen), queue.num_unseen) == (0, 2)
    assert not queue.has_no_mail()

    queue.collect()

    assert (len(queue.seen), queue.num_unseen) == (2, 0)
    assert queue.has_no_mail()
    assert {task.name for task in queue.snapshot()} == {"a", "b"}


def test_a_device_of_index_zero_is_a_device():
    assert new_queue(device=0).name == "device 0"


def test_another_policys_schedule_is_asked_as_any_object():
    queue = ReadyQueue(THREADS, FifoSchedule, -1)
    for name, priority in (("a", 1), ("b", 3)):
        queue.push_own(Task(name, priority))

    assert queue.plain is None
    assert new_queue().plain is not None
    assert [queue.pop().name for _ in range(2)] == ["a", "b"]


def test_a_queue_whose_order_was_torn_begins_a_new_schedule():
    queue = new_queue()
    queue.push_own(Task("a", 1))
    before = queue.plain

    assert [task.name for task in queue.clear()] == ["a"]
    assert queue.plain is not before
    assert queue.plain.heap is queue.seen
