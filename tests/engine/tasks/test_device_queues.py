"""The queue that a node goes to."""

from gradviz.backends.device import Device
from gradviz.engine import PyTorchSchedule
from gradviz.engine.graph.sync import THREADS
from gradviz.engine.tasks.device_queues import DeviceQueues
from gradviz.engine.tasks.graph_task import CPU_DEVICE
from tests.engine.nodes import SIM_1, Sink, new_graph_task


def two_devices() -> DeviceQueues:
    queues = DeviceQueues(THREADS, PyTorchSchedule)
    for _ in range(2):
        queues.add(queues.new_device_queue())
    return queues


def test_a_device_has_the_queue_of_its_index():
    """L12."""
    queues = two_devices()

    queue = queues.queue_of(new_graph_task(), Sink(device=SIM_1), None)

    assert queue.device == 1
    assert queue is tuple(queues)[1]


def test_devices_of_different_kinds_with_one_index_share_a_queue():
    """L4."""
    queues, task = two_devices(), new_graph_task()

    sim, cuda = (
        queues.queue_of(task, Sink(device=Device(k, 1)), None) for k in ("sim", "cuda")
    )

    assert sim is cuda


def test_the_cpu_and_meta_devices_use_the_callers_queue():
    """L6, L12."""
    queues, task = two_devices(), new_graph_task()

    for kind in ("cpu", "meta"):
        node = Sink(device=Device(kind))
        assert queues.queue_of(task, node, None) is task.cpu_ready_queue


def test_without_multithreading_every_device_does():
    """K5, L12."""
    task = new_graph_task(uses_device_threads=False)

    assert (
        two_devices().queue_of(task, Sink(device=SIM_1), None) is task.cpu_ready_queue
    )


def test_an_index_of_minus_one_is_the_callers_queue():
    """L12: `ready_queue_by_index`."""
    queues, task = two_devices(), new_graph_task()

    assert queues.queue_at(task, CPU_DEVICE, None) is task.cpu_ready_queue
    assert queues.queue_at(task, 1, None) is tuple(queues)[1]


def test_a_callers_queue_is_no_devices():
    queues = two_devices()

    assert queues.new_caller_queue().device == CPU_DEVICE
    assert len(queues) == 2
