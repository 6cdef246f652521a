"""A pass simulated in another order, on more threads, with faster nodes.

Note [How a pass is simulated]
~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~
List scheduling: a node is pushed to its queue when it has its last gradient, and a
thread of that queue takes the one that the policy wants next when it has nothing to do.
A node runs for as long as it ran itself, gives its gradients as far into its run as it
did, and waits for streams for as long as it waited. Passes that it calls for are run by
its thread meanwhile, as the engine does it. Gradients for another worker are on their
way for as long as they were. The engine takes as long before a node as it did before
that node; a thread that sleeps wakes up as late as it did for that node, or as is usual
in that pass. So with nothing changed the result is what was measured, as far as
PyTorch's order is the recorded one.

What that leaves out: that threads of Python hinder each other, that caches are warm or
cold, and that kernels of one stream delay each other in another way than they did.
"""

import heapq
import itertools
import statistics
from collections.abc import Callable, Mapping
from typing import Any, Final

import msgspec

from gradviz.analysis.causes.recorded_work import NodeKey, RecordedWork, recorded_work
from gradviz.analysis.tables.executions import NodeNumbers, definition
from gradviz.errors import UserError
from gradviz.ready_order import PyTorchSchedule, ReadyTask, Schedule
from gradviz.trace.format.model import Trace

SCHEMA: Final = "gradviz.simulation"
VERSION: Final = 1


class Faster(msgspec.Struct, frozen=True, gc=False):
    """A node that runs, with its kernels, so many times faster than it did.

    `index` is its place in the execution order of the pass.
    """

    node: int
    name: str
    times: float
    index: int | None = None


class Simulation(msgspec.Struct, frozen=True, kw_only=True):
    """Predicted duration of one pass.

    Attributes:
        task: The pass.
        is_whole: True if nothing of the trace is lost.
        policy: Order in which nodes leave their queues.
        device_threads: Number of threads of each device.
        infinite_streams: True if no kernel waits for that of another node.
        faster: Nodes that run faster.
        measured_ns: Measured duration.
        unchanged_ns: Duration by the same model with nothing changed: in PyTorch's
            order, with one thread for each device.
        error: Error of that, as a part of the measured duration.
        predicted_ns: Predicted duration.
    """

    task: int
    is_whole: bool
    policy: str
    device_threads: int
    infinite_streams: bool
    faster: tuple[Faster, ...]
    measured_ns: int
    unchanged_ns: int
    error: float
    predicted_ns: int


def simulate(
    trace: Trace,
    task: int,
    *,
    policy: str = "pytorch",
    schedule: Callable[[], Schedule] = PyTorchSchedule,
    device_threads: int = 1,
    infinite_streams: bool = False,
    faster: Mapping[int, float] | None = None,
) -> Simulation:
    """Predict the duration of a pass with changes.

    Args:
        trace: The trace.
        task: The pass.
        policy: Name of `schedule`.
        schedule: Makes the policy that decides which ready node of a queue runs next.
        device_threads: Number of threads that take nodes from each device's queue.
        infinite_streams: True if kernels wait for no kernel of another node: a wait for
            a stream is then at most one for the node's own kernels.
        faster: Nodes of the pass, and the factor by which each is faster.

    Raises:
        UserError: The pass did not complete, or too much of it is lost.
    """
    work = recorded_work(trace, task)
    unchanged_ns = simulated_ns(work)
    is_changed = device_threads != 1 or infinite_streams or bool(faster)
    predicted_ns = unchanged_ns
    if is_changed or policy != "pytorch":
        predicted_ns = simulated_ns(
            work,
            schedule,
            device_threads=device_threads,
            infinite_streams=infinite_streams,
            faster={(task, node): times for node, times in (faster or {}).items()},
        )
    numbers = NodeNumbers(trace, [task]).of_pass(task) if faster else {}
    return Simulation(
        task=work.task,
        is_whole=trace.losses.is_complete,
        policy=policy,
        device_threads=device_threads,
        infinite_streams=infinite_streams,
        faster=tuple(
            Faster(node, definition(trace, node).name, times, numbers.get(node))
            for node, times in (faster or {}).items()
        ),
        measured_ns=work.duration_ns,
        unchanged_ns=unchanged_ns,
        error=(unchanged_ns - work.duration_ns) / max(work.duration_ns, 1),
        predicted_ns=predicted_ns,
    )


