"""An engine in a closed world: small graphs, all of whose passes are watched.

A scenario builds graphs and lets threads run backward passes over them; when all is
over, `World.finish` compares what happened with what must hold after any schedule:

* every call returns or raises, and its thread is as it was before;
* every node of a pass runs once, and not before those that send it gradients;
* nothing of a pass runs when its call has returned or raised, unless it hangs;
* gradients are exactly those of a serial computation;
* the events obey the rules of `event_rules`;
* no two accesses to memory of a device happen without an order;
* locks are free, queues empty, counts at zero, and `Engine.stop` ends every thread.
"""

import contextlib
import itertools
from collections import defaultdict
from collections.abc import Callable, Iterator, Sequence
from typing import Any, Final

from gradviz.backends import base
from gradviz.backends.current_streams import on_streams
from gradviz.backends.device import CPU, Device
from gradviz.backends.stream import stream_at
from gradviz.engine.engine import Engine
from gradviz.engine.graph.grad_mode import GRAD_ENABLED
from gradviz.engine.graph.node import Edge, Node
from gradviz.engine.tasks.graph_task import GraphTask
from gradviz.engine.tasks.ready_queue import ReadyQueue
from gradviz.testing.event_list import EventList
from gradviz.testing.fiber import ScheduleError
from gradviz.testing.scheduler import Scheduler, pause
from gradviz.trace import probe
from tests.backends.noted_device import Notebook, NotedBackend
from tests.interleavings.account import Account
from tests.interleavings.event_rules import broken_rules
from tests.interleavings.workload import (
    Amount,
    Scaling,
    Total,
    serial_gradients,
    work_on,
)

#: The devices of scenarios.
DEVICES: Final = (Device("sim", 0), Device("sim", 1))


class RuleBroken(ScheduleError):  # noqa: N818 - the name of the thing
    """Something happened that must not happen under any schedule."""


