"""The context of one distributed forward and backward on one worker."""

from collections.abc import Mapping
from typing import Any, Final, NamedTuple

from gradviz.distributed.backward.distributed_task import DistGraphTask
from gradviz.distributed.backward.functions import SendRpcBackward
from gradviz.distributed.backward.gradients import accumulated
from gradviz.distributed.messaging.future import Future, when_all
from gradviz.distributed.messaging.ids import worker_of
from gradviz.distributed.messaging.waits import Waits
from gradviz.engine.graph.input_buffer import InputBuffer
from gradviz.engine.graph.sync import Sync
from gradviz.ops.variables.variable import Value, Variable

_SET_TWICE: Final = "Cannot set GraphTask multiple times for the same autograd context"


class SentGradients(NamedTuple):
    """Gradients that were sent to another worker.

    Attributes:
        answer: Done when they have been dealt with.
        is_awaited: True if the pass waits for that; see Note [Who waits for whom].
        late_ns: Time, by the seam's clock, from which on they should have come.
    """

    answer: Future[Any]
    is_awaited: bool
    late_ns: int


class DistAutogradContext:
    """The sends of a forward pass, and the gradients of its backward.

    Each worker that takes part has one, under the same id. Any thread may use it.

    Args:
        context_id: The id.
        sync: The seam.

    Attributes:
        context_id: As given.

    Source: torch/csrc/distributed/autograd/context/context.h (D12).
    """

    def __init__(self, context_id: int, sync: Sync) -> None:
        self.context_id = context_id
        self._sync = sync
        #: Guards all that follows.
        self._mutex = sync.lock()
        self._known_workers: set[int] = set()
        self._is_released = False
        self._sends: dict[int, SendRpcBackward] = {}
        self._gradients: dict[Variable, Value] = {}
        #: The worker of a root -> its last pass that has ended here.
        self._ended: dict[int, int] = {}
        #: Those of them that have not failed.
        self._succeeded: set[int] = set()
        #: The last pass that has begun here, and the gradients that were sent in it:
        #: message -> the answer.
        self._pass_id = -1
        self._outstanding_rpcs: dict[int, SentGradients] = {}
        self._graph_task: DistGraphTask | None = None

    # --- the forward pass -------------------------------------------------------

    def add_known_worker(self, worker: int) -> None:
        """Remember a worker to which this context is sent: it is to forget it, too.

        Raises:
            RuntimeError: The context was released: nobody would tell that worker.
        """
        with self._mutex:
            if self._is_released:
                raise RuntimeError(
                    f"autograd context {self.context_id} was released before a call in "
                    f"it was sent to node {worker}"
                )
            self._known_workers.add(worker)

    def release(self) -> None:
        """Stop sending this context to other workers."""
        with self._mutex:
            self._is_released = True

    def known_workers(self) -> frozenset[int]:
        """Return the workers that this context was sent to."""
        with self._mutex:
            return frozenset(self._known_workers)

    def add_send_function(self, message_id: int, function: SendRpcBackward) -> None:
        """Note the tensors that a message sent."""
        with self._mutex:
            assert message_id not in self._sends
            self._sends[message_id] = function

    def send_functions(self) -> Mapping[int, SendRpcBackward]:
        """Message id -> node of the tensors that it sent."""
        with self._mutex:
            return dict(self._sends)

    def retrieve_send_function(self, message_id: int) -> SendRpcBackward:
        """Return the node of the tensors that a message sent.

        Raises:
            RuntimeError: It sent none.
        """
        with self._mutex:
            found = self._sends.get(message_id)
        if found is None:
            raise RuntimeError(
                f"Could not find send function for autograd message id: {message_id}"
            )
        return found

    def unanswered_sends(self, graph_task: DistGraphTask) -> list[SendRpcBackward]:
        """Return the sends of a pass without gradients yet (D14)."""
        with graph_task.mutex:
            received = set(graph_task.received)
        sends = self.send_functions()
        return [send for number, send in sends.items() if number not in received]

    # --- the backward pass --------------------------------------------------------

    @property
    def graph_task(self) -> DistGraphTask | None:
        """The pass that is under way here."""
        with self._mutex:
            return self._graph_task

    def set_graph_task(self, graph_task: DistGraphTask) -> None:
        """Own the pass that begins (D4).

        Raises:
            RuntimeError: There is one already.
        """
        with self._mutex:
            if self._graph_task is not None:
                raise RuntimeError(_SET_TWICE)
            self._graph_task = graph_task
            self._pass_id = graph_task.pass_id
            rpcs, self._outstanding_rpcs = self._outstanding_rpcs, {}
        for rpc in rpcs.values():  # nobody waits for those of the pass before
            rpc.answer.set_error(RuntimeError("the backward pass has ended"))

    def reset_graph_task(self, graph_task: DistGraphTask) -> bool:
        """Release a pass that has ended.

        Returns:
            True if it was still there.
        """
        with self._mutex:
            if self._graph_task is not graph_task:
                return False
            self._graph_task = None
            return True

    def has_ended(self, pass_id: int) -> bool:
        """Return whether a pass, or a later one of the same root, has ended here."""
        with self._mutex:
            return self._ended.get(worker_of(pass_id), -1) >= pass_id

    def has_succeeded(self, pass_id: int) -> bool:
        """Return whether a pass is its root's last one and has succeeded here."""
        with self._mutex:
            return pass_id in self._succeeded

    def mark_ended(self, pass_id: int, *, has_failed: bool = True) -> bool:
        """Take no more gradients of a pass; returns whether that is news."""
        root = worker_of(pass_id)
        with self._mutex:
            before = self._ended.get(root, -1)
            if before >= pass_id:
                return False
            self._ended[root] = pass_id
            self._succeeded.discard(before)
            if not has_failed:
                self._succeeded.add(pass_id)
            return True

    def waits(self, graph_task: DistGraphTask) -> Waits:
        """Return the gradients and answers that a pass waits for here."""
        unfed = {
            one.message_id: one.describe() for one in self.unanswered_sends(graph_task)
        }
        unanswered, awaited = self._unanswered(graph_task.pass_id)
        return Waits(unfed, unanswered, awaited)

    def waits_at_end(self, pass_id: int) -> Waits:
        """Return those that the last pass left open, after its part here ended."""
        unanswered, awaited = self._unanswered(pass_id)
        return Waits({}, unanswered, awaited, has_ended=True)

    def _unanswered(self, pass_id: int) -> tuple[frozenset[int], frozenset[int]]:
        """Return messages with missing gradients, and those awaited of them.

        Args:
            pass_id: The last pass; of others nothing is known.
        """
        now_ns = self._sync.now_ns()
        with self._mutex:
            if self._pass_id != pass_id:
                return frozenset(), frozenset()
            late = {
                number: rpc.is_awaited
                for number, rpc in self._outstanding_rpcs.items()
                if now_ns >= rpc.late_ns and not rpc.answer.done()
            }
        awaited = frozenset(number for number, is_awaited in late.items() if is_awaited)
        return frozenset(late), awaited

    def add_outstanding_rpc(
        self,
        graph_task: DistGraphTask,
        message_id: int,
        rpc: SentGradients,
    ) -> None:
        """Remember gradients on their way; their error is that of the pass."""
        with self._mutex:
            is_current = self._graph_task is graph_task
            if is_current:
                self._outstanding_rpcs[message_id] = rpc
        if not is_current:  # it has failed meanwhile: nobody waits for the answer
            rpc.answer.set_error(RuntimeError("the backward pass has ended"))
            return

        def check() -> None:
            if rpc.answer.error is not None:
                graph_task.outcome.set_error(rpc.answer.error, None)

        rpc.answer.add_done_callback(check)

    def outstanding_rpcs(self) -> Future[None]:
        """Done when all gradients have been dealt with that the pass waits for."""
        with self._mutex:
            rpcs = self._outstanding_rpcs.values()
            awaited = [rpc.answer for rpc in rpcs if rpc.is_awaited]
        return when_all(self._sync, awaited)

    def give_up_outstanding_rpcs(self, error: BaseException) -> None:
        """Wait for no answer to gradients any more: it might never come."""
        with self._mutex:
            rpcs = [*self._outstanding_rpcs.values()]
        for rpc in rpcs:
            rpc.answer.set_error(error)

    # --- gradients ----------------------------------------------------------------

    def accumulate_gradient(
        self, leaf: Variable, gradients: InputBuffer, input_nr: int
    ) -> None:
        """Add ``gradients[input_nr]`` to this context's sum for `leaf`.

        Never to its ``.grad``. Nobody of this context adds to it at the same time: a
        leaf's node runs once in a pass, and passes of a context follow each other.
        """
        with self._mutex:
            stored = self._gradients.get(leaf)
        total = accumulated(leaf, stored, gradients, input_nr)
        with self._mutex:
            self._gradients[leaf] = total

    def gradients(self) -> dict[Variable, Value]:
        """Leaf -> its gradient in this context."""
        with self._mutex:
            return dict(self._gradients)
