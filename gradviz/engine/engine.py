"""The engine: from roots and their gradients to a finished backward pass."""

import contextlib
import os
import warnings
import weakref
from collections.abc import Callable, Collection, Sequence
from typing import Final

from gradviz.backends.base import backend_of, num_device_threads
from gradviz.backends.device import Device
from gradviz.engine.graph.basic_nodes import GraphRoot
from gradviz.engine.graph.grad_mode import MULTITHREADING_ENABLED
from gradviz.engine.graph.node import Edge, Node, checked_edges
from gradviz.engine.graph.odd_fields import (
    FIELD_ERRORS,
    error_at,
    error_in_graph,
)
from gradviz.engine.graph.protocols import Gradient
from gradviz.engine.graph.sync import THREADS, Local, Sync, is_end_of_program
from gradviz.engine.graph.validation import validate_outputs
from gradviz.engine.prediction import Position, predicted_order
from gradviz.engine.tasks.device_queues import DeviceQueues
from gradviz.engine.tasks.discovery import (
    compute_dependencies,
    compute_exec_info,
    min_topological_nr,
)
from gradviz.engine.tasks.graph_task import (
    CPU_DEVICE,
    NO_DEVICE,
    GraphTask,
)
from gradviz.engine.tasks.pass_streams import PassStreams
from gradviz.engine.tasks.passes_under_way import Passes
from gradviz.engine.tasks.policies import OrderPolicy, PyTorchOrder, policy_named
from gradviz.engine.threads.device_threads import DeviceThreads
from gradviz.engine.threads.execution import execute_with_graph_task
from gradviz.engine.threads.inspection import Watchdog, describe_state
from gradviz.engine.threads.thread_pool import ThreadPool
from gradviz.engine.threads.tracebacks import shorten
from gradviz.engine.threads.worker import Worker
from gradviz.errors import EngineError
from gradviz.program_hooks import after_default_engine, after_standstill
from gradviz.trace import probe as trace
from gradviz.trace.probe import Probe

#: Environment variable with the maximum number of seconds that `Engine.stop` takes.
SHUTDOWN_WAIT_LIMIT: Final = "GRADVIZ_SHUTDOWN_WAIT_LIMIT"

