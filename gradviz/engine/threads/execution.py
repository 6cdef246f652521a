"""One call of `execute` on its thread: enter, work until the pass is done, leave.

`gradviz.engine.engine` has discovered the nodes of the pass by then.
"""

import contextlib
import sys
from collections.abc import Callable

from gradviz import modes
from gradviz.engine.graph import anomaly
from gradviz.engine.graph.grad_mode import GRAD_ENABLED
from gradviz.engine.graph.node import Node
from gradviz.engine.graph.protocols import Gradient
from gradviz.engine.graph.sync import Empty
from gradviz.engine.tasks.graph_task import CPU_DEVICE, NO_DEVICE, GraphTask
from gradviz.engine.threads.completion import push_wake_up
from gradviz.engine.threads.thread_main import thread_main
from gradviz.engine.threads.worker import Worker
from gradviz.trace.probe import Role


def execute_with_graph_task(  # noqa: C901, PLR0912, PLR0915 - interrupts may strike calls
    worker: Worker,
    max_depth: int,
    run_in_pool: Callable[[GraphTask], None],
    graph_task: GraphTask,
    root: Node,
    buffer: list[Gradient],
) -> None:
    """Push the root, and work until the pass is done (RE1-RE4).

    Args:
        worker: The calling thread.
        max_depth: Reentrant calls nested on one thread before the pool takes over.
        run_in_pool: Runs the pass on a pool thread, and returns when it is done.
        graph_task: The pass, prepared.
        root: Its first node.
        buffer: The gradients of the root.

    Raises:
        BaseException: Only errors that struck the engine's own code; a node's error
            is kept in `graph_task`.

    In any case the thread's state is restored (R7). The `finally` begins with plain
    stores, which cannot be interrupted: CPython checks for signals only at calls and
    jumps. A context manager would not do, for the same reason.

    Source: torch/csrc/autograd/engine.cpp, Engine::execute_with_graph_task.
    """
    saved = worker.saved()
    outer_mode, outer_node = GRAD_ENABLED.get(), anomaly.EVALUATING.get()
    num_calls = len(worker.calls)
    has_entered = False
    try:
        try:
            _enter(worker, graph_task)
            has_entered = True
            reports = worker.reports(graph_task) if graph_task.probe else None
            with graph_task.mutex:
                worker.push(graph_task, reports, root, buffer, None)
            if worker.current_depth > max_depth:
                run_in_pool(graph_task)
            else:
                thread_main(worker, graph_task)
        except BaseException as error:
            # Plain stores before any call: a second interrupt may strike there.
            worker.is_interrupted = True
            if saved[0] == NO_DEVICE:
                worker.ready_queue = None
            _abandon(worker, graph_task, error)
            raise
        if not graph_task.outcome.is_done or graph_task.outcome.is_torn.value:
            if saved[0] == NO_DEVICE:
                worker.ready_queue = None
            _abandon(worker, graph_task, None)
    finally:
        (
            worker.worker_device,
            worker.total_depth,
            worker.current_depth,
            worker.graph_task,
            worker.node,
            worker.are_outer_unrestricted,
        ) = saved
        worker.has_count = worker.in_user_code = True
        if worker.worker_device == NO_DEVICE:
            worker.is_interrupted = False
        del worker.calls[num_calls:]
        try:
            # An interrupt is noticed when a call has returned, so each of these is done
            # even if one strikes; `finally` makes sure of the next.
            try:
                try:
                    _table = modes.keep_table()
                finally:
                    GRAD_ENABLED.set(outer_mode)
            finally:
                try:
                    if anomaly.EVALUATING.get() is not outer_node:
                        anomaly.EVALUATING.set(outer_node)
                finally:
                    try:
                        graph_task.put_back_modes()
                    finally:  # only a comparison, unless interrupted halfway
                        graph_task.put_back_modes()
            if graph_task.streams is not None:
                graph_task.streams.put_back()
            if has_entered:  # else its entry may not have been reported
                _report_left(worker, graph_task)
        except BaseException as error:
            # Streams may not be restored, nor may anyone know that we have left.
            if graph_task.parent is not None:
                graph_task.parent.outcome.set_error(error, None)
            raise


def _enter(worker: Worker, graph_task: GraphTask) -> None:
    """Register the calling thread as a worker of the pass."""
    worker.are_outer_unrestricted = worker.is_checkpoint_valid
    if worker.worker_device != NO_DEVICE:
        worker.total_depth += 1
        worker.current_depth += 1
        worker.calls.append((worker.graph_task, worker.node))
        if graph_task.probe:
            graph_task.probe.reentrant_entered(
                graph_task.id, graph_task.reentrant_depth
            )
    elif graph_task.probe:
        graph_task.probe.thread_started(CPU_DEVICE, Role.CALLER)
    worker.worker_device = graph_task.owner
    worker.in_user_code = False


def _abandon(
    worker: Worker,
    graph_task: GraphTask,
    error: BaseException | None,
) -> None:
    """Give up a pass whose tasks can no longer be counted.

    An error struck the engine's own code, on this thread or on another one of its pass
    (Note [Interrupted engine code]), or the pass failed and one of its nodes on another
    thread does not end. No further node of it starts; running ones are waited for,
    within limits. The thread has discarded its queue by now.
    """
    outcome = graph_task.outcome
    if error is not None:
        outcome.set_error(error, None)
        if graph_task.parent is not None:
            # In case the node that called us swallows the error: its pass is lost.
            graph_task.parent.outcome.set_error(error, None)
        # A stand-in from the pool must let go of our queue.
        if outcome.claim_end():
            push_wake_up(worker, graph_task, ends_pass=True)
    with graph_task.mutex:
        is_busy = bool(outcome.helpers)
    timeout = outcome.time_left(worker.sync.now_ns())
    if is_busy and timeout:
        with contextlib.suppress(Empty):
            outcome.quiet.get(timeout=timeout)


def _report_left(worker: Worker, graph_task: GraphTask) -> None:
    """Report that the calling thread has left the pass.

    A pass without an outcome is not reported: a second interrupt struck before the
    error of the first could become its outcome, so it becomes that now.
    """
    if graph_task.probe:
        if not (graph_task.outcome.is_complete or graph_task.outcome.has_error.value):
            error = sys.exception()
            assert error is not None
            graph_task.outcome.set_error(error, None)
        if worker.worker_device == NO_DEVICE:
            graph_task.probe.thread_exited(CPU_DEVICE, Role.CALLER)
        else:
            graph_task.probe.reentrant_left(graph_task.id, graph_task.reentrant_depth)
