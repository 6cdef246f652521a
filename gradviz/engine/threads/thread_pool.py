"""Pool of threads that take over from deeply nested reentrant calls."""

import functools
import itertools

from gradviz.engine.graph.sync import Local, Mailbox, Sync
from gradviz.engine.tasks.device_queues import DeviceQueues
from gradviz.engine.tasks.graph_task import GraphTask, LetGo
from gradviz.engine.threads.thread_main import thread_main
from gradviz.engine.threads.worker import Worker
from gradviz.errors import EngineError
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
    calling thread waits for the baton. When the inner pass is done, the pool's thread
    leaves the queue and hands the baton back, so there is one consumer at any time
    (Note [One consumer]). PyTorch releases the waiting thread as soon as the pass is
    complete, and both may then pop from the queue, which is safe under its mutex.

    A thread is made only if more passes wait than there are threads. It is kept for
    reuse, and ends with the engine.

    Source: torch/csrc/autograd/engine.cpp, Engine::add_thread_pool_task (RE4-RE6).
    """

    def __init__(self, sync: Sync, states: Local[Worker], queues: DeviceQueues) -> None:
        self._sync = sync
        self._states = states
        self._queues = queues
        self._lock = sync.lock()
        self._jobs: Mailbox[GraphTask | None] = sync.mailbox()
        #: Number of running threads; guarded by `_lock`, as is whether they are to end.
        self.num_threads = 0
        self._is_stopped = False
        self._numbers = itertools.count()
        #: Task id -> pass whose caller waits for its baton. Each needs a thread, so
        #: there are as many threads as ever waited at once. Grows under `_lock`.
        self._waiting: dict[int, GraphTask] = {}
        #: Task id -> pass that a thread of the pool works for; its caller may be gone.
        self._served: dict[int, GraphTask] = {}

    def run(self, graph_task: GraphTask) -> None:
        """Run the loop for `graph_task` on a pool thread; return when it has left.

        Called by the consumer of the owner's queue, which lends that role.

        Raises:
            RuntimeError: The system refuses another thread.
            EngineError: An error struck the engine's own code on the pool's thread.
        """
        queue = self._queues.queue_at(graph_task, graph_task.owner, graph_task.home)
        let_go = functools.partial(queue.push, LetGo(graph_task))
        try:
            with self._lock:
                self._waiting[graph_task.id] = graph_task
                must_spawn = self.num_threads < len(self._waiting | self._served)
            if must_spawn:
                self._spawn()
            self._jobs.put(graph_task)
            graph_task.baton.get()
        except BaseException:
            # First of all, and in one step, as more interrupts may be on their way:
            # else a stand-in would sleep forever on the queue that we throw away.
            let_go()
            raise
        finally:
            self._waiting.pop(graph_task.id, None)
        if graph_task.outcome.is_torn.value:
            raise EngineError(
                "an error struck the engine's own code on a thread of the reentrancy "
                "pool; the pass cannot go on"
            ) from graph_task.outcome.error

    def stop(self) -> None:
        """Tell every thread to end; do not wait. Called when no pass is under way."""
        with self._lock:
            self._is_stopped = True
            num_threads, self.num_threads = self.num_threads, 0
        for _ in range(num_threads):
            self._jobs.put(None)

    def _spawn(self) -> None:
        number = next(self._numbers)
        self._sync.spawn(self._thread_main, f"gv_autograd_pool_{number}")
        if listener := trace.current:
            listener.pool_thread_spawned(number + 1)

    def _thread_main(self) -> None:
        try:
            worker = self._states.get()
            # The thread counts itself, since its spawner may be interrupted after the
            # spawn.
            with self._lock:
                if self._is_stopped:
                    return
                self.num_threads += 1
        except BaseException as error:  # noqa: BLE001 - the waiting caller raises it
            self._tear(None, None, error)
            return
        while not self._work(worker):
            pass

    def _work(self, worker: Worker) -> bool:
        """Take jobs; return whether `stop` ended that, as it should."""
        mine: GraphTask | None = None
        try:
            while True:  # with no condition: see Note [No condition on a loop]
                mine = self._jobs.get()
                if mine is None:
                    return True
                if mine.id in self._waiting:
                    self._served[mine.id] = mine
                    self._stand_in(worker, mine)
                    del self._served[mine.id]
                    # While it sleeps in `get`, this thread must not keep the pass
                    # alive.
                    baton, mine = mine.baton, None
                    baton.put(None)
        except BaseException as error:  # noqa: BLE001 - the thread must not die
            self._tear(worker, mine, error)
            return False

    def _stand_in(self, worker: Worker, graph_task: GraphTask) -> None:
        queue = self._queues.queue_at(graph_task, graph_task.owner, worker)
        worker.serve(queue, graph_task.owner, graph_task.reentrant_depth)
        listener = graph_task.probe
        if listener:
            listener.thread_started(graph_task.owner, Role.POOL)
        try:
            thread_main(worker, graph_task)
        finally:
            worker.ready_queue = worker.graph_task = worker.node = None
        # Not for an interrupted pass: the pass around it has not failed yet.
        if listener:
            listener.thread_exited(graph_task.owner, Role.POOL)

    def _tear(
        self, worker: Worker | None, mine: GraphTask | None, error: BaseException
    ) -> None:
        """Give back the baton after `error` struck the engine's own code here.

        It may have struck before the job was known; then every pass that waits for a
        thread and has none is given up (Note [Interrupted engine code]).
        """
        lost = [mine] if mine is not None else []
        if mine is None:
            lost = [one for one in tuple(self._waiting.values()) if not self._has(one)]
        for graph_task in lost:
            graph_task.outcome.is_torn.value = True
            graph_task.outcome.set_error(error, None)
            graph_task.outcome.forget_helper(worker)
            self._served.pop(graph_task.id, None)
            graph_task.baton.put(None)

    def _has(self, graph_task: GraphTask) -> bool:
        return graph_task.id in self._served