def simulated_ns(
    work: RecordedWork,
    schedule: Callable[[], Schedule] = PyTorchSchedule,
    *,
    device_threads: int = 1,
    infinite_streams: bool = False,
    faster: Mapping[NodeKey, float] | None = None,
) -> int:
    """Return a duration by Note [How a pass is simulated]; see `simulate`.

    Raises:
        UserError: Some node never gets what it waits for.
    """
    run = _Simulated(
        work,
        schedule,
        device_threads=device_threads,
        infinite_streams=infinite_streams,
        faster=faster or {},
    )
    return run.duration_ns()


def document_of(simulation: Simulation) -> dict[str, Any]:
    """Return the output of ``gradviz simulate --json``."""
    document = msgspec.to_builtins(simulation)
    return {"schema": SCHEMA, "version": VERSION, **document}


class _SimulatedThread:
    """One that takes nodes from a queue.

    Attributes:
        queue: Queue that it takes nodes from.
        calls: Nodes inside of which it has called for a pass: which node, how many of
            its steps were done, and for which pass; the innermost last.
        is_idle: True if it sleeps, or is about to wake up.
        turn: Counts its decisions: what was planned before the last one is void.
    """

    __slots__ = ("calls", "is_idle", "queue", "turn")

    def __init__(self, queue: int) -> None:
        self.queue = queue
        self.calls: list[tuple[NodeKey, int, int]] = []
        self.is_idle = True
        self.turn = 0


