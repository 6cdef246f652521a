"""The main loop of a thread: take tasks from its queue until told to stop.

Note [Three kinds of workers]
~~~~~~~~~~~~~~~~~~~~~~~~~~~~~
The same loop serves three kinds of threads. A *device* thread runs it for the life of
the engine, without a pass of its own. The thread that *called* `execute` runs it until
its pass is done, and so runs the CPU nodes of that pass itself. A *reentrant* call (a
backward inside a backward) runs it once more, on top of the loop already running on
its thread, or on a pool thread beyond the depth limit.

The loop runs every task in its queue, not only those of its own pass: passes do not
form a stack. A nested loop may run nodes of the outer pass, or of an unrelated one.

Note [Interrupted engine code]
~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~
A KeyboardInterrupt may be raised between any two bytecodes, and any allocation may
fail. The place where that strikes decides what is left behind. In a node, hook or
callback (`Worker.in_user_code`) it is an error like any other: the pass fails, the
loop goes on, everything is counted. In the engine's own code a task may have left the
queue without being counted, or the heap may be half sifted. None of that can be
trusted any more, so the error leaves the loop, and `execute` discards the queue and
makes a fresh one. `is_interrupted` carries the news through the user code between a
nested loop and the ones below it.

Note [No condition on a loop]
~~~~~~~~~~~~~~~~~~~~~~~~~~~~~
Since 3.12, the jump that closes ``while condition:`` is in no block: an interrupt
there bypasses the `except`, the `finally` and the `with` around the loop, in the same
function, and a lock stays taken forever. ``while True:`` and `for` are sound. So no
loop with a condition stands inside a block of a function that can be interrupted.
"""

from gradviz import modes
from gradviz.engine.graph import anomaly
from gradviz.engine.graph.anomaly import SWITCHED_ON
from gradviz.engine.graph.grad_mode import GRAD_ENABLED, grad_enabled
from gradviz.engine.graph.input_buffer import InputBuffer
from gradviz.engine.graph.node import Node
from gradviz.engine.graph.odd_fields import error_at
from gradviz.engine.tasks.graph_task import GraphTask, LetGo, NodeTask
from gradviz.engine.tasks.outcome import describe
from gradviz.engine.tasks.ready_queue import Empty, ReadyQueue
from gradviz.engine.threads.completion import (
    mark_as_completed_and_run_post_processing,
    push_wake_up,
)
from gradviz.engine.threads.evaluation import evaluate_function, evaluate_on_stream
from gradviz.engine.threads.worker import Worker
from gradviz.modes import NEWEST_CHANGE
from gradviz.trace import probe as trace
from gradviz.trace.probe import Skip


def thread_main(worker: Worker, graph_task: GraphTask | None) -> None:
    """Run tasks until `graph_task` is done; forever, if it is None.

    A failed pass gets `QUIESCE_NS` for its nodes on other threads; after that the loop
    ends although they still run.

    Args:
        worker: The calling thread; says which queue to consume.
        graph_task: The pass to wait for, None on a device thread.

    Raises:
        BaseException: Only errors that struck the engine's own code; see
            Note [Interrupted engine code].

    Source: torch/csrc/autograd/engine.cpp, Engine::thread_main (M1-M6).
    """
    queue = worker.ready_queue
    assert queue is not None
    while graph_task is None or not graph_task.outcome.is_done:
        # The same as `queue.pop`, with two calls less: most tasks come from this
        # thread.
        if not queue.has_no_mail():
            queue.collect()
        plain = queue.plain
        try:
            task: NodeTask | None
            task = queue.pop_own() if plain is None else plain.pop()  # type: ignore[assignment]  # it was pushed as one
        except IndexError:
            task = None
        task = task or _wait(worker, queue, graph_task)
        if task is None:
            return  # the pass has failed, and its node on another thread hangs
        popped = task.graph_task
        if popped is None:
            return  # a shutdown
        worker.has_count = True
        if task.node is None:
            report_wake_up(popped, queue, task)
            if task.ends_pass:
                popped.outcome.is_done = True
                continue
        elif worker is popped.home:
            _evaluate(worker, popped, queue, task.node, task.inputs)
        else:
            help_with(worker, popped, queue, task.node, task.inputs)
        # Release the task, and with it the gradients, before it is counted as done:
        # then a thread that waits for the pass finds no reference of ours left (M4).
        del task
        if worker.has_count and popped.finish_one():
            mark_as_completed_and_run_post_processing(worker, popped)
        del popped  # a sleeping device thread keeps no pass alive