class World:
    """One engine under a scheduler, and all that is known of its passes.

    Args:
        scheduler: Runs the threads.
        max_depth: Nested calls on one thread before the pool takes over.
        is_observed: Whether somebody listens to the engine's events.

    Attributes:
        engine: The engine.
        scheduler: As given.
    """

    def __init__(
        self, scheduler: Scheduler, *, max_depth: int = 60, is_observed: bool = True
    ) -> None:
        self.scheduler = scheduler
        self.engine: Engine = _WatchedEngine(scheduler, max_depth, self._open)
        self._fibers = scheduler.fibers
        self._notebook = Notebook()
        self._listener = EventList(scheduler.thread) if is_observed else None
        self._accounts: dict[GraphTask, Account] = {}
        self._totals: list[Total] = []
        self._producers: defaultdict[Node, list[Node]] = defaultdict(list)
        #: Thread -> the queue it consumes; not one that was thrown away.
        self._queues: dict[int, ReadyQueue | None] = {}
        self._violations: list[str] = []

    # --- what scenarios do ------------------------------------------------------------

    def leaf(self, device: Device = CPU, *, stream: int = 0) -> Total:
        """The end of a graph, made on a stream of its device."""
        with self._made_on(device, stream):
            total = Total(self._running, device)
        self._totals.append(total)
        return total

    def node(
        self,
        *edges: tuple[float, Node | Edge],
        device: Device = CPU,
        num_inputs: int = 1,
        stream: int = 0,
        body: Callable[[], object] | None = None,
    ) -> Scaling:
        """A node that multiplies, made on a stream of its device; see `Scaling`."""
        with self._made_on(device, stream):
            node = Scaling(
                self._running, edges, device, num_inputs=num_inputs, body=body
            )
        for receiver, _ in node.next_edges:
            if receiver is not None:
                self._producers[receiver].append(node)
        return node

    def run(self, **threads: Callable[[], object]) -> None:
        """Run threads under the scheduler until nothing moves, and listen.

        Raises:
            ScheduleError: They never end, or one dies.
        """
        with contextlib.ExitStack() as stack:
            stack.enter_context(_only_our_devices(self._notebook))
            if self._listener is not None:
                stack.enter_context(probe.installed(self._listener))
            self.scheduler.run(**threads)

    def backward(
        self,
        root: Node,
        gradient: float = 1.0,
        *,
        outputs: Sequence[Node] = (),
        accumulate_grad: bool = True,
    ) -> tuple[Any, ...]:
        """Run a pass from `root` on the calling thread, and check what it leaves.

        Raises:
            BaseException: What the pass raises.
        """
        given = Amount(gradient, root.runs_on)
        num_passes = len(self._accounts)
        before = self._thread_state()
        error: type[BaseException] | None = None
        try:
            found = self.engine.execute(
                [(root, 0)],
                [given],
                keep_graph=True,
                outputs=[(node, 0) for node in outputs],
                accumulate_grad=accumulate_grad,
            )
            for one in found:
                if one is not None:
                    work_on(one.device, reads=(one,))
            return found
        except BaseException as raised:
            # Its class only: its traceback would keep the pass alive.
            error = type(raised)
            raise
        finally:
            self.expect(given.value == gradient, "the caller's gradient was changed")
            after = self._thread_state()
            self.expect(after == before, f"the thread was {before}, now it is {after}")
            self._queues[self.scheduler.thread()] = self.engine.worker().ready_queue
            if (account := self._opened_after(num_passes)) is not None:
                account.close(root, gradient, error, self._fibers.now_ns)

    def expect(self, holds: bool, otherwise: str = "a wrong result") -> None:
        """Note that something is wrong, unless it `holds`."""
        if not holds:
            self._violations.append(otherwise)

    @contextlib.contextmanager
    def _made_on(self, device: Device, stream: int) -> Iterator[None]:
        """Make objects of the block on a stream, if the block is on a device."""
        if device is CPU:
            yield
            return
        with _only_our_devices(self._notebook), on_stream(device, stream):
            yield

    # --- what must hold ---------------------------------------------------------------

    def finish(self) -> None:
        """Stop the engine and check what is left.

        Raises:
            RuleBroken: Something happened that must not.
            ScheduleError: The engine does not stop.
        """
        self.run(stop=self.engine.stop)
        self._violations.extend(self._check())
        if self._violations:
            raise RuleBroken("\n".join(dict.fromkeys(self._violations)))

    def _check(self) -> Iterator[str]:
        if self._fibers.alive:
            yield f"threads did not end:\n{self._fibers.table()}"
        for lock in self.scheduler.locks:
            if lock.owner is not None:
                yield f"{lock.describe()} is still held"
        device_queues = tuple(self.engine.queues)
        for queue in (*self._queues.values(), *device_queues):
            if queue is not None and len(queue):
                yield f"the queue of {queue.name} still holds {len(queue)} tasks"
        for account in self._accounts.values():
            yield from account.check()
        for total in self._totals:
            expected = self._serial_total(total)
            if (total.leaf.grad or 0.0) != expected:
                yield f"{total} has {total.leaf.grad}, expected {expected}"
        yield from self._notebook.races()
        if self._listener is not None:
            devices = {queue.id: queue.device for queue in device_queues}
            yield from broken_rules(self._listener.events, devices)

    def _serial_total(self, total: Total) -> float:
        """Return the leaf's expected sum, given the passes that have reached it."""
        return sum(
            serial_gradients(account.root, account.gradient)[total]
            for account in self._accounts.values()
            if account.root is not None and total in account.ended
        )

    # --- what nodes and the engine tell -----------------------------------------------

    @contextlib.contextmanager
    def _running(self, node: Node) -> Iterator[None]:
        """A node works, and time passes."""
        task = self.engine.current_graph_task
        assert task is not None
        account = self._accounts[task]
        account.start(node, self._producers[node], self._fibers.now_ns)
        is_done = False
        try:
            pause()
            yield
            is_done = True
        finally:
            account.end(node, is_done=is_done)

    def _open(self, task: GraphTask) -> None:
        self._accounts[task] = Account(task, self.scheduler.thread())

    def _opened_after(self, num_passes: int) -> Account | None:
        """The account of the pass that this thread began first since then."""
        thread = self.scheduler.thread()
        recent = itertools.islice(self._accounts.values(), num_passes, None)
        return next((account for account in recent if account.thread == thread), None)

    def _thread_state(self) -> tuple[object, ...]:
        """Return the thread state that a call must leave unchanged."""
        state = self.engine.worker()
        return (
            state.worker_device,
            state.current_depth,
            state.total_depth,
            state.graph_task,
            state.node,
            state.is_checkpoint_valid,
            state.in_user_code,
            GRAD_ENABLED.get(),
        )


def on_stream(device: Device, stream: int) -> contextlib.AbstractContextManager[None]:
    """Make the stream of that number the current one of a device, for a block."""
    return on_streams((stream_at(device, stream),))


class _WatchedEngine(Engine):
    """Tells of each pass, also when nobody listens."""

    def __init__(
        self,
        scheduler: Scheduler,
        max_depth: int,
        begin: Callable[[GraphTask], None],
    ) -> None:
        super().__init__(sync=scheduler, max_depth=max_depth)
        self._begin = begin

    def _new_graph_task(self, *args: Any, **kwargs: Any) -> GraphTask:
        task = super()._new_graph_task(*args, **kwargs)
        self._begin(task)
        return task


@contextlib.contextmanager
def _only_our_devices(notebook: Notebook) -> Iterator[None]:
    """Hide what else the process has: it would change how many threads there are."""
    ours = NotedBackend("sim", (Amount,), len(DEVICES), notebook, pause)
    tables: list[dict[Any, Any]] = [base._by_type, base._accelerators, base._by_array]
    known = [dict(table) for table in tables]
    for table in tables:
        table.clear()
    base.register(ours)
    try:
        yield
    finally:
        for table, before in zip(tables, known, strict=True):
            table.clear()
            table.update(before)