class _Simulated:
    """One pass, simulated; see Note [How a pass is simulated]."""

    def __init__(
        self,
        work: RecordedWork,
        schedule: Callable[[], Schedule],
        *,
        device_threads: int,
        infinite_streams: bool,
        faster: Mapping[NodeKey, float],
    ) -> None:
        self._work = work
        self._faster = faster
        self._infinite_streams = infinite_streams
        queues = sorted({job.queue for job in work.jobs.values()})
        self._queues = {queue: schedule() for queue in queues}
        self._threads = {
            queue: [
                _SimulatedThread(queue)
                for _ in range(device_threads if queue in work.device_queues else 1)
            ]
            for queue in queues
        }
        waking = [one.waking_ns for one in work.jobs.values() if one.waking_ns > 0]
        self._usual_waking_ns = round(statistics.median(waking)) if waking else 0
        self._awaited = dict(work.awaited)
        self._left = {task: one.num_nodes for task, one in work.passes.items()}
        self._is_done = dict.fromkeys(work.passes, False)
        self._parts = {work.task, *work.others}
        self._left_parts = len(self._parts)
        self._end_ns = -1
        self._serial = itertools.count()
        #: Things to happen, by time; of one time decisions come last, so that they know
        #: all.
        self._plans: list[tuple[int, bool, int, Callable[[int], None]]] = []

    def duration_ns(self) -> int:
        """Return the duration."""
        task = self._work.task
        if not self._left[task]:
            return self._work.duration_ns
        self._begin(task, 0)
        for key in self._work.passes[task].roots:
            queue = self._work.jobs[key].queue
            if queue not in self._work.device_queues:
                # The caller has not slept yet.
                caller = self._threads[queue][0]
                caller.is_idle = False
                self._turn(caller, self._work.passes[task].setup_ns)
        while self._plans and self._end_ns < 0:
            at_ns, _, _, plan = heapq.heappop(self._plans)
            plan(at_ns)
        if self._end_ns < 0:
            raise UserError(
                f"pass {task} cannot be simulated: the trace lacks gradients that its "
                f"nodes waited for"
            )
        return self._end_ns

    def _plan(
        self, at_ns: int, plan: Callable[[int], None], *, decides: bool = False
    ) -> None:
        heapq.heappush(self._plans, (at_ns, decides, next(self._serial), plan))

    def _begin(self, task: int, at_ns: int) -> None:
        """A pass begins; its roots are pushed when it is set up."""
        one = self._work.passes[task]

        def push(at_ns: int) -> None:
            for root in one.roots:
                self._push(root, at_ns)

        self._plan(at_ns + one.setup_ns, push)
        if not one.num_nodes:
            self._end(task, at_ns + one.setup_ns)

    def _push(self, key: NodeKey, at_ns: int, waking_ns: int | None = None) -> None:
        """A node is ready: a thread that sleeps wakes up for it.

        It takes as long for that as it did, unless `waking_ns` says how long.
        """
        job = self._work.jobs[key]
        self._queues[job.queue].push(ReadyTask(key, job.priority))
        for thread in self._threads[job.queue]:
            if thread.is_idle:
                if waking_ns is None:
                    waking_ns = job.waking_ns
                if waking_ns < 0:
                    waking_ns = self._usual_waking_ns
                thread.is_idle = False
                self._turn(thread, at_ns + waking_ns)
                return

    def _turn(self, thread: _SimulatedThread, at_ns: int) -> None:
        """A thread will look for something to do at that time, and not before."""
        thread.turn += 1
        turn = thread.turn

        def decide(at_ns: int) -> None:
            if thread.turn == turn:
                self._decide(thread, at_ns)

        self._plan(at_ns, decide, decides=True)

    def _decide(self, thread: _SimulatedThread, at_ns: int) -> None:
        """Let a thread resume a node whose pass has ended, or pop the next one."""
        called = thread.calls[-1][2] if thread.calls else -1
        if thread.calls and self._is_done[called]:
            key, place, _ = thread.calls.pop()
            self._go_on(thread, key, place, at_ns)
        elif thread.calls and not self._left[called]:
            thread.is_idle = True  # it is about to leave that pass
        elif len(self._queues[thread.queue]):
            ready = self._queues[thread.queue].pop()
            assert isinstance(ready, ReadyTask)
            self._go_on(
                thread, ready.what, 0, at_ns + self._work.jobs[ready.what].engine_ns
            )
        else:
            thread.is_idle = True

    def _go_on(
        self, thread: _SimulatedThread, key: NodeKey, place: int, at_ns: int
    ) -> None:
        """A thread runs a node from its step `place`, up to the next one."""
        job, times = self._work.jobs[key], self._faster.get(key, 1.0)
        before_ns = job.steps[place - 1].after_ns if place else 0
        after_ns = job.own_ns if place == len(job.steps) else job.steps[place].after_ns
        took_ns = round((after_ns - before_ns) / times)
        if place == len(job.steps):
            self._plan(at_ns + took_ns, lambda at_ns: self._leave(thread, key, at_ns))
            return
        step = job.steps[place]
        if step.deed == "wait":
            waited_ns = step.what
            if self._infinite_streams:
                waited_ns = min(waited_ns, job.kernels_ns)
            took_ns += round(waited_ns / times)
        self._plan(at_ns + took_ns, lambda at_ns: self._do(thread, key, place, at_ns))

    def _do(
        self, thread: _SimulatedThread, key: NodeKey, place: int, at_ns: int
    ) -> None:
        """A node has come to one of its steps."""
        step = self._work.jobs[key].steps[place]
        if step.deed == "call":
            thread.calls.append((key, place + 1, step.what))
            self._begin(step.what, at_ns)
            self._turn(thread, at_ns + self._work.passes[step.what].setup_ns)
            return
        if step.deed == "send":
            receiver, took_ns = self._work.deliveries[step.what]
            self._plan(at_ns + took_ns, lambda at: self._push(receiver, at, 0))
        if step.deed == "give":
            receiver = key[0], step.what
            self._awaited[receiver] -= 1
            job = self._work.jobs.get(receiver)
            if job is not None and not self._awaited[receiver]:
                pushing_ns = round(job.pushing_ns / self._faster.get(key, 1.0))
                self._plan(at_ns + pushing_ns, lambda at: self._push(receiver, at))
        self._go_on(thread, key, place + 1, at_ns)

    def _leave(self, thread: _SimulatedThread, key: NodeKey, at_ns: int) -> None:
        """A node is done, and perhaps its pass."""
        task = key[0]
        self._left[task] -= 1
        if not self._left[task]:
            self._end(task, at_ns)
        self._turn(thread, at_ns)

    def _end(self, task: int, at_ns: int) -> None:
        one = self._work.passes[task]
        if task in self._parts:
            self._plan(at_ns + one.ending_ns, self._finish)
        else:
            leaving_ns = one.ending_ns + one.leaving_ns
            self._plan(at_ns + leaving_ns, lambda at_ns: self._return(task, at_ns))

    def _finish(self, at_ns: int) -> None:
        """A worker is done with its part, and with it perhaps all are."""
        self._left_parts -= 1
        if not self._left_parts:
            self._end_ns = at_ns

    def _return(self, task: int, at_ns: int) -> None:
        """End a pass; its caller resumes, if it has nothing else to do."""
        self._is_done[task] = True
        for threads in self._threads.values():
            for thread in threads:
                if thread.is_idle and thread.calls and thread.calls[-1][2] == task:
                    thread.is_idle = False
                    self._turn(thread, at_ns)
