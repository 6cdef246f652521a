"""The engine: from roots and their gradients to a finished backward pass."""

import contextlib
import os
import warnings
import weakref
from collections.abc import Callable, Collection, Sequence
from typing import Final

from gradviz.backends.base import backend_of, num_device_threads
from gradviz.backends.device import Device
from gradviz.engine.basic_nodes import GraphRoot
from gradviz.engine.device_queues import DeviceQueues
from gradviz.engine.device_threads import DeviceThreads
from gradviz.engine.discovery import (
    compute_dependencies,
    compute_exec_info,
    min_topological_nr,
)
from gradviz.engine.execution import execute_with_graph_task
from gradviz.engine.grad_mode import is_multithreading_enabled
from gradviz.engine.graph_task import (
    CPU_DEVICE,
    NO_DEVICE,
    GraphTask,
)
from gradviz.engine.inspection import describe_state
from gradviz.engine.node import Edge, Node, checked_edges
from gradviz.engine.pass_streams import PassStreams
from gradviz.engine.passes import Passes
from gradviz.engine.policies import OrderPolicy, PyTorchOrder, policy_named
from gradviz.engine.prediction import Position, predicted_order
from gradviz.engine.protocols import Gradient
from gradviz.engine.sync import THREADS, Local, Sync, is_end_of_program
from gradviz.engine.thread_pool import ThreadPool
from gradviz.engine.tracebacks import shorten
from gradviz.engine.validation import validate_outputs
from gradviz.engine.watchdog import Watchdog
from gradviz.engine.worker import Worker
from gradviz.errors import EngineError
from gradviz.trace import probe as trace
from gradviz.trace.probe import Probe

#: Environment variable with the seconds that `Engine.stop` takes at most.
SHUTDOWN_WAIT_LIMIT: Final = "GRADVIZ_SHUTDOWN_WAIT_LIMIT"

#: Reentrant calls nested on one thread, unless an engine is told otherwise (L1).
MAX_DEPTH: Final = 60

#: Called on a watchdog's thread whenever one has reported a standstill.
after_standstill: Final[list[Callable[[], None]]] = []

_FORKED = (
    "Unable to handle autograd's threading in combination with fork-based "
    "multiprocessing: the parent process had already started engine threads, which "
    "a fork does not copy. Start the child with the 'spawn' method instead."
)
_CREATE_GRAPH = (
    "Using backward() with create_graph=True will create a reference cycle between "
    "the parameter and its gradient which can cause a memory leak. We recommend using "
    "autograd.grad when creating the graph to avoid this. If you have to use this "
    "function, make sure to reset the .grad fields of your parameters to None after "
    "use to break the cycle and avoid the leak."
)


