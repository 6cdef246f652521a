"""How a pass ends: its callbacks, its outcome, and telling the thread that waits."""

from gradviz.engine.discovery import cycle_message
from gradviz.engine.grad_mode import GRAD_ENABLED
from gradviz.engine.graph_task import GraphTask, WakeUp
from gradviz.engine.passes import Passes
from gradviz.engine.ready_queue import ReadyQueue
from gradviz.engine.worker import Worker
from gradviz.errors import EngineError
from gradviz.modes import assign
from gradviz.trace.probe import Push


def mark_as_completed_and_run_post_processing(
    worker: Worker, graph_task: GraphTask
) -> None:
    """End a pass whose last task has been counted; the thread that counted it.

    That happens once a pass, so unlike PyTorch there is no race to be the one (P1).

    Source: torch/csrc/autograd/engine.cpp,
    GraphTask::mark_as_completed_and_run_post_processing.
    """
    end = _end_failed if graph_task.has_error.value else exec_post_processing
    try:
        if worker is graph_task.home:
            graph_task.put_back_modes()
            end(worker, graph_task)
        else:
            graph_task.context.copy().run(end, worker, graph_task)
    except BaseException as error:
        if worker.is_interrupted:
            raise  # see Note [Interrupted engine code]
        graph_task.set_error(error, None)
    finally:
        worker.in_user_code = False
    graph_task.complete()
    if not graph_task.claim_end():
        return  # the pass was given up meanwhile, and the owner has been told
    if worker.worker_device == graph_task.owner:
        graph_task.is_done = True
    else:
        push_wake_up(worker, graph_task, ends_pass=True)


def exec_post_processing(worker: Worker, graph_task: GraphTask) -> None:
    """Check that nothing is missing, and run the final callbacks.

    A callback may queue further callbacks, and may call `execute` (P2, G7).

    Raises:
        RuntimeError: Some node never got all its gradients.
        BaseException: Whatever a callback raises; the rest are not run (P4).

    Source: torch/csrc/autograd/engine.cpp, GraphTask::exec_post_processing.
    """
    if graph_task.not_ready:
        waiting = [node for node, left in graph_task.dependencies.items() if left]
        graph_task.not_ready.clear()
        raise RuntimeError(cycle_message(waiting[0], waiting))
    if graph_task.streams is not None:
        graph_task.streams.join()
    if not graph_task.final_callbacks:
        return
    if graph_task.streams is None:
        _run_callbacks(worker, graph_task)
    else:
        is_home = worker is graph_task.home
        with graph_task.streams.current_for(None, is_home=is_home):
            _run_callbacks(worker, graph_task)


def _end_failed(worker: Worker, graph_task: GraphTask) -> None:
    """Have the caller's streams wait for a pass that has failed.

    Differs: PyTorch does not, though the pass may have changed the ``.grad`` of leaves.
    """
    del worker
    if graph_task.streams is not None:
        graph_task.streams.join()


def _run_callbacks(worker: Worker, graph_task: GraphTask) -> None:
    outer, worker.graph_task = worker.graph_task, graph_task
    # Put back by `execute`; on any other thread this is a copy of its context.
    assign(GRAD_ENABLED, graph_task.create_graph)
    worker.in_user_code = True
    try:
        # By index: the list may grow while it is walked.
        for index, callback in enumerate(graph_task.final_callbacks):
            if graph_task.probe:
                graph_task.probe.callback_run(graph_task.id, index)
            callback()
    finally:
        worker.graph_task = outer


def push_wake_up(worker: Worker, graph_task: GraphTask, *, ends_pass: bool) -> None:
    """Make the consumer of the owner's queue look up; any other thread, no mutex.

    That thread may be asleep in `pop`. If `ends_pass`, the pass is complete and the
    wake-up says so. Otherwise the pass has failed, and the wake-up is one more of its
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
        graph_task.is_told = graph_task.is_told or ends_pass


def tear(
    worker: Worker,
    queue: ReadyQueue,
    passes: Passes,
    error: BaseException,
) -> None:
    """Fail the passes whose tasks the calling device thread may have lost (F11).

    `error` struck the engine's own code on this thread, so a task may have left the
    queue and never be counted; see Note [Interrupted engine code]. Which one cannot
    be known, so every pass that has work for this device fails.
    """
    worker.serve(queue, queue.device)
    # In this order: a pass that begins after the queue was cleared has lost nothing.
    queue.clear()
    for graph_task in passes.under_way():
        graph_task.forget_helper(worker)
        if queue.device not in graph_task.devices and queue.device != graph_task.owner:
            continue
        failure = EngineError(
            f"the thread of device {queue.device} was struck by "
            f"{type(error).__name__} in the engine's own code; the pass cannot go on"
        )
        failure.__cause__ = error
        graph_task.is_torn.value = True
        graph_task.set_error(failure, None)
        # Claimed or not: this thread may have been struck between claim and push.
        if not (graph_task.is_told or graph_task.is_done):
            push_wake_up(worker, graph_task, ends_pass=True)
