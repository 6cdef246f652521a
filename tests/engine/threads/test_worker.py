"""The engine's state of a thread, and the queues that the thread pushes to."""

import threading
from typing import Any

from gradviz.engine import PyTorchSchedule
from gradviz.engine.graph.node import Node
from gradviz.engine.graph.sync import THREADS
from gradviz.engine.tasks.device_queues import DeviceQueues
from gradviz.engine.tasks.graph_task import NO_DEVICE, ExecInfo, GraphTask
from gradviz.engine.threads.worker import Worker
from gradviz.trace.probe import Push
from tests.engine.nodes import SIM_0, Listener, Pass, Sink, new_graph_task, new_worker


def test_a_new_thread_is_in_no_backward():
    """L10: the thread-locals and their first values."""
    worker = new_worker()

    assert worker.worker_device == NO_DEVICE
    assert worker.ready_queue is None
    assert (worker.current_depth, worker.total_depth) == (0, 0)
    assert (worker.graph_task, worker.node) == (None, None)
    assert worker.is_checkpoint_valid
    assert (worker.has_count, worker.in_user_code) == (True, True)
    assert not worker.is_interrupted
    assert worker.calls == []
    assert worker.thread_id == threading.get_ident()
    assert worker.thread_name == threading.current_thread().name


def all_of(worker: Worker) -> dict[str, Any]:
    names = set(Worker.__slots__) - {"__weakref__"}
    return {name: getattr(worker, name) for name in names}


def test_a_worker_that_starts_to_serve_resets_its_state():
    """F11: whatever an error has left behind."""
    worker, task = new_worker(), new_graph_task()
    another = new_graph_task().cpu_ready_queue  # compiled, it has to be a queue
    before = all_of(worker)
    for name in before.keys() - {"calls", "queues", "sync", "thread_id", "thread_name"}:
        setattr(worker, name, "left behind" if name != "ready_queue" else another)
    worker.calls.append((task, None))

    worker.serve(task.cpu_ready_queue, 1, 62)

    assert all_of(worker) == before | {
        "worker_device": 1,
        "ready_queue": task.cpu_ready_queue,
        "total_depth": 62,
        "in_user_code": False,
    }


def test_without_a_depth_it_begins_at_none():
    worker, task = new_worker(), new_graph_task()

    worker.serve(task.cpu_ready_queue, 0)

    assert worker.total_depth == 0


def test_a_worker_saves_the_state_that_a_call_changes():
    """R7."""
    worker, task, node = new_worker(), new_graph_task(), Sink()
    worker.worker_device, worker.total_depth, worker.current_depth = 1, 62, 2
    worker.graph_task, worker.node, worker.are_outer_unrestricted = task, node, False

    assert worker.saved() == (1, 62, 2, task, node, False)


def test_a_checkpoint_is_valid_where_no_pass_on_the_stack_is_restricted():
    """K1."""
    worker = new_worker()
    worker.graph_task = new_graph_task()
    assert worker.is_checkpoint_valid

    worker.graph_task.exec_info = {Sink(): ExecInfo()}
    assert not worker.is_checkpoint_valid

    worker.graph_task, worker.are_outer_unrestricted = new_graph_task(), False
    assert not worker.is_checkpoint_valid


class Scene:
    """A pass, one device, and a thread that consumes the queue of the pass."""

    def __init__(self, **settings: Any) -> None:
        self.task: GraphTask = new_graph_task(**settings)
        queues = DeviceQueues(THREADS, PyTorchSchedule)
        queues.add(queues.new_device_queue())
        (self.device_queue,) = queues
        self.worker = Worker(THREADS, queues)
        self.worker.ready_queue = self.task.cpu_ready_queue
        self.producer = Pass()

    def push(self, node: Node, producer: Node | None) -> None:
        reports = self.worker.reports(self.task) if self.task.probe else None
        self.worker.push(self.task, reports, node, [1], producer)


class TestPushing:
    """Note [Passing on a count]."""

    def test_on_its_own_queue_a_task_passes_its_count_on_once(self):
        scene = Scene()
        scene.task.outstanding_tasks = 1

        scene.push(Sink(), scene.producer)
        assert (scene.task.outstanding_tasks, scene.worker.has_count) == (1, False)
        scene.push(Sink(), scene.producer)

        assert (scene.task.outstanding_tasks, scene.worker.has_count) == (2, False)

    def test_to_another_queue_no_count_is_passed_on(self):
        """The other thread might end the pass while this one hands over gradients."""
        scene = Scene()
        scene.task.outstanding_tasks = 1

        scene.push(Sink(device=SIM_0), scene.producer)

        assert (scene.task.outstanding_tasks, scene.worker.has_count) == (2, True)

    def test_a_root_is_counted_as_nobodys(self):
        scene = Scene()

        scene.push(Sink(), None)

        assert (scene.task.outstanding_tasks, scene.worker.has_count) == (1, True)

    def test_only_the_consumer_touches_the_schedule_of_a_queue(self):
        """Note [One consumer]."""
        scene = Scene()

        scene.push(Sink(), scene.producer)
        scene.push(Sink(device=SIM_0), scene.producer)

        own, other = scene.task.cpu_ready_queue, scene.device_queue
        assert (len(own.seen), own.num_unseen) == (1, 0)
        assert (len(other.seen), other.num_unseen) == (0, 1)

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
