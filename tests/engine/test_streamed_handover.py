"""Gradients that arrive with the time when each is ready, step by step."""

from typing import Any

import pytest

from gradviz.backends.stream import stream_at
from gradviz.engine import Edge, PyTorchSchedule
from gradviz.engine.device_queues import DeviceQueues
from gradviz.engine.input_buffer import Ready, StreamBuffer
from gradviz.engine.streamed_handover import _arrive_when_ready
from gradviz.engine.sync import THREADS
from gradviz.engine.thread_state import ThreadState
from gradviz.trace.probe import How
from tests.engine.accelerator import NOTED_0
from tests.engine.nodes import Pass, Sink, WatchingLock, new_graph_task

STREAM = stream_at(NOTED_0, 1)


def ready(producer: int) -> Ready:
    return Ready(STREAM, None, STREAM, producer)


class Scene:
    """A node of two inputs, for the second of which gradients come."""

    def __init__(self) -> None:
        self.task = new_graph_task()
        self.task.is_private = False
        self.node = Sink(inputs=2)
        self.task.dependencies[self.node] = 3

    def arrives(self, gradient: Any, at: Ready | None) -> StreamBuffer | None:
        state = ThreadState()
        state.ready_queue = self.task.cpu_ready_queue
        return _arrive_when_ready(
            state,
            DeviceQueues(THREADS, PyTorchSchedule),
            self.task,
            Pass(),
            Edge(self.node, 1),
            gradient,
            How.FIRST,
            at,
        )

    @property
    def buffer(self) -> StreamBuffer:
        buffer = self.task.not_ready[self.node]
        assert isinstance(buffer, StreamBuffer)
        return buffer


@pytest.fixture
def scene() -> Scene:
    return Scene()


def test_a_gradient_comes_with_when_it_is_ready(scene: Scene):
    """C3."""
    assert scene.arrives(5, ready(1)) is None

    assert scene.buffer == [None, 5]
    assert scene.buffer.ready == [None, ready(1)]


def test_an_undefined_one_leaves_what_is_known_of_another(scene: Scene):
    scene.arrives(5, ready(1))

    assert scene.arrives(None, None) is None

    assert scene.buffer == [None, 5]
    assert scene.buffer.ready == [None, ready(1)]


def test_what_is_taken_out_takes_its_time_along_and_leaves_none(scene: Scene):
    """Else the next to come would be thought to be ready when that one was."""
    scene.arrives(5, ready(1))

    taken = scene.arrives(7, ready(2))

    assert taken == [5]
    assert taken.ready == [ready(1)]
    assert scene.buffer == [None, None]
    assert scene.buffer.ready == [None, None]


def test_the_last_one_goes_with_the_rest_to_the_queue(scene: Scene):
    scene.task.dependencies[scene.node] = 1

    scene.arrives(5, ready(1))

    task = scene.task.cpu_ready_queue.pop()
    assert isinstance(task.inputs, StreamBuffer)
    assert (task.inputs, task.inputs.ready) == ([None, 5], [None, ready(1)])
    assert scene.task.not_ready == {}


def test_the_mutex_is_held_while_buffers_change(scene: Scene):
    """N4."""
    scene.task.mutex = lock = WatchingLock(
        lambda: [(list(one), list(one.ready)) for one in scene.task.not_ready.values()]
    )

    scene.arrives(5, ready(1))
    scene.arrives(7, ready(2))

    assert lock.num_taken == 2
    assert lock.free == [([None, None], [None, None])]
