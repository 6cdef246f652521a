"""The part of a distributed backward pass that one worker runs."""

from gradviz.distributed.functions import SendRpcBackward
from gradviz.distributed.future import Future
from gradviz.distributed.ids import worker_of
from gradviz.engine.graph_task import CPU_DEVICE, GraphTask
from gradviz.engine.node import Node
from gradviz.engine.ready_queue import ReadyQueue
from gradviz.engine.sync import Sync
from gradviz.engine.worker import Worker
from gradviz.trace.probe import Probe


class DistGraphTask(GraphTask):
    """A pass that several threads of this worker may run at once.

    Note [Queues of a distributed pass]
    ~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~
    A local pass has one thread that waits until it is done, and that thread does all
    work for the CPU. Here nobody waits with a queue in its hand: whoever brings
    gradients, the caller or a message, begins at a node of its own with a ready queue
    of its own, works until that is empty, and leaves; the pass is over when nothing of
    it is outstanding, on any thread. What such a thread makes ready goes to its own
    queue. What the thread of a device makes ready for the CPU has no such queue, and
    goes to one that all passes share, whose thread hands it to another one to run.
    So `cpu_queue` depends on who asks, and the local engine need not know.

    Note [Who waits for whom]
    ~~~~~~~~~~~~~~~~~~~~~~~~~
    A worker is done with its part of a pass when all of its nodes have run, everything
    that it has sent in the forward pass having got its gradients, and when all are done
    to whom it has given gradients first, which they say in their answers. So the worker
    that gave it gradients first waits for it; and that one is under way until it has
    all of its own, as the root is. Of gradients that go back to these two nobody has to
    wait for the answer: they wait for the gradients. Without that a pass through two
    workers would end one message later. If such gradients are lost, the answer that
    does not come shows it as ever, though the sender is done.

    Args:
        sync: The seam.
        pass_id: The pass, the same on all workers.
        keep_graph: Whether saved tensors survive it.
        shared_queue: Where work for the CPU goes that a device's thread makes ready.
        probe: Who listens.

    Attributes:
        pass_id: As given.
        ended: Done when the pass is over on this worker, and none of its nodes runs.
        result: Done when it is over beyond, too, and cleaned up after.
        begun_by: What was sent that got its gradients first; None at the root.
        fed: The messages whose gradients have come. Guarded by `mutex`.

    Source: torch/csrc/distributed/autograd/engine/dist_engine.cpp (D1, D3, D6).
    """

    __slots__ = (
        "begun_by",
        "ended",
        "fed",
        "pass_id",
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
        self.fed: set[int] = set()
        self.begun_by: SendRpcBackward | None = None
        self.ended: Future[None] = Future(sync)
        self.result: Future[None] = Future(sync)

    def cpu_queue(self, worker: object) -> ReadyQueue:
        """The worker's own; the shared one, if it is a device's thread."""
        assert isinstance(worker, Worker)
        if worker.worker_device == CPU_DEVICE and worker.ready_queue is not None:
            return worker.ready_queue
        return self.cpu_ready_queue

    def feed(self, message_id: int) -> bool:
        """Take note of gradients; returns whether they had not come before."""
        with self.mutex:
            is_new = message_id not in self.fed
            self.fed.add(message_id)
        return is_new

    def is_waited_for_by(self, worker: int) -> bool:
        """Whether a worker is under way until it has all gradients that it gets."""
        if self.begun_by is not None and worker == self.begun_by.peer:
            return True
        return worker == worker_of(self.pass_id)

    def set_error(self, error: BaseException, node: Node | None) -> bool:
        """Fail the pass, which ends as soon as none of its nodes runs (R7).

        It does not wait for what is outstanding: gradients that never come would keep
        it for ever.
        """
        is_first = super().set_error(error, node)
        self._end_if_failed()
        return is_first

    def end_help(self, state: object) -> None:
        """Say that a node has run."""
        super().end_help(state)
        self._end_if_failed()

    def forget_helper(self, state: object) -> None:
        """Say that a thread runs no node any more, however it ended."""
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
