"""A gradient arrives at a node, which is pushed when it was the last."""

from typing import Any

import pytest

from gradviz.engine import PyTorchSchedule
from gradviz.engine.arrival import arrive, arrive_under_mutex, push
from gradviz.engine.device_queues import DeviceQueues
from gradviz.engine.graph_task import ExecInfo, GraphTask
from gradviz.engine.node import Node
from gradviz.engine.sync import THREADS
from gradviz.engine.thread_state import ThreadState
from gradviz.trace.probe import How, Push
from tests.engine.nodes import SIM_0, Listener, Pass, Sink, WatchingLock, new_graph_task


class Scene:
    """A pass, one device, and a thread that consumes the queue of the pass."""

    def __init__(self, **settings: Any) -> None:
        self.task: GraphTask = new_graph_task(**settings)
        self.queues = DeviceQueues(THREADS, PyTorchSchedule)
        self.queues.add(self.queues.new_device_queue())
        (self.device_queue,) = self.queues
        self.state = ThreadState()
        self.state.ready_queue = self.task.cpu_ready_queue
        self.producer = Pass()

    def arrives(
        self, receiver: Node, input_nr: int, gradient: Any, put: Any = arrive
    ) -> Any:
        return put(
            self.state,
            self.queues,
            self.task,
            self.producer,
            receiver,
            input_nr,
            gradient,
            How.FIRST,
        )

    def push(self, node: Node, producer: Node | None) -> None:
        push(self.state, self.queues, self.task, node, [1], producer)


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
        scene, node = Scene(), Sink()
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
        scene.state.has_count = False

        assert scene.arrives(node, 0, 5, put=arrive_under_mutex) is None
        assert scene.arrives(node, 0, 7, put=arrive_under_mutex) == [5]
        assert scene.arrives(node, 0, 12, put=arrive_under_mutex) is None

        assert lock.num_taken == 3
        assert lock.free == ([], {node: 0}, 1, 1)


class TestPushing:
    """Note [Passing on a count]."""

    def test_on_its_own_queue_a_task_passes_its_count_on_once(self):
        scene = Scene()
        scene.task.outstanding_tasks = 1

        scene.push(Sink(), scene.producer)
        assert (scene.task.outstanding_tasks, scene.state.has_count) == (1, False)
        scene.push(Sink(), scene.producer)

        assert (scene.task.outstanding_tasks, scene.state.has_count) == (2, False)

    def test_to_another_queue_no_count_is_passed_on(self):
        """That thread might end the pass while this one still hands on gradients."""
        scene = Scene()
        scene.task.outstanding_tasks = 1

        scene.push(Sink(device=SIM_0), scene.producer)

        assert (scene.task.outstanding_tasks, scene.state.has_count) == (2, True)

    def test_a_root_is_counted_as_nobodys(self):
        scene = Scene()

        scene.push(Sink(), None)

        assert (scene.task.outstanding_tasks, scene.state.has_count) == (1, True)

    def test_only_the_consumer_touches_the_schedule_of_a_queue(self):
        """Note [One consumer]."""
        scene = Scene()

        scene.push(Sink(), scene.producer)
        scene.push(Sink(device=SIM_0), scene.producer)

        own, other = scene.task.cpu_ready_queue, scene.device_queue
        assert (own.num_seen(), own.num_unseen) == (1, 0)
        assert (other.num_seen(), other.num_unseen) == (0, 1)

    def test_a_node_comes_by_its_pass_and_its_number(self):
        """Q2."""
        scene, node = Scene(reentrant_depth=2), Sink()

        scene.push(node, None)

        task = scene.task.cpu_ready_queue.pop()
        assert task.priority == scene.task.priority + node.sequence_nr

    def test_it_is_reported_with_what_then_waits_and_counts(self):
        listener = Listener()
        scene, root, node = Scene(probe=listener, reentrant_depth=3), Sink(), Sink()

        scene.push(root, None)
        scene.push(node, scene.producer)

        fields = "node", "pushed_by", "what", "queue_length", "outstanding"
        queue = scene.task.cpu_ready_queue
        assert (
            listener.of("task_pushed", "queue", "reentrant_depth")
            == [(queue.id, 3)] * 2
        )
        assert listener.of("task_pushed", *fields) == [
            (root.id, -1, Push.ROOT, 1, 1),
            (node.id, scene.producer.id, Push.NODE, 2, 1),
        ]