class Engine:
    """Runs backward passes; any thread may call it at any time.

    Engines are independent of each other. Most programs use the one that
    `default_engine` returns.

    Args:
        schedule: The order of execution: ``"pytorch"``, ``"fifo"``, ``"random:SEED"``
            or a policy of `gradviz.engine.policies`.
        max_depth: Reentrant calls nested on one thread before the pool takes over.
        caller_fast_path: Run a pass whose nodes are all on one device, or on it and
            the CPU, on the calling thread: no hand-over from thread to thread (C25).
        sync: Where threads and locks come from; tests pass their own.

    Attributes:
        sync: As given.
        queues: Those of its devices.
        passes: Those that are under way.

    Source: torch/csrc/autograd/engine.h, struct Engine.
    """

    def __init__(
        self,
        *,
        schedule: str | OrderPolicy = "pytorch",
        max_depth: int = MAX_DEPTH,
        caller_fast_path: bool = False,
        sync: Sync = THREADS,
    ) -> None:
        self._max_depth = max_depth
        self._caller_fast_path = caller_fast_path
        self.sync = sync
        self._policy = policy_named(schedule) if isinstance(schedule, str) else schedule
        self.queues = DeviceQueues(sync, self._policy.schedule)
        #: Each thread that has called, or works for, this engine.
        self._threads: weakref.WeakSet[Worker] = weakref.WeakSet()
        self._states: Local[Worker] = sync.local(
            _registering(self._threads, sync, self.queues)
        )
        self.passes = Passes(sync)
        self._device_threads = DeviceThreads(
            sync, self._states, self.queues, self.passes
        )
        self._pool = ThreadPool(sync, self._states, self.queues)
        self._watchdog: Watchdog | None = None
        self._warned = sync.flag()
        #: The process whose threads these are; None before the first one starts.
        self._process_id: int | None = None
        # The threads refer to the parts above and never to the engine itself, so an
        # engine that nobody uses any more is collected, and its threads end.
        self._finalizer = weakref.finalize(
            self, _stop, sync, self.passes, self._device_threads, self._pool, 0.0
        )

    def execute(
        self,
        roots: Sequence[Edge | tuple[Node, int]],
        inputs: Sequence[Gradient],
        *,
        keep_graph: bool = False,
        create_graph: bool = False,
        accumulate_grad: bool = True,
        outputs: Sequence[Edge | tuple[Node, int]] = (),
    ) -> tuple[Gradient, ...]:
        """Run a backward pass and return when it has ended.

        The calling thread does the CPU's share of the work itself; devices have
        threads of their own. May be called from inside a node (reentrant backward).

        Args:
            roots: Where the pass begins.
            inputs: The gradient of each root.
            keep_graph: Keep saved tensors, so that the graph can be used again.
            create_graph: Record a graph of this pass, to differentiate it again.
            accumulate_grad: True for ``backward``: outputs, if any, restrict what
                runs. False for ``grad``: the outputs' gradients are returned.
            outputs: The edges whose gradients are wanted; none means all leaves.

        Returns:
            For ``grad`` one gradient for each output, None where none arrived; an
            empty tuple for ``backward``.

        Raises:
            ValueError: ``grad`` without outputs.
            RuntimeError: A gradient does not fit its root; the graph has a cycle; the
                process was forked while engine threads were running.
            EngineError: The engine was stopped, or the call comes from a signal
                handler or finaliser that interrupted the engine.
            SystemExit: The program ends, and has stopped the engine; see
                Note [Daemon threads at exit].
            BaseException: Whatever a node, hook or callback raised: the same object.

        Source: torch/csrc/autograd/engine.cpp, Engine::execute (X1-X11).
        """
        worker = self._check_callable()
        roots = checked_edges(roots, "roots")
        outputs = checked_edges(outputs, "outputs")
        gradients = validate_outputs(roots, inputs)
        if accumulate_grad and create_graph:
            self._warn_of_cycle()
        if not accumulate_grad and not outputs:
            raise ValueError("grad requires non-empty inputs.")
        root, buffer = _root_and_inputs(roots, gradients)
        del gradients
        graph_task = self._new_graph_task(
            worker, roots, outputs, keep_graph=keep_graph, create_graph=create_graph
        )
        try:
            self.passes.begin(graph_task)
            self._prepare(graph_task, root, accumulate_grad=accumulate_grad)
            if graph_task.streams is not None:
                buffer = graph_task.streams.begin(root, buffer)
            execute_with_graph_task(
                worker,
                self._max_depth,
                self._run_in_pool,
                graph_task,
                root,
                buffer,
            )
            if graph_task.error is not None:
                raise _taken_error(graph_task)
        except (EngineError, RuntimeError) as error:
            if graph_task.parent is None and is_end_of_program(error):
                raise SystemExit from error
            raise
        finally:
            self.passes.forget(graph_task.id, None)
            self.passes.tell_idle()
        return tuple(graph_task.captured_gradients)

    def queue_callback(self, callback: Callable[[], object]) -> None:
        """Have `callback` run when the current pass has run its last node (P3).

        Raises:
            RuntimeError: The calling thread is in no backward pass.
        """
        graph_task = self.worker().graph_task
        if graph_task is None:
            raise RuntimeError(
                "Final callbacks can only be installed during backward pass."
            )
        graph_task.final_callbacks.append(callback)

    def stop(self) -> None:
        """End the engine's threads; idempotent, bounded in time (L7).

        Passes under way are waited for, and then the threads, all within the seconds
        that the environment variable GRADVIZ_SHUTDOWN_WAIT_LIMIT names (10 if it is
        not set). What does not end in time is left alone: the threads are daemons. A
        stopped engine refuses to execute.
        """
        self.watch(0, str)
        if self._finalizer.detach() is not None:
            limit = float(os.environ.get(SHUTDOWN_WAIT_LIMIT, "10"))
            _stop(self.sync, self.passes, self._device_threads, self._pool, limit)

    # --- introspection, for the calling thread --------------------------------

    def worker(self) -> Worker:
        """What the engine remembers of the calling thread."""
        return self._states.get()

    @property
    def current_graph_task(self) -> GraphTask | None:
        """The pass whose node the calling thread runs."""
        return self.worker().graph_task

    @property
    def current_node(self) -> Node | None:
        """The node that the calling thread runs (K7)."""
        return self.worker().node

    def is_checkpoint_valid(self) -> bool:
        """Whether all passes on this thread's stack run unrestricted (K1)."""
        return self.worker().is_checkpoint_valid

    def current_execution_order(self) -> tuple[Position, ...]:
        """The order of the calling thread's pass; see `predicted_order`.

        Can be asked for at any time during the pass, by its nodes and hooks.

        Raises:
            RuntimeError: The calling thread is in no backward pass.
        """
        graph_task = self.current_graph_task
        if graph_task is None:
            raise RuntimeError(
                "current_execution_order should only be called during the backward pass"
            )
        return predicted_order(
            graph_task.roots,
            outputs=graph_task.outputs,
            accumulate_grad=not graph_task.captured_gradients,
            schedule=self._policy.schedule,
        )

    def dump_state(self) -> str:
        """Passes, queues, unmet dependencies and stacks, in words; any thread.

        Takes no lock, so that it works on an engine that hangs.
        """
        return describe_state(
            self.passes.under_way(), self.queues, _all_of(self._threads)
        )

    def watch(self, seconds: float, write: Callable[[str], object]) -> None:
        """Have standstills reported from now on; replaces an earlier watchdog.

        Args:
            seconds: How long nothing must happen in any pass; 0 ends the watch.
            write: Given the report, on a thread of its own.
        """
        if self._watchdog is not None:
            self._watchdog.stop()
            self._watchdog = None
        if seconds > 0:
            self._watchdog = Watchdog(
                self.sync, self.passes, seconds, _reporter(weakref.ref(self), write)
            )

    @property
    def num_pool_threads(self) -> int:
        """Threads made for deep reentrancy so far."""
        return self._pool.num_threads

    # --- one call ---------------------------------------------------------------

    def _check_callable(self) -> Worker:
        process_id = self._process_id
        if process_id is not None and process_id != self.sync.process_id():
            raise RuntimeError(_FORKED)
        worker = self.worker()
        if not worker.in_user_code:
            raise EngineError(
                "backward was called from a signal handler or a finaliser that "
                "interrupted the engine on this thread; it cannot run there. Set a "
                "flag instead, and call backward from the program itself."
            )
        return worker

    def _new_graph_task(
        self,
        worker: Worker,
        roots: Sequence[Edge],
        outputs: Sequence[Edge],
        *,
        keep_graph: bool,
        create_graph: bool,
    ) -> GraphTask:
        if worker.ready_queue is None:
            worker.ready_queue = self.queues.new_caller_queue()
        is_reentrant = worker.worker_device != NO_DEVICE
        return GraphTask(
            self.sync,
            keep_graph=keep_graph,
            create_graph=create_graph,
            reentrant_depth=worker.total_depth + 1 if is_reentrant else 0,
            cpu_ready_queue=worker.ready_queue,
            roots=roots,
            outputs=outputs,
            owner=worker.worker_device if is_reentrant else CPU_DEVICE,
            home=worker,
            parent=worker.graph_task,
            uses_device_threads=is_multithreading_enabled(),
            probe=trace.current,
        )

    def _prepare(
        self, graph_task: GraphTask, root: Node, *, accumulate_grad: bool
    ) -> None:
        """Find out what the pass consists of, and have its threads ready."""
        outputs = graph_task.outputs
        smallest = min_topological_nr(outputs)
        dependencies, devices, streams = compute_dependencies(root, smallest)
        graph_task.dependencies = dependencies
        if outputs:
            graph_task.exec_info = compute_exec_info(
                root,
                outputs,
                accumulate_grad=accumulate_grad,
                min_topological_nr=smallest,
            )
            if not accumulate_grad:
                graph_task.captured_gradients = [None] * len(outputs)
        if self._caller_fast_path and len(devices) == 1:
            graph_task.uses_device_threads = False
        if graph_task.uses_device_threads:
            self.initialize_device_threads_pool(devices)
            graph_task.devices = frozenset(device.number for device in devices)
            graph_task.is_private = not devices
        if streams:
            graph_task.is_private = False
            graph_task.streams = PassStreams(graph_task.id, graph_task.probe, streams)
        graph_task.goes_short = graph_task.is_private and not outputs
        if not isinstance(self._policy, PyTorchOrder):
            self._policy.begin(
                graph_task.id,
                [
                    (node, self.queues.queue_of(graph_task, node, graph_task.home).id)
                    for node in (root, *dependencies)
                    if graph_task.should_execute(node) or node is root
                ],
            )
        if graph_task.probe:
            self.report_begin(graph_task.probe, graph_task, root)

    # --- threads ----------------------------------------------------------------

    def initialize_device_threads_pool(self, devices: Collection[Device]) -> None:
        """Have a thread for each of these devices (L3, L4).

        A process whose graphs stay on the CPU starts no thread, and may fork.
        """
        if not devices:
            return
        for device in devices:
            backend_of(device)  # raises if there is no such device
        self._remember_process()
        needed = max(device.number + 1 for device in devices)
        self._device_threads.ensure(max(needed, num_device_threads()))

    def _run_in_pool(self, graph_task: GraphTask) -> None:
        """Have a thread of the pool run a pass that is nested too deeply."""
        self._remember_process()
        self._pool.run(graph_task)

    def _remember_process(self) -> None:
        """From here on a fork would leave threads behind (L9)."""
        if self._process_id is None:
            self._process_id = self.sync.process_id()

    def _warn_of_cycle(self) -> None:
        if not self._warned.value:
            self._warned.value = True
            warnings.warn(_CREATE_GRAPH, UserWarning, stacklevel=4)

    def report_begin(
        self,
        probe: Probe,
        graph_task: GraphTask,
        root: Node,
    ) -> None:
        """Tell a listener what a pass consists of."""
        probe.task_begun(
            graph_task.id,
            parent=-1 if graph_task.parent is None else graph_task.parent.id,
            reentrant_depth=graph_task.reentrant_depth,
            owner=graph_task.owner,
            num_roots=len(graph_task.roots),
            num_outputs=len(graph_task.outputs),
            keep_graph=graph_task.keep_graph,
            create_graph=graph_task.create_graph,
        )
        for queue in (graph_task.cpu_ready_queue, *self.queues):
            probe.queue_defined(queue.id, queue.name, queue.device)
        probe.nodes_defined((root, *graph_task.dependencies))
        probe.dependencies_counted(
            graph_task.id,
            len(graph_task.dependencies) + 1,
            sum(graph_task.dependencies.values()),
        )