def _wait(
    worker: Worker, queue: ReadyQueue, graph_task: GraphTask | None
) -> NodeTask | None:
    """Sleep until there is a task, report the wait, and take the task.

    Returns:
        None if nothing arrived for as long as a failed pass may wait.
    """
    timeout: float | None = None
    if graph_task is not None and graph_task.outcome.has_error.value:
        timeout = graph_task.outcome.time_left(worker.sync.now_ns())
    task: NodeTask | None = None
    began_ns = -1 if trace.current is None else worker.sync.now_ns()
    try:
        task = queue.pop(timeout)
    except Empty:
        pass
    finally:
        if began_ns >= 0 and (listener := trace.current) is not None:
            listener.queue_waited(queue.id, worker.sync.now_ns() - began_ns)
    return task


def report_wake_up(graph_task: GraphTask, queue: ReadyQueue, task: NodeTask) -> None:
    """Report the pop of a task without a node."""
    if graph_task.probe and not isinstance(task, LetGo):
        graph_task.probe.task_popped(graph_task.id, -1, queue.id, len(queue))


def help_with(
    worker: Worker,
    graph_task: GraphTask,
    queue: ReadyQueue,
    node: Node,
    inputs: InputBuffer,
) -> None:
    """Run a node of a pass that another thread called for.

    It runs in a copy of the caller's context, since a context cannot be entered twice
    (C22).
    """
    if not graph_task.outcome.begin_help(worker):
        _skip(worker, graph_task, queue, node, inputs)
        return
    outer = worker.graph_task, worker.node
    try:
        context = graph_task.context.copy()
        context.run(_evaluate, worker, graph_task, queue, node, inputs)
    finally:
        worker.graph_task, worker.node = outer  # a sleeping thread keeps no pass alive
        graph_task.outcome.end_help(worker)


def _evaluate(
    worker: Worker,
    graph_task: GraphTask,
    queue: ReadyQueue,
    node: Node,
    inputs: InputBuffer,
) -> None:
    """Run a node, unless its pass has failed; its error becomes the pass's.

    The node has just been popped from `queue`, which is reported here too.
    """
    if graph_task.outcome.has_error.value:
        _skip(worker, graph_task, queue, node, inputs)
        return
    if grad_enabled() is not graph_task.create_graph:
        modes.assign(GRAD_ENABLED, graph_task.create_graph)
    if NEWEST_CHANGE[0] != graph_task.seen_change and worker is graph_task.home:
        graph_task.put_back_modes()  # others run it in a fresh copy of the context
    worker.graph_task, worker.node = graph_task, node
    if SWITCHED_ON:
        modes.assign(anomaly.EVALUATING, node)
    reports = None if graph_task.probe is None else worker.reports(graph_task)
    if reports is not None:
        reports.node_taken(graph_task.id, node.id, queue.id, len(queue.seen))
    worker.in_user_code = True
    try:
        if graph_task.streams is None:
            evaluate_function(worker, graph_task, reports, node, inputs)
        else:
            evaluate_on_stream(
                worker, graph_task, reports, graph_task.streams, node, inputs
            )
    except BaseException as error:
        if worker.is_interrupted or not worker.in_user_code:
            if isinstance(error, Exception):
                raise error_at(error, node)  # noqa: B904 - which has its cause
            raise  # see Note [Interrupted engine code]
        worker.in_user_code = False
        _fail(worker, graph_task, node, error_at(error, node))  # no variable: no cycle


def _fail(
    worker: Worker,
    graph_task: GraphTask,
    node: Node,
    error: BaseException,
) -> None:
    """Make a node's error the error of its pass (R1, R2)."""
    if graph_task.probe:
        graph_task.probe.node_failed(graph_task.id, node.id, describe(error))
    if graph_task.outcome.set_error(error, node) and SWITCHED_ON:
        anomaly.warn_of(node)
    if worker is not graph_task.home:
        push_wake_up(worker, graph_task, ends_pass=False)


def _skip(
    worker: Worker,
    graph_task: GraphTask,
    queue: ReadyQueue,
    node: Node,
    inputs: InputBuffer,
) -> None:
    """Release a node's gradients, because its pass has failed (R3)."""
    if probe := graph_task.probe:
        probe.task_popped(graph_task.id, node.id, queue.id, len(queue))
        probe.node_skipped(graph_task.id, node.id, Skip.ERROR)
    worker.in_user_code = True  # dropping a gradient may run a finalizer
    inputs.clear()
    worker.in_user_code = False
