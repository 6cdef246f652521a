"""Utilization of the workers of a pass: busy times, and waits.

A worker is a thread that ran nodes of the pass, and the one that called for it. All its
time from the start of the pass to its end is told, to the nanosecond.
"""

from collections import Counter
from typing import Any, Final, NamedTuple

import msgspec
import numpy as np

from gradviz.analysis.causes.causal_graph import Causes, find_causes
from gradviz.analysis.causes.device_time import DeviceTime, device_times
from gradviz.analysis.causes.kernel_causes import SYNCHRONIZED
from gradviz.analysis.causes.node_runs import longest_chain, node_runs
from gradviz.analysis.causes.thread_lanes import Act
from gradviz.analysis.tables.executions import MAX_TEXT, NodeNumbers, definition
from gradviz.analysis.tables.passes import Status
from gradviz.analysis.tables.worker_parts import whole_of
from gradviz.trace.format.model import Trace
from gradviz.trace.format.strings import shortened
from gradviz.trace.format.table import Column, different

SCHEMA: Final = "gradviz.utilization"
VERSION: Final = 1

#: Of more passes than this that are asked for the first are looked at.
MAX_TASKS: Final = 200
MAX_THREADS: Final = 250
#: Maximum number of nodes named that were waited for.
MAX_NAMED: Final = 10

#: Moments after which a thread is inside of a node.
_INSIDE: Final = (
    *("node_started", "gradient_buffered", "kernel_launched"),
    *SYNCHRONIZED,
)


class WaitedFor(msgspec.Struct, frozen=True, gc=False):
    """A node that threads waited for, and for how long, all of them together.

    Attributes:
        task: Its pass.
        node: Its id.
        name: Its class.
        waited_ns: Time that they waited for it.
        index: Its place in the execution order of its pass.
    """

    task: int
    node: int
    name: str
    waited_ns: int
    index: int | None = None


class ThreadUse(msgspec.Struct, frozen=True, kw_only=True):
    """The time of one thread in parts, which add up to the pass's duration.

    Attributes:
        thread: Its number.
        name: Its name.
        num_runs: Runs of nodes of the pass, and of those inside it, that ended before
            it did: where it fails, other threads and workers may still run some.
        running_ns: It ran them.
        elsewhere_ns: It ran nodes of other passes.
        engine_ns: The engine between nodes, at the start and at the end of a pass.
        waking_ns: A node was ready for it, and it had to wake up.
        dependency_ns: Idle; the next node that it ran was not ready.
        no_work_ns: Idle, and no node of the pass was to come for it.
        stream_ns: It waited for a device, inside of a node.
        unknown_ns: Time of which the trace does not tell.
        waited_for: Nodes that made ready what it was idle for, the longest wait first.
    """

    thread: int
    name: str
    num_runs: int
    running_ns: int
    elsewhere_ns: int
    engine_ns: int
    waking_ns: int
    dependency_ns: int
    no_work_ns: int
    stream_ns: int
    unknown_ns: int
    waited_for: tuple[WaitedFor, ...]


class Utilization(msgspec.Struct, frozen=True, kw_only=True):
    """Busy and idle time of the threads and devices of one pass.

    Attributes:
        task: The pass.
        status: Outcome of the pass.
        is_whole: True if nothing of the trace is lost.
        origin_ns: Time of its start, on the trace's clock.
        duration_ns: To its end, or to the last event of it that the trace has.
        threads: Its caller first, then those that ran nodes of it.
        devices: Those whose kernels the trace has the times of, by name.
        waited_for: The nodes that threads waited for, all of them together.
        work_ns: Time that all nodes ran, each for itself.
        span_ns: The longest chain of nodes: the nodes alone take no less, however many
            threads there are. See `longest_chain`.
        parallelism: Work over duration.
        possible_parallelism: Work over span.
        omitted: Threads that are left out, because there are too many.
    """

    task: int
    status: Status
    is_whole: bool
    origin_ns: int
    duration_ns: int
    threads: tuple[ThreadUse, ...]
    devices: tuple[DeviceTime, ...]
    waited_for: tuple[WaitedFor, ...]
    work_ns: int
    span_ns: int
    parallelism: float
    possible_parallelism: float
    omitted: int = 0


def find_utilization(trace: Trace, task: int) -> Utilization:
    """Measure the busy and idle time of the threads and devices of a pass.

    Raises:
        UserError: The pass has too many events.
    """
    causes = find_causes(trace, task)
    nodes = node_runs(causes)
    lanes = _lanes(causes)
    stretches = _stretches(causes)
    work_ns = int(nodes.own_ns.sum())
    span_ns = longest_chain(causes, nodes)
    numbers = NodeNumbers(trace, different(causes.act_task).tolist())
    waits: Counter[tuple[int, int]] = Counter()
    threads = []
    for lane in lanes[:MAX_THREADS]:
        own = stretches.of(lane)
        waited = _waited_for(causes, own)
        waits.update(waited)
        threads.append(
            ThreadUse(
                thread=lane,
                name=shortened(trace.threads[lane].name, MAX_TEXT),
                num_runs=int(np.count_nonzero(causes.lane[nodes.end] == lane)),
                waited_for=_most(trace, waited, numbers),
                **own.sums(),
            )
        )
    begin_ns = int(causes.t_ns[0])
    duration_ns = causes.duration_ns
    return Utilization(
        task=causes.task,
        status=causes.status,
        is_whole=trace.losses.is_complete,
        origin_ns=begin_ns,
        duration_ns=duration_ns,
        threads=tuple(threads),
        devices=device_times(trace, begin_ns, begin_ns + duration_ns),
        waited_for=_most(trace, waits, numbers),
        work_ns=work_ns,
        span_ns=span_ns,
        parallelism=work_ns / max(duration_ns, 1),
        possible_parallelism=work_ns / max(span_ns, 1),
        omitted=max(len(lanes) - MAX_THREADS, 0),
    )