def _root_and_inputs(
    roots: Sequence[Edge], gradients: Sequence[Gradient]
) -> tuple[Node, list[Gradient]]:
    """The node where the pass begins, and what it is given (X6, X10).

    One root begins itself. Several are begun by a `GraphRoot`, so that they enter
    their queues by their priorities, and not in the order in which they were named.
    """
    if len(roots) == 1:
        node, input_nr = roots[0]
        if node is not None:
            inputs: list[Gradient] = [None] * node.num_inputs
            inputs[input_nr] = gradients[0]
            return node, inputs
    return GraphRoot(roots, gradients), []


def _taken_error(graph_task: GraphTask) -> BaseException:
    """The pass's error, the very object, to be raised without a cycle.

    The traceback will refer to the frame that raises, and so to the pass, which must
    not refer to the error.
    """
    error, graph_task.error = graph_task.error, None
    assert error is not None
    shorten(error, keeps_first=False)
    return error


def _registering(
    threads: "weakref.WeakSet[Worker]", sync: Sync, queues: DeviceQueues
) -> Callable[[], Worker]:
    """A factory of workers that remembers what it has made."""

    def make() -> Worker:
        worker = Worker(sync, queues)
        threads.add(worker)
        return worker

    return make


def _all_of(threads: "weakref.WeakSet[Worker]") -> tuple[Worker, ...]:
    """Those that are there, although others come meanwhile."""
    while True:
        with contextlib.suppress(RuntimeError):  # the set has changed during iteration
            return tuple(threads)


