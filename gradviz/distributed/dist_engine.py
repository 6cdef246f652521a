"""The distributed engine: a backward pass that goes on where its gradients come from.

Each worker runs its part by itself, with the pieces of the local engine: it begins when
the first gradients come, goes on with each message that brings more, and its answer to
the first message says that all of it is done, here and beyond. So the root of the pass
knows that everything is done when its own messages are answered.
"""

import contextvars
import warnings
from collections.abc import Callable, Mapping, Sequence
from typing import Final, Protocol

from gradviz.distributed.container import DistAutogradContainer
from gradviz.distributed.context import DistAutogradContext
from gradviz.distributed.execution import DistExecution
from gradviz.distributed.failures import PeerDownError
from gradviz.distributed.functions import RecvRpcBackward, SendRpcBackward
from gradviz.distributed.future import Future, completed, failed
from gradviz.distributed.graph_task import DistGraphTask
from gradviz.distributed.ids import Ids, worker_of
from gradviz.distributed.preparation import prepare, validate_roots_and_retrieve_edges
from gradviz.engine import Engine
from gradviz.engine.basic_nodes import GraphRoot
from gradviz.engine.node import Edge, Node
from gradviz.engine.pass_streams import PassStreams
from gradviz.engine.protocols import Gradient
from gradviz.engine.validation import validate_outputs
from gradviz.ops.recording.silence import SILENT, put, setting
from gradviz.trace import probe as trace

#: The keys of `DistEngine.debug_info`.
NUM_BACKWARD_PASSES: Final = "num_current_backward_passes"
NUM_CONTEXTS: Final = "num_autograd_contexts"

#: After how many seconds a pass that has not ended says what it waits for.
WATCH_SECONDS: Final = 30.0


class Others(Protocol):
    """What the engine asks of the other workers."""

    def tell_of_failure(
        self, peer: int, context_id: int, pass_id: int, reason: str
    ) -> None:
        """Have a pass of a context fail there."""

    def why_down(self, peer: int) -> str | None:
        """Why a worker is down; None if it is not known to be."""

    def unfed_elsewhere(
        self, context_id: int, pass_id: int
    ) -> Mapping[int, Sequence[str]]:
        """What they still wait for in a pass, by worker."""


