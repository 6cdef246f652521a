"""The end of a pass: its callbacks, its outcome, and the wake-up of its owner."""

from gradviz.engine.graph.grad_mode import GRAD_ENABLED
from gradviz.engine.tasks.discovery import cycle_message
from gradviz.engine.tasks.graph_task import GraphTask, WakeUp
from gradviz.engine.tasks.passes_under_way import Passes
from gradviz.engine.tasks.ready_queue import ReadyQueue
from gradviz.engine.threads.worker import Worker
from gradviz.errors import EngineError
from gradviz.modes import assign
from gradviz.trace.probe import Push


def mark_as_completed_and_run_post_processing(
    worker: Worker, graph_task: GraphTask
) -> None:
    """End a pass whose last task the calling thread has just counted.

    That happens once per pass, so unlike in PyTorch threads do not race for it (P1).

    Source: torch/csrc/autograd/engine.cpp,
    GraphTask::mark_as_completed_and_run_post_processing.
    """
    outcome = graph_task.outcome
    end = _end_failed if outcome.has_error.value else exec_post_processing
    try:
        if worker is graph_task.home:
            graph_task.put_back_modes()
            end(worker, graph_task)
        else:
            graph_task.context.copy().run(end, worker, graph_task)
    except BaseException as error:
        if worker.is_interrupted:
            raise  # see Note [Interrupted engine code]
        outcome.set_error(error, None)
    finally:
        worker.in_user_code = False
    outcome.complete()
    if not outcome.claim_end():
        return  # the pass was given up meanwhile, and the owner was notified
    if worker.worker_device == graph_task.owner:
        outcome.is_done = True
    else:
        push_wake_up(worker, graph_task, ends_pass=True)


def exec_post_processing(worker: Worker, graph_task: GraphTask) -> None:
    """Check that nothing is missing, and run the final callbacks.

    A callback may queue further callbacks, and may call `execute` (P2, G7).

    Raises:
        RuntimeError: Some node never got all its gradients.
        BaseException: Any exception of a callback; the rest are not run (P4).

    Source: torch/csrc/autograd/engine.cpp, GraphTask::exec_post_processing.
    """
    if graph_task.not_ready:
        waiting = [node for node, left in graph_task.dependencies.items() if left]
        graph_task.not_ready.clear()
        raise RuntimeError(cycle_message(waiting[0], waiting))
    if graph_task.streams is not None:
        graph_task.streams.join()
    if not graph_task.outcome.final_callbacks:
        return
    if graph_task.streams is None:
        _run_callbacks(worker, graph_task)
    else:
        is_home = worker is graph_task.home
        with graph_task.streams.current_for(None, is_home=is_home):
            _run_callbacks(worker, graph_task)


def _end_failed(worker: Worker, graph_task: GraphTask) -> None:
    """Make the caller's streams wait for a pass that has failed.

    Differs: PyTorch does not, though the pass may have changed the ``.grad`` of leaves.
    """
    del worker
    if graph_task.streams is not None:
        graph_task.streams.join()


def _run_callbacks(worker: Worker, graph_task: GraphTask) -> None:
    outer, worker.graph_task = worker.graph_task, graph_task
    # `execute` restores it; on any other thread this is a copy of its context.
    assign(GRAD_ENABLED, graph_task.create_graph)
    worker.in_user_code = True
    try:
        # By index: the list may grow during the loop.
        for index, callback in enumerate(graph_task.outcome.final_callbacks):
            if graph_task.probe:
                graph_task.probe.callback_run(graph_task.id, index)
            callback()
    finally:
        worker.graph_task = outer


def push_wake_up(worker: Worker, graph_task: GraphTask, *, ends_pass: bool) -> None:
    """Wake up the consumer of the owner's queue; any other thread, no mutex.

    That thread may be asleep in `pop`. If `ends_pass`, the wake-up says that the pass
    is complete. Otherwise the pass has failed, and the wake-up is one more of its
    outstanding tasks, so that it cannot be left behind in the queue (M5).
    """
    queue = worker.queues.queue_at(graph_task, graph_task.owner, worker)
    task = WakeUp(graph_task, ends_pass=ends_pass)
    with graph_task.mutex:
        if not ends_pass:
            graph_task.outstanding_tasks += 1
        if graph_task.probe:
            graph_task.probe.task_pushed(
                graph_task.id,
                -1,
                queue.id,
                graph_task.reentrant_depth,
                0,
                len(queue) + 1,
                graph_task.outstanding_tasks,
                -1,
                Push.WAKE_UP,
            )
        queue.push(task)
        if ends_pass:
            graph_task.outcome.is_told = True


def fail_torn_passes(
    worker: Worker,
    queue: ReadyQueue,
    passes: Passes,
    error: BaseException,
) -> None:
    """Fail the passes whose tasks the calling device thread may have lost (F11).

    `error` struck the engine's own code on this thread, so a task may have left the
    queue and never be counted; see Note [Interrupted engine code]. Nothing says which,
    so every pass that has work for this device fails.
    """
    worker.serve(queue, queue.device)
    # In this order: a pass that starts after the queue was cleared has lost nothing.
    queue.clear()
    for graph_task in passes.under_way():
        outcome = graph_task.outcome
        outcome.forget_helper(worker)
        if queue.device not in graph_task.devices and queue.device != graph_task.owner:
            continue
        failure = EngineError(
            f"the thread of device {queue.device} was struck by "
            f"{type(error).__name__} in the engine's own code; the pass cannot go on"
        )
        failure.__cause__ = error
        outcome.is_torn.value = True
        outcome.set_error(failure, None)
        # Claimed or not: this thread may have been struck between claim and push.
        if not (outcome.is_told or outcome.is_done):
            push_wake_up(worker, graph_task, ends_pass=True)