def _reporter(
    engine: "weakref.ref[Engine]", write: Callable[[str], object]
) -> Callable[[float], None]:
    """What a watchdog calls; it keeps no engine alive."""

    def report(seconds: float) -> None:
        target = engine()
        if target is not None:
            write(
                f"gradviz: no backward pass made progress for {seconds:g} s\n"
                f"{target.dump_state()}"
            )
        for call in tuple(after_standstill):
            call()

    return report


def _stop(
    sync: Sync, passes: Passes, threads: DeviceThreads, pool: ThreadPool, limit: float
) -> None:
    """End the threads within `limit` seconds, if no pass needs them by then.

    At the end of the process and for an engine that was collected `limit` is 0: who
    is still in a backward then is a daemon thread, and nobody waits for it.
    """
    deadline_ns = sync.now_ns() + int(limit * 1e9)
    if passes.stop(deadline_ns):
        threads.stop(deadline_ns)
        pool.stop()


_default: Engine | None = None


def default_engine() -> Engine:
    """The engine that all who do not bring their own share (L2)."""
    global _default
    if _default is None:
        _default = Engine()
    return _default


def set_default_engine(engine: Engine) -> None:
    """Make `engine` the shared one; passes that run stay with theirs (L2)."""
    global _default
    _default = engine
