"""A gradient arrives at a node, which is pushed when it was the last."""

from typing import Any

import pytest

from gradviz.backends.stream import stream_at
from gradviz.engine.graph.input_buffer import Ready, StreamBuffer
from gradviz.engine.graph.node import Edge, Node
from gradviz.engine.tasks.graph_task import ExecInfo, GraphTask
from gradviz.engine.tasks.pass_streams import PassStreams
from gradviz.engine.threads.handover import arrive
from gradviz.trace.probe import How
from tests.engine.accelerator import NOTED_0
from tests.engine.nodes import Pass, Sink, WatchingLock, new_graph_task, new_worker


class Scene:
    """A pass, and a thread that consumes its queue."""

    def __init__(self, *, is_private: bool = True) -> None:
        self.task: GraphTask = new_graph_task()
        self.task.is_private = is_private
        self.worker = new_worker()
        self.worker.ready_queue = self.task.cpu_ready_queue
        self.producer = Pass()

    def arrives(
        self, receiver: Node, input_nr: int, gradient: Any, ready: Ready | None = None
    ) -> Any:
        return arrive(
            self.worker,
            self.task,
            None,
            self.producer,
            Edge(receiver, input_nr),
            gradient,
            How.FIRST,
            ready,
        )


class TestArriving:
    def test_the_last_gradient_pushes_the_node_with_all_of_them(self):
        """E8."""
        scene, node = Scene(), Sink(inputs=2)
        scene.task.dependencies[node] = 2

        assert scene.arrives(node, 1, 5) is None
        assert scene.task.not_ready == {node: [None, 5]}
        assert scene.task.cpu_ready_queue.is_empty()
        assert scene.arrives(node, 0, 7) is None

        assert scene.task.not_ready == {}
        task = scene.task.cpu_ready_queue.pop()
        assert (task.graph_task, task.node, task.inputs) == (scene.task, node, [7, 5])
        assert scene.task.dependencies == {node: 0}

    def test_a_gradient_whose_place_is_taken_comes_back_and_does_not_count(self):
        """Note [Adding outside the lock]."""
        scene, node = Scene(), Sink()
        scene.task.dependencies[node] = 2
        scene.arrives(node, 0, 5)

        assert scene.arrives(node, 0, 7) == [5]

        assert scene.task.dependencies == {node: 1}
        assert scene.task.not_ready == {node: [None]}

    def test_an_undefined_gradient_counts_and_takes_nothing_out(self):
        scene, node = Scene(), Sink()
        scene.task.dependencies[node] = 2
        scene.arrives(node, 0, 5)

        assert scene.arrives(node, 0, None) is None

        assert scene.task.cpu_ready_queue.pop().inputs == [5]

    def test_a_node_that_takes_no_part_is_counted_and_given_nothing(self):
        """I1."""
        scene, node = Scene(), Sink()
        scene.task.dependencies[node] = 1
        scene.task.exec_info[Sink()] = ExecInfo()

        assert scene.arrives(node, 0, 5) is None

        assert scene.task.dependencies == {node: 0}
        assert scene.task.not_ready == {}
        assert scene.task.cpu_ready_queue.is_empty()

    @pytest.mark.parametrize("left", [0, None])
    def test_more_gradients_than_edges_are_an_error(self, left: int | None):
        scene, node = Scene(), Sink()
        if left is not None:
            scene.task.dependencies[node] = left

        with pytest.raises(RuntimeError, match="dependency not found for Sink"):
            scene.arrives(node, 0, 5)

    def test_the_mutex_is_held_while_the_buffers_change(self):
        """N4."""
        scene, node = Scene(is_private=False), Sink()
        scene.task.dependencies[node] = 2
        lock = WatchingLock(
            lambda: (
                [list(buffer) for buffer in scene.task.not_ready.values()],
                dict(scene.task.dependencies),
                scene.task.outstanding_tasks,
                len(scene.task.cpu_ready_queue),
            )
        )
        scene.task.mutex = lock
        scene.worker.has_count = False

        assert scene.arrives(node, 0, 5) is None
        assert scene.arrives(node, 0, 7) == [5]
        assert scene.arrives(node, 0, 12) is None

        assert lock.num_taken == 3
        assert lock.free == ([], {node: 0}, 1, 1)


STREAM = stream_at(NOTED_0, 1)


def ready(producer: int) -> Ready:
    return Ready(STREAM, None, STREAM, producer)


class StreamScene:
    """A node of two inputs, for the second of which gradients come."""

    def __init__(self) -> None:
        self.scene = Scene(is_private=False)
        self.task = self.scene.task
        self.task.streams = PassStreams(self.task.id, None, ())
        self.node = Sink(inputs=2)
        self.task.dependencies[self.node] = 3

    def arrives(self, gradient: Any, at: Ready | None) -> StreamBuffer | None:
        taken = self.scene.arrives(self.node, 1, gradient, at)
        assert taken is None or isinstance(taken, StreamBuffer)
        return taken

    @property
    def buffer(self) -> StreamBuffer:
        buffer = self.task.not_ready[self.node]
        assert isinstance(buffer, StreamBuffer)
        return buffer


class TestArrivingOverStreams:
    """With the time when each gradient is ready."""

    @pytest.fixture
    def scene(self) -> StreamScene:
        return StreamScene()

    def test_a_gradient_comes_with_when_it_is_ready(self, scene: StreamScene):
        """C3."""
        assert scene.arrives(5, ready(1)) is None

        assert scene.buffer == [None, 5]
        assert scene.buffer.ready == [None, ready(1)]

    def test_an_undefined_one_leaves_what_is_known_of_another(self, scene: StreamScene):
        scene.arrives(5, ready(1))

        assert scene.arrives(None, None) is None

        assert scene.buffer == [None, 5]
        assert scene.buffer.ready == [None, ready(1)]

    def test_a_gradient_taken_out_takes_its_ready_time_along_and_leaves_none(
        self, scene: StreamScene
    ):
        """Else the next to come would be thought to be ready when that one was."""
        scene.arrives(5, ready(1))

        taken = scene.arrives(7, ready(2))

        assert taken == [5]
        assert taken.ready == [ready(1)]
        assert scene.buffer == [None, None]
        assert scene.buffer.ready == [None, None]

    def test_the_last_one_goes_with_the_rest_to_the_queue(self, scene: StreamScene):
        scene.task.dependencies[scene.node] = 1

        scene.arrives(5, ready(1))

        task = scene.task.cpu_ready_queue.pop()
        assert isinstance(task.inputs, StreamBuffer)
        assert (task.inputs, task.inputs.ready) == ([None, 5], [None, ready(1)])
        assert scene.task.not_ready == {}

    def test_the_mutex_is_held_while_buffers_change(self, scene: StreamScene):
        """N4."""
        scene.task.mutex = lock = WatchingLock(
            lambda: [
                (list(one), list(one.ready)) for one in scene.task.not_ready.values()
            ]
        )

        scene.arrives(5, ready(1))
        scene.arrives(7, ready(2))

        assert lock.num_taken == 2
        assert lock.free == [([None, None], [None, None])]
