"""The ready queues of the devices and of the calling threads."""

from collections.abc import Callable, Iterator

from gradviz.engine.graph.node import Node
from gradviz.engine.graph.sync import Sync
from gradviz.engine.tasks.graph_task import CPU_DEVICE, GraphTask
from gradviz.engine.tasks.ready_queue import ReadyQueue
from gradviz.ready_order import Schedule


class DeviceQueues:
    """One queue per device index, shared by all passes of an engine.

    Note [Allocating devices to threads]
    ~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~
    Devices of different kinds with the same index share a queue and its thread, as in
    PyTorch: `sim:0` and `cuda:0` both use number 0. A queue is made before its thread
    starts and before any node can be pushed to it; the list changes only at its end,
    under the engine's start lock, so reading it needs none.

    Source: torch/csrc/autograd/engine.cpp, Engine::ready_queue (L4, L12).
    """

    def __init__(self, sync: Sync, schedule: Callable[[], Schedule]) -> None:
        self._sync = sync
        self._schedule = schedule
        self._queues: list[ReadyQueue] = []
        #: ``add(queue)`` lets nodes be pushed to a device's queue, and
        #: ``remove_newest()`` removes the newest queue. Both are C functions called
        #: directly: an interrupt strikes before them or after them, never inside.
        self.add = self._queues.append
        self.remove_newest = self._queues.pop

    def __len__(self) -> int:
        return len(self._queues)

    def __iter__(self) -> Iterator[ReadyQueue]:
        return iter(tuple(self._queues))

    def new_caller_queue(self) -> ReadyQueue:
        """Return a queue for a thread that calls `execute`."""
        return ReadyQueue(self._sync, self._schedule, CPU_DEVICE)

    def new_device_queue(self) -> ReadyQueue:
        """Return a queue for the next device index; `add` it once its thread exists."""
        return ReadyQueue(self._sync, self._schedule, len(self._queues))

    def queue_of(self, graph_task: GraphTask, node: Node, worker: object) -> ReadyQueue:
        """Return the queue of the device of a `node` that `worker` pushes (C5)."""
        device = node.runs_on
        if device.runs_on_caller or not graph_task.uses_device_threads:
            return graph_task.cpu_queue(worker)
        return self._queues[device.number]

    def queue_at(
        self, graph_task: GraphTask, device: int, worker: object
    ) -> ReadyQueue:
        """Return the queue of a device index; -1 is the pass's own CPU queue."""
        if device == CPU_DEVICE:
            return graph_task.cpu_queue(worker)
        return self._queues[device]