def document_of(utilization: Utilization) -> dict[str, Any]:
    """Return the output of ``gradviz show utilization --json``."""
    document = msgspec.to_builtins(utilization, str_keys=True)
    return {"schema": SCHEMA, "version": VERSION, **document}


def _lanes(causes: Causes) -> list[int]:
    """The threads that work for the pass, its caller first."""
    is_ours = np.isin(causes.of_task, causes.tasks) & (causes.lane >= 0)
    is_ours &= causes.is_kind("task_popped", "node_started")
    caller = int(causes.lane[0])
    others = set(causes.lane[is_ours].tolist()) - {caller}
    return [caller, *sorted(others)]


class _Stretches(NamedTuple):
    """Stretches of time: kind, duration, lane, and the moment that ends each."""

    kind: Column
    took_ns: Column
    lane: Column
    moment: Column

    def of(self, lane: int) -> "_Stretches":
        return _Stretches(*(column[self.lane == lane] for column in self))

    def sums(self) -> dict[str, int]:
        return {
            name: int(self.took_ns[self.kind == number].sum())
            for number, name in enumerate(_NAMES)
        }


_NAMES: Final = (
    *("running_ns", "elsewhere_ns", "engine_ns", "waking_ns", "dependency_ns"),
    *("no_work_ns", "stream_ns", "unknown_ns"),
)
_PLACE: Final = {name: number for number, name in enumerate(_NAMES)}
_OF_ACTS: Final = {
    Act.UNKNOWN: "unknown_ns",
    Act.RUNNING: "running_ns",
    Act.ENGINE: "engine_ns",
    Act.SETTING_UP: "engine_ns",
    Act.CALLBACK: "engine_ns",
    Act.WAKING: "waking_ns",
    Act.KERNEL: "stream_ns",
    Act.STREAM: "stream_ns",
    Act.MESSAGE: "dependency_ns",
    Act.COLLECTIVE: "dependency_ns",
}


def _stretches(causes: Causes) -> _Stretches:
    """Return every lane's activity before each of its moments, and after its last."""
    t_ns, cause = causes.t_ns, causes.cause
    moments = np.arange(len(t_ns))
    before_ns = t_ns[causes.before]
    ready_ns = np.where(cause >= 0, t_ns[cause], before_ns)
    awake_ns = np.maximum(causes.woke_ns, ready_ns)
    is_ours = np.isin(causes.of_task, causes.tasks)
    # Idle, then waking up, then at work for the moment itself.
    idle = np.where(is_ours, _PLACE["dependency_ns"], _PLACE["no_work_ns"])
    idle[causes.is_kind(*SYNCHRONIZED)] = _PLACE["stream_ns"]
    places = np.array([_PLACE[_OF_ACTS[act]] for act in Act])
    doing = places[causes.act]
    waking = np.where(
        causes.act == Act.UNKNOWN, _PLACE["unknown_ns"], _PLACE["waking_ns"]
    )
    is_other = (causes.act == Act.RUNNING) & ~np.isin(causes.act_task, causes.tasks)
    doing[is_other] = _PLACE["elsewhere_ns"]
    last = _last_ones(causes.lane)
    is_inside = causes.is_kind(*_INSIDE)
    is_inside |= causes.is_kind("task_pushed") & (causes.by >= 0)
    after = np.where(is_inside[last], _PLACE["running_ns"], _PLACE["no_work_ns"])
    return _Stretches(
        kind=np.concatenate((idle, waking, doing, after)),
        took_ns=np.concatenate(
            (
                ready_ns - before_ns,
                awake_ns - ready_ns,
                t_ns - awake_ns,
                t_ns[-1] - t_ns[last],
            )
        ),
        lane=np.concatenate((causes.lane, causes.lane, causes.lane, causes.lane[last])),
        moment=np.concatenate((moments, moments, moments, last)),
    )


def _last_ones(lane: Column) -> Column:
    """The last moment of each lane."""
    order = np.argsort(lane, kind="stable")
    is_last = np.ones(len(lane), np.bool_)
    is_last[:-1] = lane[order[1:]] != lane[order[:-1]]
    return order[is_last]


def _waited_for(causes: Causes, own: _Stretches) -> Counter[tuple[int, int]]:
    """Return the nodes that ended workers' idle times, with those times."""
    waited: Counter[tuple[int, int]] = Counter()
    is_idle = (own.kind == _PLACE["dependency_ns"]) & (own.took_ns > 0)
    cause = causes.cause[own.moment[is_idle]]
    for task, node, took_ns in zip(
        causes.act_task[cause].tolist(),
        causes.act_node[cause].tolist(),
        own.took_ns[is_idle].tolist(),
        strict=True,
    ):
        if node >= 0:
            waited[task, node] += took_ns
    return waited


def _most(
    trace: Trace, waited: Counter[tuple[int, int]], numbers: NodeNumbers
) -> tuple[WaitedFor, ...]:
    return tuple(
        WaitedFor(
            whole_of(trace, task),
            node,
            definition(trace, node).name,
            waited_ns,
            numbers.of(task, node),
        )
        for (task, node), waited_ns in waited.most_common(MAX_NAMED)
    )