class DistEngine:
    """Runs one worker's part of distributed backward passes.

    Note [Pass ids]
    ~~~~~~~~~~~~~~~
    When a pass fails on one worker, gradients of it may still be on their way to
    another. They must not begin it anew there: nobody would ever end it, and the next
    pass of the context would meet it. PyTorch's engine does just that. So each pass has
    an id, the worker of its root and how many that one has begun, and every message
    with gradients carries it. A worker refuses gradients of a pass that has ended here,
    or of an earlier one of the same root; it fails one that is still there when a later
    one comes. And a worker where a pass fails tells those whom it knows, so that nobody
    waits for gradients that will not come.

    Args:
        engine: The local one, whose devices and rules are used.
        container: The contexts.
        launch: Runs a job on another thread.
        others: The other workers.

    Source: torch/csrc/distributed/autograd/engine/dist_engine.cpp (D1-D11).
    """

    def __init__(
        self,
        engine: Engine,
        container: DistAutogradContainer,
        launch: Callable[[Callable[[], object]], object],
        others: Others,
    ) -> None:
        self._engine = engine
        self._sync = engine.sync
        self._container = container
        self._others = others
        self._pass_ids = Ids(container.worker, 1)
        self._execution = DistExecution(engine, launch)
        #: Guards what follows, and the beginning of passes: one at a time.
        self._mutex = self._sync.lock()
        self._under_way: dict[int, DistGraphTask] = {}

    # --- what a worker is asked to do ---------------------------------------------

    def execute(
        self,
        context_id: int,
        roots: Sequence[object],
        *,
        retain_graph: bool,
        timeout: float | None = None,
    ) -> None:
        """Run a backward pass from here, through all workers, and wait for it (D9).

        Args:
            context_id: In which context; its gradients are added up there.
            roots: Tensors of one element.
            retain_graph: Keep what the graph has saved, for another pass.
            timeout: How many seconds it may take; None is for ever.

        Raises:
            RuntimeError: There is no such context; a root cannot be one; a pass is
                under way in it; the pass failed, here or elsewhere, or took too long.
        """
        context = self._container.retrieve_context(context_id)
        edges, gradients = validate_roots_and_retrieve_edges(roots)
        root = GraphRoot(edges, gradients)
        pass_id = self._pass_ids.next()
        with self._mutex:
            graph_task = self._begin(context, root, pass_id, keep_graph=retain_graph)
            graph_task.outstanding_tasks += 1
        self._run_and_finish(context, graph_task, root, [])
        try:
            if not self._is_over(context, graph_task, timeout):
                raise RuntimeError(
                    f"the distributed backward did not end within {timeout:g} s"
                    f"{self._waits(context, graph_task)}"
                )
        except BaseException as error:
            self._abandon(context, graph_task, error)
            raise
        graph_task.result.value()

    def execute_send_function_async(
        self,
        context: DistAutogradContext,
        send: SendRpcBackward,
        gradients: Sequence[Gradient],
        *,
        pass_id: int,
        retain_graph: bool,
    ) -> Future[None]:
        """Go on with a pass at a send, with the gradients that have come (D8).

        Args:
            context: In which context.
            send: Whose gradients they are.
            gradients: One for each tensor that was sent.
            pass_id: Which pass; see Note [Pass ids].
            retain_graph: Keep what the graph has saved.

        Returns:
            For the first message of a pass, done when all of it is done that begins
            here; else done at once. It never waits.
        """
        inputs = [Edge(send, index) for index in range(send.num_inputs)]
        gradients = list(validate_outputs(inputs, gradients))
        with self._mutex:
            current = context.graph_task
            if context.has_succeeded(pass_id):
                return completed(self._sync, None)
            if context.has_ended(pass_id):
                return failed(self._sync, self._late(context, pass_id))
            if current is None:
                begun = self._begin(context, send, pass_id, keep_graph=retain_graph)
                begun.begun_by = send.message_id
                begun.feed(send.message_id)
        if current is None:
            return self._run_and_finish(context, begun, send, gradients)
        if current.pass_id != pass_id:
            return self._after(context, current, send, gradients, pass_id, retain_graph)
        if not current.feed(send.message_id):
            if current.begun_by == send.message_id:
                return current.result
            return completed(self._sync, None)
        self._execution.launch(current, send, gradients)
        return completed(self._sync, None)

    def fail(self, context: DistAutogradContext, pass_id: int, reason: str) -> None:
        """Have a pass of a context fail, as another worker says; pass on such news."""
        if not context.mark_ended(pass_id):
            return
        current = context.graph_task
        if current is not None and current.pass_id == pass_id:
            _fail(context, current, RuntimeError(reason))
        else:
            self._tell_all(context, pass_id, reason)

    def forget(self, context: DistAutogradContext) -> None:
        """Have the pass of a context fail that was released (Note [Pass ids])."""
        current = context.graph_task
        if current is not None:
            error = RuntimeError(
                f"autograd context {context.context_id} was released during backward"
            )
            _fail(context, current, error)

    def peer_is_down(
        self, context: DistAutogradContext, peer: int, reason: str
    ) -> None:
        """Have the pass of a context fail that waits for a worker which is gone."""
        current = context.graph_task
        if current is not None and (
            worker_of(current.pass_id) == peer
            or any(send.peer == peer for send in _unfed(context, current))
        ):
            error = PeerDownError(f"node {peer} is down: {reason}")
            _fail(context, current, error)

    def unfed_of(self, context: DistAutogradContext, pass_id: int) -> tuple[str, ...]:
        """The sends of a pass that still wait for gradients, in words (D14)."""
        current = context.graph_task
        if current is None or current.pass_id != pass_id:
            return ()
        return tuple(send.describe() for send in _unfed(context, current))

    def num_backward_passes(self) -> int:
        """How many passes are under way on this worker."""
        with self._mutex:
            return len(self._under_way)

    def debug_info(self) -> dict[str, int]:
        """Two numbers by which one sees whether anything is left behind (D11)."""
        return {
            NUM_BACKWARD_PASSES: self.num_backward_passes(),
            NUM_CONTEXTS: len(self._container),
        }

    def close(self) -> None:
        """Fail what is under way, and end the engine's thread."""
        with self._mutex:
            under_way = tuple(self._under_way.values())
        for graph_task in under_way:
            graph_task.set_error(RuntimeError("the worker was shut down"), None)
        self._execution.close()

    # --- a pass begins ------------------------------------------------------------

    def _begin(
        self,
        context: DistAutogradContext,
        begin: Node,
        pass_id: int,
        *,
        keep_graph: bool,
    ) -> DistGraphTask:
        """Make the pass, and have the context own it; under the mutex."""
        engine = self._engine
        heard = setting()
        try:
            put(SILENT)  # the pass runs in copies of this context
            graph_task = DistGraphTask(
                self._sync,
                pass_id=pass_id,
                keep_graph=keep_graph,
                shared_queue=self._execution.queue,
                thread_state=engine.thread_state,
                probe=trace.current,
            )
        finally:
            put(heard)
        found = prepare(graph_task, context, begin)
        if found.devices:
            engine.initialize_device_threads_pool(found.devices)
            graph_task.devices = frozenset(one.number for one in found.devices)
            self._execution.begin_cpu_thread()
        if found.streams:
            graph_task.streams = PassStreams(
                graph_task.id, graph_task.probe, found.streams
            )
        context.set_graph_task(graph_task)
        try:
            engine.passes.begin(graph_task)
        except BaseException:
            context.reset_graph_task(graph_task)
            engine.passes.forget(graph_task.id, None)
            raise
        self._under_way[graph_task.id] = graph_task
        for send in context.send_functions().values():
            if (reason := self._others.why_down(send.peer)) is not None:
                self.peer_is_down(context, send.peer, reason)
        if graph_task.probe:
            engine.report_begin(graph_task.probe, graph_task, begin)
        return graph_task

    def _after(
        self,
        context: DistAutogradContext,
        current: DistGraphTask,
        send: SendRpcBackward,
        gradients: Sequence[Gradient],
        pass_id: int,
        retain_graph: bool,
    ) -> Future[None]:
        """Begin a pass when the one that is here has ended, which is out of date."""
        if worker_of(current.pass_id) != worker_of(pass_id):
            return failed(
                self._sync,
                RuntimeError(
                    f"a backward pass of node {worker_of(current.pass_id)} is "
                    f"under way in autograd context {context.context_id}"
                ),
            )
        error = RuntimeError("a later backward pass of the same root has begun")
        _fail(context, current, error)
        result: Future[None] = Future(self._sync)
        run = contextvars.copy_context().run

        def go_on() -> None:
            self._clean_up(context, current, has_failed=True)
            again = self.execute_send_function_async(
                context, send, gradients, pass_id=pass_id, retain_graph=retain_graph
            )
            again.add_done_callback(
                lambda: (
                    result.set_result(None)
                    if again.error is None
                    else result.set_error(again.error)
                )
            )

        current.ended.add_done_callback(lambda: run(go_on))
        return result

    # --- a pass runs --------------------------------------------------------------

    def _run_and_finish(
        self,
        context: DistAutogradContext,
        graph_task: DistGraphTask,
        begin: Node,
        inputs: Sequence[Gradient],
    ) -> Future[None]:
        """Run a pass; done when all is, and it was cleaned up after it (D7, D8)."""
        result = graph_task.result

        def finish(error: BaseException | None) -> None:
            self._clean_up(context, graph_task, has_failed=error is not None)
            if error is None:
                result.set_result(None)
                return
            reason = f"Error on Node {self._container.worker}: {_message(error)}"
            failure = RuntimeError(reason)
            failure.__cause__ = error
            result.set_error(failure)
            self._tell_all(context, graph_task.pass_id, reason)

        def wait_for_rpcs() -> None:
            if graph_task.ended.error is not None:
                finish(graph_task.ended.error)
                return
            rpcs = context.outstanding_rpcs()
            rpcs.add_done_callback(lambda: finish(rpcs.error))

        graph_task.ended.add_done_callback(wait_for_rpcs)
        self._execution.launch(graph_task, begin, inputs)
        return result

    # --- a pass takes its time --------------------------------------------------------

    def _is_over(
        self,
        context: DistAutogradContext,
        graph_task: DistGraphTask,
        timeout: float | None,
    ) -> bool:
        """Wait for a pass, and now and then say what it waits for."""
        until_ns = None if timeout is None else self._sync.now_ns() + int(timeout * 1e9)
        said = ""
        while True:
            left = WATCH_SECONDS
            if until_ns is not None:
                left = min(left, (until_ns - self._sync.now_ns()) / 1e9)
            if graph_task.result.settled(max(left, 0.0)):
                return True
            if until_ns is not None and self._sync.now_ns() >= until_ns:
                return False
            waits = self._waits(context, graph_task)
            if waits and waits != said:
                warnings.warn(f"a distributed backward goes on{waits}", stacklevel=4)
            said = waits

    def _waits(self, context: DistAutogradContext, graph_task: DistGraphTask) -> str:
        """What a pass that begins here waits for, on all workers, in words."""
        pass_id = graph_task.pass_id
        own = self.unfed_of(context, pass_id)
        words = f"; no gradients came for {', '.join(own)}" if own else ""
        elsewhere = self._others.unfed_elsewhere(context.context_id, pass_id)
        for node, sends in elsewhere.items():
            if sends:
                words += f"; node {node} waits for those of {', '.join(sends)}"
        return words

    # --- a pass ends ----------------------------------------------------------------

    def _clean_up(
        self,
        context: DistAutogradContext,
        graph_task: DistGraphTask,
        *,
        has_failed: bool,
    ) -> None:
        """Let go of a pass, however it ended (D10)."""
        context.mark_ended(graph_task.pass_id, has_failed=has_failed)
        context.reset_graph_task(graph_task)
        with self._mutex:
            self._under_way.pop(graph_task.id, None)
        self._engine.passes.forget(graph_task.id, None)
        self._engine.passes.tell_idle()

    def _abandon(
        self,
        context: DistAutogradContext,
        graph_task: DistGraphTask,
        error: BaseException,
    ) -> None:
        """Give up a pass for which the caller no longer waits."""
        _fail(context, graph_task, error)
        self._clean_up(context, graph_task, has_failed=True)
        self._tell_all(context, graph_task.pass_id, _message(error))

    def _tell_all(
        self, context: DistAutogradContext, pass_id: int, reason: str
    ) -> None:
        for peer in context.known_workers():
            self._others.tell_of_failure(peer, context.context_id, pass_id, reason)

    def _late(self, context: DistAutogradContext, pass_id: int) -> RuntimeError:
        return RuntimeError(
            f"Error on Node {self._container.worker}: gradients came for backward "
            f"pass {pass_id} of autograd context {context.context_id}, which has ended"
        )


def propagating_pass(engine: Engine, node: RecvRpcBackward) -> DistGraphTask:
    """The distributed pass that runs `node` on the calling thread.

    Raises:
        RuntimeError: Some other pass does.
    """
    graph_task = engine.current_graph_task
    if not isinstance(graph_task, DistGraphTask):
        raise RuntimeError(
            f"{node!r} came from node {node.peer}, and its gradients go there: call "
            f"gradviz.distributed.autograd.backward instead of backward"
        )
    return graph_task


def _fail(
    context: DistAutogradContext, graph_task: DistGraphTask, error: BaseException
) -> None:
    """Have a pass fail, whether its nodes run or it only waits for answers."""
    graph_task.set_error(error, None)
    context.give_up_outstanding_rpcs(error)


def _unfed(
    context: DistAutogradContext, graph_task: DistGraphTask
) -> list[SendRpcBackward]:
    with graph_task.mutex:
        fed = set(graph_task.fed)
    sends = context.send_functions()
    return [send for number, send in sends.items() if number not in fed]


def _message(error: BaseException) -> str:
    return str(error) or type(error).__name__
