"""What a thread does for the engine: take tasks from its queue until told to stop.

Note [Three kinds of workers]
~~~~~~~~~~~~~~~~~~~~~~~~~~~~~
The same loop serves three kinds of threads. A *device* thread runs it for the life of
the engine, without a pass of its own. The thread that *called* `execute` runs it until
its pass is done: it does the CPU's work of that pass itself. A *reentrant* call (a
backward inside a backward) runs it once more, on top of the loop that already runs on
its thread, or in a thread of the pool beyond the depth limit.

The loop runs whatever its queue holds, not only its own pass: passes do not form a
stack. A nested loop may run nodes of the outer pass, or of a stranger's.

Note [Interrupted engine code]
~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~
A KeyboardInterrupt may be raised between any two bytecodes, and any allocation may
fail. Where that strikes decides what is left behind. In a node, hook or callback
(`ThreadState.in_user_code`) it is an error like any other: the pass fails, the loop
goes on, everything is counted. In the engine's own code a task may have left the queue
without having been counted, or the heap may be half sifted. Nothing of that can be
trusted any more, so the error leaves the loop, and `execute` throws the queue away and
makes a fresh one. `is_interrupted` carries the news through the user code between a
nested loop and the ones below it.
"""

from typing import Final

from gradviz.engine.completion import (
    mark_as_completed_and_run_post_processing,
    push_wake_up,
)
from gradviz.engine.device_queues import DeviceQueues
from gradviz.engine.evaluation import evaluate_function
from gradviz.engine.grad_mode import GRAD_ENABLED
from gradviz.engine.graph_task import GraphTask, NodeTask, describe
from gradviz.engine.ready_queue import Empty, ReadyQueue
from gradviz.engine.sync import Sync
from gradviz.engine.thread_state import ThreadState
from gradviz.trace import probe as trace
from gradviz.trace.probe import Skip

#: How long a failed pass waits for its nodes that run on other threads, in seconds.
QUIESCE_SECONDS: Final = 5.0


def thread_main(
    sync: Sync,
    state: ThreadState,
    queues: DeviceQueues,
    graph_task: GraphTask | None,
) -> None:
    """Run tasks until `graph_task` is done; for ever, if it is None.

    A pass that has failed is given `QUIESCE_SECONDS` for its nodes on other threads;
    after that the loop ends although they still run.

    Args:
        sync: The seam.
        state: The calling thread's; says which queue to consume.
        queues: Where nodes that become ready are pushed.
        graph_task: The pass to wait for, None on a device thread.

    Raises:
        BaseException: Only what struck the engine's own code; see
            Note [Interrupted engine code].

    Source: torch/csrc/autograd/engine.cpp, Engine::thread_main (M1-M6).
    """
    queue = state.ready_queue
    assert queue is not None
    deadline_ns = 0
    while graph_task is None or not graph_task.is_done:
        timeout = None
        if graph_task is not None and graph_task.has_error.value:
            deadline_ns = deadline_ns or sync.now_ns() + int(QUIESCE_SECONDS * 1e9)
            timeout = max(0.0, (deadline_ns - sync.now_ns()) / 1e9)
        try:
            task = _pop(sync, queue, timeout)
        except Empty:
            return
        popped = task.graph_task
        if popped is None:
            return  # a shutdown
        if task.ends_task:
            popped.is_done = True
            continue
        if task.node is not None:
            _run(state, queues, popped, task)
        # The task, and with it the gradients, is let go before it is counted as done:
        # who waits for the pass finds no reference of ours left (M4).
        del task
        if popped.finish_one():
            mark_as_completed_and_run_post_processing(state, queues, popped)


def _pop(sync: Sync, queue: ReadyQueue[NodeTask], timeout: float | None) -> NodeTask:
    """Take the next task, and report how long the thread slept for it."""
    if trace.current is None:
        task = queue.pop(timeout)
    elif queue.would_wait():
        began_ns = sync.now_ns()
        task = queue.pop(timeout)
        if (listener := trace.current) is not None:
            listener.queue_waited(queue.id, sync.now_ns() - began_ns)
    else:
        task = queue.pop(timeout)
    if task.graph_task is not None and (probe := task.graph_task.probe):
        node_id = -1 if task.node is None else task.node.id
        probe.task_popped(task.graph_task.id, node_id, queue.id, len(queue))
    return task


def _run(
    state: ThreadState, queues: DeviceQueues, graph_task: GraphTask, task: NodeTask
) -> None:
    """Run the node of a task, unless its pass has failed."""
    if state is graph_task.home:
        if graph_task.has_error.value:
            _skip(state, graph_task, task)
        else:
            _evaluate(state, queues, graph_task, task)
    elif graph_task.begin_help():
        try:
            graph_task.context.copy().run(_evaluate, state, queues, graph_task, task)
        finally:
            graph_task.end_help()
    else:
        _skip(state, graph_task, task)


def _evaluate(
    state: ThreadState, queues: DeviceQueues, graph_task: GraphTask, task: NodeTask
) -> None:
    """Run the node of a task; its error becomes the pass's."""
    node = task.node
    assert node is not None
    if GRAD_ENABLED.get() is not graph_task.create_graph:
        GRAD_ENABLED.set(graph_task.create_graph)
    outer = state.graph_task, state.node, state.is_checkpoint_valid
    state.graph_task, state.node = graph_task, node
    probe = graph_task.probe
    if probe:
        probe.node_started(graph_task.id, node.id)
    state.in_user_code = True
    try:
        evaluate_function(state, queues, graph_task, node, task.inputs)
    except BaseException as error:
        if state.is_interrupted or not state.in_user_code:
            raise  # see Note [Interrupted engine code]
        state.in_user_code = False
        if probe:
            probe.node_failed(graph_task.id, node.id, describe(error))
        graph_task.set_error(error, node)
        if state is not graph_task.home:
            push_wake_up(queues, graph_task, ends_task=False)
    else:
        if probe:
            probe.node_completed(graph_task.id, node.id)
    finally:
        state.in_user_code = False
        state.graph_task, state.node, state.is_checkpoint_valid = outer


def _skip(state: ThreadState, graph_task: GraphTask, task: NodeTask) -> None:
    """Let go of a task whose pass has failed (R3)."""
    if graph_task.probe and task.node is not None:
        graph_task.probe.node_skipped(graph_task.id, task.node.id, Skip.ERROR)
    state.in_user_code = True  # dropping a gradient may run a finaliser
    task.inputs.clear()
    state.in_user_code = False


__all__ = ["QUIESCE_SECONDS", "thread_main"]
