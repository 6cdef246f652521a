"""One thread for each device index: starting and stopping them."""

from gradviz.engine.graph.sync import Empty, Local, Mailbox, Sync
from gradviz.engine.tasks.device_queues import DeviceQueues
from gradviz.engine.tasks.graph_task import Shutdown
from gradviz.engine.tasks.passes_under_way import Passes
from gradviz.engine.tasks.ready_queue import ReadyQueue
from gradviz.engine.threads.completion import fail_torn_passes
from gradviz.engine.threads.thread_main import thread_main
from gradviz.engine.threads.worker import Worker
from gradviz.errors import EngineError
from gradviz.trace import probe as trace
from gradviz.trace.probe import Role


class _Start:
    """Progress of the start of one thread; written by that thread.

    Attributes:
        is_over: A `Flag`: the thread runs, or has failed to.
        error: The reason for a failure; written before `is_over`.
    """

    __slots__ = ("error", "is_over")

    def __init__(self, sync: Sync) -> None:
        self.is_over = sync.flag()
        self.error: BaseException | None = None


class DeviceThreads:
    """Starts the device threads when they are first needed, and stops them.

    A process that uses no device has no such thread, and may fork.

    Source: torch/csrc/autograd/engine.cpp, Engine::start_device_threads (L3-L7).
    """

    def __init__(
        self,
        sync: Sync,
        states: Local[Worker],
        queues: DeviceQueues,
        passes: Passes,
    ) -> None:
        self._sync = sync
        self._states = states
        self._queues = queues
        self._passes = passes
        self._start_lock = sync.lock()
        #: State of the newest thread. Guarded by `_start_lock`, as is `_num_running`.
        self._start = _Start(sync)
        #: Number of running threads; only goes up.
        self._num_running = 0
        #: Receives an item for each start that is over: check the flag again.
        self._news: Mailbox[None] = sync.mailbox()
        self._exited: Mailbox[int] = sync.mailbox()

    def ensure(self, num_devices: int) -> None:
        """Start threads until there is one for each of `num_devices` indices.

        Returns only when they run, so that a process that exits right after never waits
        for a thread that has not started (L4). May be interrupted anywhere: the next
        call continues from there.

        Raises:
            EngineError: A thread has started, and failed before it could take tasks.
            RuntimeError: The system refuses another thread.
        """
        if self._num_running >= num_devices:
            return
        worker = self._states.get()
        try:
            # A signal handler or a finalizer must not call `execute` here: it would
            # wait for the lock, which this thread holds.
            worker.in_user_code = False
            # With `for`: see Note [No condition on a loop].
            with self._start_lock:
                for _ in range(self._num_running, num_devices):
                    if len(self._queues) == self._num_running:
                        self._spawn()
                    self._wait_for_start()
                    self._num_running += 1
        finally:
            worker.in_user_code = True

    def _spawn(self) -> None:
        queue = self._queues.new_device_queue()
        start = self._start = _Start(self._sync)
        name = f"gv_autograd_{queue.device}"
        try:
            self._sync.spawn(lambda: self._thread_init(queue, start), name)
        except BaseException:
            queue.push(Shutdown())  # for a thread that has started all the same
            raise
        # Only now, so that a refused thread leaves no queue that nobody consumes.
        self._queues.add(queue)

    def _wait_for_start(self) -> None:
        while not self._start.is_over.value:
            self._news.get()
        if (error := self._start.error) is not None:
            self._queues.remove_newest()
            raise EngineError(
                f"the thread of device {self._num_running} could not begin: {error!r}"
            ) from error

    def stop(self, deadline_ns: int) -> None:
        """End the threads, and wait until `deadline_ns` for all of them together (L7).

        Called when no pass is under way, so that none loses its thread.
        """
        for queue in self._queues:
            queue.push(Shutdown())
        for _ in self._queues:
            left = max(0.0, (deadline_ns - self._sync.now_ns()) / 1e9)
            try:
                self._exited.get(timeout=left)
            except Empty:
                return

    def _thread_init(self, queue: ReadyQueue, start: _Start) -> None:
        """Source: torch/csrc/autograd/engine.cpp, Engine::thread_init (L5)."""
        try:
            worker = self._states.get()
            worker.serve(queue, queue.device)
            if listener := trace.current:
                listener.thread_started(queue.device, Role.DEVICE)
        except BaseException as error:  # noqa: BLE001 - the waiting caller raises it
            start.error = error
            return
        finally:
            start.is_over.value = True
            self._news.put(None)
        while not self._work(worker, queue):
            pass
        if listener := trace.current:
            listener.thread_exited(queue.device, Role.DEVICE)
        self._exited.put(queue.device)

    def _work(self, worker: Worker, queue: ReadyQueue) -> bool:
        """Run the loop; return whether a shutdown ended it, as it should."""
        try:
            thread_main(worker, None)
        except BaseException as error:  # noqa: BLE001 - the thread must not die
            fail_torn_passes(worker, queue, self._passes, error)
            return self._passes.are_over  # then the shutdown may have been lost
        return True
