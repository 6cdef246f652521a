"""Threads that stand in for one that is nested too deep in reentrant calls."""

from gradviz.engine.device_queues import DeviceQueues
from gradviz.engine.graph_task import GraphTask
from gradviz.engine.sync import Local, Mailbox, Sync
from gradviz.engine.thread_state import ThreadState
from gradviz.engine.worker import thread_main
from gradviz.trace import probe as trace
from gradviz.trace.probe import Role


class ThreadPool:
    """The reentrancy pool.

    Note [Reentrant backwards]
    ~~~~~~~~~~~~~~~~~~~~~~~~~~
    A node may call `execute`. The call must block until the inner pass is done, yet
    its thread is the only consumer of its queue: if it just slept, nobody would run
    the inner pass. So the thread runs the loop again, on top of its own stack. That
    nests; after `MAX_DEPTH` nested calls a thread of this pool takes over instead. It
    consumes the *same* queue, for the same device, with a fresh stack, while the
    thread that called waits for the baton. When the inner pass is done the pool's
    thread leaves the queue and hands the baton back, so there is one consumer at any
    time (Note [One consumer]). PyTorch lets the waiting thread go as soon as the pass
    is complete, and both may then pop from the queue, which is safe under its mutex.

    A thread is made only if none is idle, is kept for the next time, and ends with
    the engine.

    Source: torch/csrc/autograd/engine.cpp, Engine::add_thread_pool_task (RE4-RE6).
    """

    def __init__(
        self, sync: Sync, states: Local[ThreadState], queues: DeviceQueues
    ) -> None:
        self._sync = sync
        self._states = states
        self._queues = queues
        self._lock = sync.lock()
        self._jobs: Mailbox[GraphTask | None] = sync.mailbox()
        #: Guarded by `_lock`: threads without a job, jobs not yet taken, threads made.
        self._num_idle = 0
        self._num_waiting = 0
        self.num_threads = 0

    def run(self, graph_task: GraphTask) -> None:
        """Let a pool thread run the loop for `graph_task`; returns when it has left.

        Called by the consumer of the owner's queue, which lends that role.
        """
        with self._lock:
            must_spawn = self._num_idle <= self._num_waiting
            self._num_waiting += 1
            if must_spawn:
                self.num_threads += 1
                self._num_idle += 1
                number = self.num_threads
        self._jobs.put(graph_task)
        if must_spawn:
            self._sync.spawn(self._thread_main, f"gv_autograd_pool_{number - 1}")
            if listener := trace.current:
                listener.pool_thread_spawned(number)
        graph_task.baton.get()

    def stop(self) -> None:
        """End every thread once it is idle; does not wait."""
        with self._lock:
            num_threads, self.num_threads = self.num_threads, 0
        for _ in range(num_threads):
            self._jobs.put(None)

    def _thread_main(self) -> None:
        state = self._states.get()
        while (graph_task := self._jobs.get()) is not None:
            with self._lock:
                self._num_idle -= 1
                self._num_waiting -= 1
            try:
                self._stand_in(state, graph_task)
            except BaseException as error:  # noqa: BLE001 - the caller gets it
                graph_task.set_error(error, None)
            finally:
                baton = graph_task.baton
                del graph_task
                # Idle before the baton is back: the next job finds this thread.
                with self._lock:
                    self._num_idle += 1
                baton.put(None)

    def _stand_in(self, state: ThreadState, graph_task: GraphTask) -> None:
        state.worker_device = graph_task.owner
        state.ready_queue = self._queues.queue_at(graph_task, graph_task.owner)
        state.total_depth = graph_task.reentrant_depth
        state.current_depth = 0
        state.in_user_code = False
        state.is_interrupted = False
        listener = graph_task.probe
        if listener:
            listener.thread_started(graph_task.owner, Role.POOL)
        try:
            thread_main(self._sync, state, self._queues, graph_task)
        finally:
            state.ready_queue = None
            if listener:
                listener.thread_exited(graph_task.owner, Role.POOL)
