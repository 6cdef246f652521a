"""One call of `execute` on its thread: come in, work until the pass is done, leave.

What a pass consists of is found out before, in `gradviz.engine.engine`.
"""

import contextlib
import sys
from collections.abc import Callable

from gradviz import modes
from gradviz.engine import anomaly
from gradviz.engine.completion import push_wake_up
from gradviz.engine.grad_mode import GRAD_ENABLED
from gradviz.engine.graph_task import CPU_DEVICE, NO_DEVICE, GraphTask
from gradviz.engine.node import Node
from gradviz.engine.protocols import Gradient
from gradviz.engine.sync import Empty
from gradviz.engine.thread_main import thread_main
from gradviz.engine.worker import Worker
from gradviz.trace.probe import Role


def execute_with_graph_task(  # noqa: C901, PLR0912, PLR0915 - a call could be struck
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
        run_in_pool: Has a thread of the pool run the pass, and returns when it is done.
        graph_task: The pass, prepared.
        root: Where it begins.
        buffer: What the root is given.

    Raises:
        BaseException: Only what struck the engine's own code; the error of a node is
            kept in `graph_task`.

    Whatever happens, the thread's state is put back (R7). The `finally` begins
    with plain stores, of which none can be interrupted: CPython looks for signals
    only at calls and jumps. A context manager would not do, for the same reason.

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
            with graph_task.mutex:
                worker.push(graph_task, root, buffer, None)
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
        if not graph_task.is_done or graph_task.is_torn.value:
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
            # An interrupt is noticed when a call has returned, so each of these is
            # done even if one strikes; `finally` makes sure of the next.
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
                    finally:  # only a comparison, unless it was struck halfway
                        graph_task.put_back_modes()
            if graph_task.streams is not None:
                graph_task.streams.put_back()
            if has_entered:  # else nobody was told for sure that it came in
                _report_left(worker, graph_task)
        except BaseException as error:
            # Streams may not be put back, nor may anyone know that we have left.
            if graph_task.parent is not None:
                graph_task.parent.set_error(error, None)
            raise


def _enter(worker: Worker, graph_task: GraphTask) -> None:
    """Make the calling thread one that works for the pass."""
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

    An error struck the engine's own code, on this thread or on another one of
    its pass (Note [Interrupted engine code]), or the pass failed and a node of it
    on another thread does not end. No further node of it starts; those that run
    are waited for, within limits. The thread has got rid of its queue by now.
    """
    if error is not None:
        graph_task.set_error(error, None)
        if graph_task.parent is not None:
            # Should the node that called us swallow the error: its pass is lost.
            graph_task.parent.set_error(error, None)
        # A stand-in from the pool must let go of our queue.
        if graph_task.claim_end():
            push_wake_up(worker, graph_task, ends_pass=True)
    with graph_task.mutex:
        is_busy = bool(graph_task.helpers)
    timeout = graph_task.time_left(worker.sync.now_ns())
    if is_busy and timeout:
        with contextlib.suppress(Empty):
            graph_task.quiet.get(timeout=timeout)


def _report_left(worker: Worker, graph_task: GraphTask) -> None:
    """Tell a listener that the calling thread has left the pass.

    Of a pass without an outcome nobody is told that: a further interrupt has struck
    while the error of the first one was to become its outcome, so it becomes that now.
    """
    if graph_task.probe:
        if not (graph_task.is_complete or graph_task.has_error.value):
            error = sys.exception()
            assert error is not None
            graph_task.set_error(error, None)
        if worker.worker_device == NO_DEVICE:
            graph_task.probe.thread_exited(CPU_DEVICE, Role.CALLER)
        else:
            graph_task.probe.reentrant_left(graph_task.id, graph_task.reentrant_depth)
