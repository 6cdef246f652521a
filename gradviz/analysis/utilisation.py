"""Whether the workers of a pass were busy, and what they waited for when they were not.

A worker is a thread that ran nodes of the pass, and the one that called for it. All its
time from the begin of the pass to its end is told, to the nanosecond.
"""

from collections import Counter
from typing import Any, Final, NamedTuple

import msgspec
import numpy as np

from gradviz.analysis.causes import Causes, find_causes
from gradviz.analysis.device_time import DeviceTime, device_times
from gradviz.analysis.executions import MAX_TEXT, definition
from gradviz.analysis.kernel_causes import SYNCHRONIZED
from gradviz.analysis.lanes import Act
from gradviz.analysis.longest_chain import longest_chain
from gradviz.analysis.node_runs import node_runs
from gradviz.analysis.passes import Status
from gradviz.trace.model import Trace
from gradviz.trace.strings import shortened
from gradviz.trace.table import Column

SCHEMA: Final = "gradviz.utilisation"
VERSION: Final = 1

#: Of more passes than this that are asked for the first are looked at.
MAX_TASKS: Final = 200
MAX_WORKERS: Final = 250
#: So many nodes that were waited for are named.
MAX_NAMED: Final = 10

#: Moments after which a thread is inside of a node.
_INSIDE: Final = (
    *("node_started", "gradient_buffered", "kernel_launched"),
    *SYNCHRONIZED,
)


class WaitedFor(msgspec.Struct, frozen=True, gc=False):
    """A node that workers waited for, and for how long, all of them together."""

    task: int
    node: int
    name: str
    waited_ns: int


class WorkerTime(msgspec.Struct, frozen=True, kw_only=True):
    """One thread, and what became of its time; the parts are the pass's duration.

    Attributes:
        thread: Its number.
        name: Its name.
        num_nodes: How many nodes of the pass, and of those inside it, it ran.
        running_ns: It ran them.
        elsewhere_ns: It ran nodes of other passes.
        engine_ns: The engine between nodes, at the begin and at the end of a pass.
        waking_ns: A node was ready for it, and it had to wake up.
        dependency_ns: Idle; the next node that it ran was not ready.
        no_work_ns: Idle, and no node of the pass was to come for it.
        stream_ns: It waited for a device, inside of a node.
        unknown_ns: What the trace does not tell.
        waited_for: Who made ready what it was idle for, the longest first.
    """

    thread: int
    name: str
    num_nodes: int
    running_ns: int
    elsewhere_ns: int
    engine_ns: int
    waking_ns: int
    dependency_ns: int
    no_work_ns: int
    stream_ns: int
    unknown_ns: int
    waited_for: tuple[WaitedFor, ...]


class Utilisation(msgspec.Struct, frozen=True, kw_only=True):
    """How busy the workers and devices of one pass were.

    Attributes:
        task: The pass.
        status: How it ended.
        is_whole: Whether nothing of the trace is lost.
        origin_ns: When it began, on the trace's clock.
        duration_ns: To its end, or to the last event of it that the trace has.
        workers: Its caller first.
        devices: Those whose kernels the trace has the times of, by name.
        waited_for: The nodes that workers waited for, all of them together.
        work_ns: How long all nodes ran, each for itself.
        span_ns: The longest chain of nodes: the nodes alone take no less, however many
            workers there are. See `longest_chain`.
        parallelism: Work over duration.
        possible_parallelism: Work over span.
        omitted: Workers that are left out, because there are too many.
    """

    task: int
    status: Status
    is_whole: bool
    origin_ns: int
    duration_ns: int
    workers: tuple[WorkerTime, ...]
    devices: tuple[DeviceTime, ...]
    waited_for: tuple[WaitedFor, ...]
    work_ns: int
    span_ns: int
    parallelism: float
    possible_parallelism: float
    omitted: int = 0


def find_utilisation(trace: Trace, task: int) -> Utilisation:
    """How busy the workers and devices of a pass were.

    Raises:
        UserError: The pass has too many events.
    """
    causes = find_causes(trace, task)
    nodes = node_runs(causes)
    lanes = _lanes(causes)
    parts = _parts(causes)
    work_ns = int(nodes.own_ns.sum())
    span_ns = longest_chain(causes, nodes)
    waits: Counter[tuple[int, int]] = Counter()
    workers = []
    for lane in lanes[:MAX_WORKERS]:
        own = parts.of(lane)
        waited = _waited_for(causes, own)
        waits.update(waited)
        workers.append(
            WorkerTime(
                thread=lane,
                name=shortened(trace.threads[lane].name, MAX_TEXT),
                num_nodes=int(np.count_nonzero(causes.lane[nodes.end] == lane)),
                waited_for=_most(trace, waited),
                **own.sums(),
            )
        )
    begin_ns = int(causes.t_ns[0])
    duration_ns = causes.duration_ns
    return Utilisation(
        task=task,
        status=causes.status,
        is_whole=trace.losses.is_complete,
        origin_ns=begin_ns,
        duration_ns=duration_ns,
        workers=tuple(workers),
        devices=device_times(trace, begin_ns, begin_ns + duration_ns),
        waited_for=_most(trace, waits),
        work_ns=work_ns,
        span_ns=span_ns,
        parallelism=work_ns / max(duration_ns, 1),
        possible_parallelism=work_ns / max(span_ns, 1),
        omitted=max(len(lanes) - MAX_WORKERS, 0),
    )


def document_of(utilisation: Utilisation) -> dict[str, Any]:
    """What ``gradviz show utilisation --json`` prints."""
    document = msgspec.to_builtins(utilisation, str_keys=True)
    return {"schema": SCHEMA, "version": VERSION, **document}


def _lanes(causes: Causes) -> list[int]:
    """The threads that work for the pass, its caller first."""
    is_ours = np.isin(causes.of_task, causes.tasks) & (causes.lane >= 0)
    is_ours &= causes.is_kind("task_popped", "node_started")
    caller = int(causes.lane[0])
    others = set(causes.lane[is_ours].tolist()) - {caller}
    return [caller, *sorted(others)]


class _Parts(NamedTuple):
    """Pieces of the time of lanes: of what kind, how long, up to which moment."""

    kind: Column
    took_ns: Column
    lane: Column
    moment: Column

    def of(self, lane: int) -> "_Parts":
        return _Parts(*(column[self.lane == lane] for column in self))

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
}


def _parts(causes: Causes) -> _Parts:
    """What every lane did before each of its moments, and after its last one."""
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
    return _Parts(
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


def _waited_for(causes: Causes, own: _Parts) -> Counter[tuple[int, int]]:
    """Whoever ended that for which a worker was idle, and for how long it was."""
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


def _most(trace: Trace, waited: Counter[tuple[int, int]]) -> tuple[WaitedFor, ...]:
    return tuple(
        WaitedFor(task, node, definition(trace, node).name, waited_ns)
        for (task, node), waited_ns in waited.most_common(MAX_NAMED)
    )