#: Default limit of reentrant calls nested on one thread (L1).
MAX_DEPTH: Final = 60

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
            or a policy of `gradviz.engine.tasks.policies`.
        max_depth: Reentrant calls nested on one thread before the pool takes over.
        caller_fast_path: Run a pass whose nodes are all on one device, or on it and
            the CPU, on the calling thread, without a hand-over between threads (C25).
        sync: Source of threads and locks; tests pass their own.

    Attributes:
        sync: As given.
        queues: The queues of its devices.
        passes: The passes under way.

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
        #: Every thread that has called, or works for, this engine.
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
        #: The process that the threads belong to; None before the first one starts.
        self._process_id: int | None = None
        # The threads refer to the parts above and never to the engine itself, so an
        # unused engine is collected, and its threads end.
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

        The calling thread runs the CPU's nodes itself; devices have threads of their
        own. May be called from inside a node (reentrant backward).

        Args:
            roots: Edges to the first nodes of the pass.
            inputs: The gradient of each root.
            keep_graph: Keep saved tensors, so that the graph can be used again.
            create_graph: Record a graph of this pass, to differentiate it again.
            accumulate_grad: True for ``backward``: outputs, if any, restrict what
                runs. False for ``grad``: the outputs' gradients are returned.
            outputs: The edges whose gradients are wanted; none means all leaves.

        Returns:
            For ``grad`` one gradient per output, None where none arrived; an
            empty tuple for ``backward``.

        Raises:
            ValueError: ``grad`` without outputs.
            RuntimeError: A gradient does not fit its root; the graph has a cycle; the
                process was forked while engine threads were running.
            EngineError: The engine was stopped, or the call comes from a signal
                handler or finalizer that interrupted the engine.
            SystemExit: The program is ending and has stopped the engine; see
                Note [Daemon threads at exit].
            BaseException: Any exception of a node, hook or callback: the same object.

        Source: torch/csrc/autograd/engine.cpp, Engine::execute (X1-X11).
        """
        worker = self._check_callable()
        roots, outputs, gradients = _checked(roots, inputs, outputs)
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
            self._run(worker, graph_task, root, buffer, accumulate_grad=accumulate_grad)
            if graph_task.outcome.error is not None:
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
        """Run `callback` after the last node of the current pass (P3).

        Raises:
            RuntimeError: The calling thread is in no backward pass.
        """
        graph_task = self.worker().graph_task
        if graph_task is None:
            raise RuntimeError(
                "Final callbacks can only be installed during backward pass."
            )
        graph_task.outcome.final_callbacks.append(callback)

    def stop(self) -> None:
        """End the engine's threads; idempotent, bounded in time (L7).

        Waits for the passes under way, and then for the threads, for at most the
        seconds given by the environment variable GRADVIZ_SHUTDOWN_WAIT_LIMIT (10 if
        unset). Threads that do not end in time are left alone: they are daemons. A
        stopped engine refuses to execute.
        """
        self.watch(0, str)
        if self._finalizer.detach() is not None:
            limit = float(os.environ.get(SHUTDOWN_WAIT_LIMIT, "10"))
            _stop(self.sync, self.passes, self._device_threads, self._pool, limit)

    # --- introspection, for the calling thread --------------------------------

    def worker(self) -> Worker:
        """Return the engine's state for the calling thread."""
        return self._states.get()

    @property
    def current_graph_task(self) -> GraphTask | None:
        """Return the pass whose node the calling thread is running."""
        return self.worker().graph_task

    @property
    def current_node(self) -> Node | None:
        """Return the node that the calling thread is running (K7)."""
        return self.worker().node

    def is_checkpoint_valid(self) -> bool:
        """Return whether all passes on this thread's stack are unrestricted (K1)."""
        return self.worker().is_checkpoint_valid

    def current_execution_order(self) -> tuple[Position, ...]:
        """Return the order of the calling thread's pass; see `predicted_order`.

        Nodes and hooks may call it at any time during the pass.

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
        """Describe passes, queues, unmet dependencies and stacks; any thread.

        Takes no lock, so it works on an engine that hangs.
        """
        return describe_state(
            self.passes.under_way(), self.queues, _all_of(self._threads)
        )

    def watch(self, seconds: float, write: Callable[[str], object]) -> None:
        """Report standstills from now on; replaces an earlier watchdog.

        Args:
            seconds: Seconds without any progress that count as one; 0 ends the watch.
            write: Called with the report, on a thread of its own.
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
        """Number of threads made for deep reentrancy so far."""
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
            uses_device_threads=MULTITHREADING_ENABLED.get(),
            probe=trace.current,
        )

    def _run(
        self,
        worker: Worker,
        graph_task: GraphTask,
        root: Node,
        buffer: list[Gradient],
        *,
        accumulate_grad: bool,
    ) -> None:
        """Prepare a pass and run it; a node's error is left in `graph_task`.

        Raises:
            TypeError: A field of a node was set to something odd since it was made.
            BaseException: An error or interrupt hit the engine's own code.
        """
        try:
            self._prepare(graph_task, root, accumulate_grad=accumulate_grad)
            if graph_task.streams is not None:
                buffer = graph_task.streams.begin(root, buffer)
            execute_with_graph_task(
                worker, self._max_depth, self._run_in_pool, graph_task, root, buffer
            )
        except FIELD_ERRORS as error:
            raise error_in_graph(error, root)  # noqa: B904 - which has its cause

    def _prepare(
        self, graph_task: GraphTask, root: Node, *, accumulate_grad: bool
    ) -> None:
        """Discover the nodes of a pass and start its threads."""
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
        """Start a thread for each of these devices (L3, L4).

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
        """Run a pass that is nested too deeply on a thread of the pool."""
        self._remember_process()
        self._pool.run(graph_task)

    def _remember_process(self) -> None:
        """Note that a fork would leave threads behind from now on (L9)."""
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
        """Report the nodes and edges of a pass to a listener."""
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


def _checked(
    roots: Sequence[Edge | tuple[Node, int]],
    inputs: Sequence[Gradient],
    outputs: Sequence[Edge | tuple[Node, int]],
) -> tuple[tuple[Edge, ...], tuple[Edge, ...], Sequence[Gradient]]:
    """Return roots, outputs and the roots' gradients, all of them checked.

    Raises:
        TypeError: An edge leads to no node, or a field of its node was set to something
            odd since it was made.
        RuntimeError: A gradient does not fit its root.
    """
    try:
        starts, ends = checked_edges(roots, "roots"), checked_edges(outputs, "outputs")
        return starts, ends, validate_outputs(starts, inputs)
    except FIELD_ERRORS as error:
        every = [one for one in (*roots, *outputs) if isinstance(one, Edge | tuple)]
        nodes = [part for one in every for part in one if isinstance(part, Node)]
        raise error_at(error, *nodes)  # noqa: B904 - which has its cause


def _root_and_inputs(
    roots: Sequence[Edge], gradients: Sequence[Gradient]
) -> tuple[Node, list[Gradient]]:
    """Return the first node of the pass and its gradients (X6, X10).

    A single root comes first itself. Several follow a `GraphRoot`, so that they enter
    their queues by priority and not in the order the caller named them.
    """
    if len(roots) == 1:
        node, input_nr = roots[0]
        if node is not None:
            inputs: list[Gradient] = [None] * node.num_inputs
            inputs[input_nr] = gradients[0]
            return node, inputs
    return GraphRoot(roots, gradients), []


def _taken_error(graph_task: GraphTask) -> BaseException:
    """Return the pass's error, the same object, to be raised without a cycle.

    The traceback will refer to the frame that raises, and so to the pass; the pass must
    not refer to the error.
    """
    outcome = graph_task.outcome
    error, outcome.error = outcome.error, None
    assert error is not None
    shorten(error, keeps_first=False)
    return error


def _registering(
    threads: "weakref.WeakSet[Worker]", sync: Sync, queues: DeviceQueues
) -> Callable[[], Worker]:
    """Return a factory of workers that remembers the workers it has made."""

    def make() -> Worker:
        worker = Worker(sync, queues)
        threads.add(worker)
        return worker

    return make


def _all_of(threads: "weakref.WeakSet[Worker]") -> tuple[Worker, ...]:
    """Return the workers, even while other threads add some."""
    while True:
        with contextlib.suppress(RuntimeError):  # the set has changed during iteration
            return tuple(threads)


def _reporter(
    engine: "weakref.ref[Engine]", write: Callable[[str], object]
) -> Callable[[float], None]:
    """Return the function that a watchdog calls; it keeps no engine alive."""

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

    At the end of the process, and for a collected engine, `limit` is 0: a thread still
    in a backward is then a daemon thread that nobody waits for.
    """
    deadline_ns = sync.now_ns() + int(limit * 1e9)
    if passes.stop(deadline_ns):
        threads.stop(deadline_ns)
        pool.stop()


_default: Engine | None = None


def default_engine() -> Engine:
    """Return the shared engine of all callers without one of their own (L2)."""
    global _default
    if _default is None:
        engine = Engine()
        for call in tuple(after_default_engine):
            call(engine)
        _default = engine
    return _default


def set_default_engine(engine: Engine) -> None:
    """Share `engine` from now on; running passes stay with theirs (L2)."""
    global _default
    _default = engine
