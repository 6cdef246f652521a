"""One thread for each device index, and how they begin and end."""

from gradviz.engine.completion import tear
from gradviz.engine.device_queues import DeviceQueues
from gradviz.engine.graph_task import NodeTask, Shutdown
from gradviz.engine.passes import Passes
from gradviz.engine.ready_queue import ReadyQueue
from gradviz.engine.sync import Empty, Local, Mailbox, Sync
from gradviz.engine.thread_state import ThreadState
from gradviz.engine.worker import thread_main
from gradviz.trace import probe as trace
from gradviz.trace.probe import Role


class DeviceThreads:
    """Starts the device threads when they are first needed, and stops them.

    A process that uses no device has no such thread, and may fork.

    Source: torch/csrc/autograd/engine.cpp, Engine::start_device_threads (L3-L7).
    """

    def __init__(
        self,
        sync: Sync,
        states: Local[ThreadState],
        queues: DeviceQueues,
        passes: Passes,
    ) -> None:
        self._sync = sync
        self._states = states
        self._queues = queues
        self._passes = passes
        self._start_lock = sync.lock()
        self._started: Mailbox[int] = sync.mailbox()
        #: Threads that have said that they run. Changed under `_start_lock`, only up.
        self._num_running = 0
        self._exited: Mailbox[int] = sync.mailbox()

    def ensure(self, num_devices: int) -> None:
        """Start threads until there is one for each of `num_devices` indices.

        Returns only when they run, so that a process which exits right after never
        waits for a thread that has not begun (L4).
        """
        if self._num_running >= num_devices:
            return
        with self._start_lock:
            while self._num_running < num_devices:
                if len(self._queues) == self._num_running:
                    self._start(self._queues.new_device_queue())
                self._started.get()
                self._num_running += 1

    def _start(self, queue: ReadyQueue[NodeTask]) -> None:
        name = f"gv_autograd_{queue.device}"
        self._sync.spawn(lambda: self._thread_init(queue), name)
        # Only now, so that a refused thread leaves no queue that nobody consumes.
        self._queues.add(queue)

    def stop(self, deadline_ns: int) -> None:
        """End the threads, and wait for them until `deadline_ns`: one for all (L7).

        Called when no pass is under way, so that none is left without its thread.
        """
        for queue in self._queues:
            queue.push(Shutdown())
        for _ in self._queues:
            left = max(0.0, (deadline_ns - self._sync.now_ns()) / 1e9)
            try:
                self._exited.get(timeout=left)
            except Empty:
                return

    def _thread_init(self, queue: ReadyQueue[NodeTask]) -> None:
        """Source: torch/csrc/autograd/engine.cpp, Engine::thread_init (L5)."""
        state = self._states.get()
        state.serve(queue, queue.device)
        if listener := trace.current:
            listener.thread_started(queue.device, Role.DEVICE)
        self._started.put(queue.device)
        while not self._work(state, queue):
            pass
        if listener := trace.current:
            listener.thread_exited(queue.device, Role.DEVICE)
        self._exited.put(queue.device)

    def _work(self, state: ThreadState, queue: ReadyQueue[NodeTask]) -> bool:
        """Run the loop; returns whether it ended by a shutdown, as it should."""
        try:
            thread_main(self._sync, state, self._queues, None)
        except BaseException as error:  # noqa: BLE001 - the thread must not die
            tear(state, self._queues, queue, self._passes, error)
            return False
        return True
