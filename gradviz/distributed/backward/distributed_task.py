"""The part of a distributed backward pass that one worker runs."""

from gradviz.distributed.backward.functions import SendRpcBackward
from gradviz.distributed.messaging.future import Future
from gradviz.distributed.messaging.ids import worker_of
from gradviz.engine.graph.node import Node
from gradviz.engine.graph.sync import Lock, Sync
from gradviz.engine.tasks.graph_task import CPU_DEVICE, GraphTask
from gradviz.engine.tasks.outcome import Outcome
from gradviz.engine.tasks.ready_queue import ReadyQueue
from gradviz.engine.threads.worker import Worker
from gradviz.trace.probe import Probe


class DistOutcome(Outcome):
    """The end of a distributed pass; no thread waits for it in a queue's loop.

    Attributes:
        ended: Done when the pass is over on this worker, and none of its nodes runs.
    """

    __slots__ = ("ended",)

    def __init__(
        self, sync: Sync, task_id: int, mutex: Lock, probe: Probe | None
    ) -> None:
        super().__init__(sync, task_id, mutex, probe)
        self.ended: Future[None] = Future(sync)

    def set_error(self, error: BaseException, node: Node | None) -> bool:
        """Fail the pass, which ends as soon as none of its nodes runs (R7).

        It does not wait for what is outstanding: gradients that never come would keep
        it forever.
        """
        is_first = super().set_error(error, node)
        self._end_if_failed()
        return is_first

    def end_help(self, state: object) -> None:
        """See `Outcome`."""
        super().end_help(state)
        self._end_if_failed()

    def forget_helper(self, state: object) -> None:
        """See `Outcome`."""
        super().forget_helper(state)
        self._end_if_failed()

    def end(self) -> None:
        """Say that nothing is outstanding any more."""
        self._end_if_failed()
        if self.is_complete:
            self.ended.set_result(None)

    def _end_if_failed(self) -> None:
        with self.mutex:
            error = None if self.helpers else self.error
        if error is not None:
            self.ended.set_error(error)


class DistGraphTask(GraphTask):
    """A pass that several threads of this worker may run at once.

    Note [Queues of a distributed pass]
    ~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~
    A local pass has one thread that waits until it is done, and that thread does all
    work for the CPU. Here no thread waits with a queue: each thread that brings
    gradients, the caller's or a message's, starts at a node of its own with a ready
    queue of its own, works until that is empty, and leaves; the pass is over when none
    of its tasks is outstanding on any thread. Nodes that such a thread makes ready go
    to its own queue. CPU nodes made ready by a device's thread have no such queue; they
    go to one that all passes share, whose thread hands them to another one to run. So
    `cpu_queue` depends on the calling thread, and the local engine need not know.

    Note [Who waits for whom]
    ~~~~~~~~~~~~~~~~~~~~~~~~~
    A worker is done with its part of a pass when all of its nodes have run (all its
    sends in the forward pass have received their gradients) and when all workers are
    done to which it was the first to give gradients, as they say in their answers. So
    the worker that first gave it gradients waits for it, and that one is under way
    until it has all of its own, like the root. For gradients that go back to these two
    nobody has to wait for the answer: they wait for the gradients. Otherwise a pass
    through two workers would end one message later. If such gradients are lost, the
    missing answer shows it as usual, though the sender is done.

    Args:
        sync: The seam.
        pass_id: The pass, the same on all workers.
        keep_graph: True if saved tensors survive it.
        shared_queue: Queue for CPU work that a device's thread makes ready.
        probe: The listener.

    Attributes:
        pass_id: As given.
        outcome: Its ending on this worker. Constant.
        result: Done when it is over beyond, too, and cleaned up after.
        begun_by: Send that got its gradients first; None at the root.
        received: The messages whose gradients have come. Guarded by `mutex`.

    Source: torch/csrc/distributed/autograd/engine/dist_engine.cpp (D1, D3, D6).
    """

    __slots__ = (
        "begun_by",
        "pass_id",
        "received",
        "result",
    )

    def __init__(
        self,
        sync: Sync,
        *,
        pass_id: int,
        keep_graph: bool,
        shared_queue: ReadyQueue,
        probe: Probe | None,
    ) -> None:
        super().__init__(
            sync,
            keep_graph=keep_graph,
            create_graph=False,
            reentrant_depth=0,
            cpu_ready_queue=shared_queue,
            owner=CPU_DEVICE,
            home=None,
            uses_device_threads=True,
            probe=probe,
        )
        self.is_private = False
        self.pass_id = pass_id
        self.received: set[int] = set()
        self.begun_by: SendRpcBackward | None = None
        self.outcome: DistOutcome = DistOutcome(sync, self.id, self.mutex, probe)
        self.result: Future[None] = Future(sync)

    def cpu_queue(self, worker: object) -> ReadyQueue:
        """The worker's own; the shared one, if it is a device's thread."""
        assert isinstance(worker, Worker)
        if worker.worker_device == CPU_DEVICE and worker.ready_queue is not None:
            return worker.ready_queue
        return self.cpu_ready_queue

    def receive(self, message_id: int) -> bool:
        """Note that a message brought gradients; return whether it is the first."""
        with self.mutex:
            is_new = message_id not in self.received
            self.received.add(message_id)
        return is_new

    def is_waited_for_by(self, worker: int) -> bool:
        """Return whether a worker waits for this one until it has all gradients."""
        if self.begun_by is not None and worker == self.begun_by.peer:
            return True
        return worker == worker_of(self.pass_id)
