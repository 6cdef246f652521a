"""The work of a recorded pass: the actions of each node, with their times.

It is what a pass under another policy or on more threads would consist of, too.
"""

import bisect
import operator
from collections import Counter, defaultdict
from collections.abc import Container, Iterable, Mapping
from typing import Final, Literal, NamedTuple, TypeAlias

import numpy as np
import numpy.typing as npt

from gradviz.analysis.causes.causal_graph import Causes, find_causes
from gradviz.analysis.causes.kernel_causes import SYNCHRONIZED
from gradviz.analysis.causes.node_runs import NodeRuns, node_runs
from gradviz.analysis.causes.thread_lanes import Act
from gradviz.analysis.tables.passes import the_pass
from gradviz.errors import UserError
from gradviz.ready_order import DEPTH_SHIFT
from gradviz.trace.format.model import Trace
from gradviz.trace.format.table import Column

#: A pass with more nodes is not simulated.
MAX_JOBS: Final = 120_000

#: A pass, and a node of it.
NodeKey: TypeAlias = tuple[int, int]

#: Deeds of a node: it gives a gradient to a node, calls for a pass, waits for so many
#: nanoseconds for a stream, or sends gradients to another worker: a place in
#: `RecordedWork.deliveries`.
Deed: TypeAlias = Literal["give", "call", "wait", "send"]


class JobStep(NamedTuple):
    """Something that a node does, so long after its start, as far as it ran itself."""

    after_ns: int
    deed: Deed
    what: int


class Job(NamedTuple):
    """Work of a node.

    Attributes:
        queue: The queue it is pushed to.
        priority: Its priority there; see Note [Priority in a ready queue].
        pushing_ns: Time from its last gradient to its push.
        engine_ns: Time from the moment that a thread turns to it to its start.
        waking_ns: Time that its thread took to wake up for it; -1 if it was awake.
        own_ns: Self time.
        kernels_ns: Time of its kernels.
        steps: Its actions, in order.
    """

    queue: int
    priority: int
    pushing_ns: int
    engine_ns: int
    waking_ns: int
    own_ns: int
    kernels_ns: int
    steps: tuple[JobStep, ...]


class Delivery(NamedTuple):
    """Gradients on their way to another worker.

    Attributes:
        receiver: The node that is pushed there for them.
        took_ns: Time from their departure to that push.
    """

    receiver: NodeKey
    took_ns: int


class PassWork(NamedTuple):
    """A part of the pass asked for, or a pass that is called for by a node of another.

    Attributes:
        roots: The nodes that it begins with; none where gradients of others begin it.
        setup_ns: From its begin to the push of these.
        ending_ns: From the end of its last node to its own.
        leaving_ns: From there to when its caller goes on.
        num_nodes: Number of nodes that run.
    """

    roots: tuple[NodeKey, ...]
    setup_ns: int
    ending_ns: int
    leaving_ns: int
    num_nodes: int


class RecordedWork(NamedTuple):
    """A pass as it was recorded.

    Attributes:
        task: The pass.
        duration_ns: Its duration.
        jobs: Its nodes, and those of passes that they called for.
        awaited: Number of gradients that each of them is given.
        passes: These passes, by id.
        device_queues: Queues that a device's thread serves.
        others: The parts of the pass that other workers ran.
        deliveries: The gradients that workers sent each other.
    """

    task: int
    duration_ns: int
    jobs: dict[NodeKey, Job]
    awaited: Counter[NodeKey]
    passes: dict[int, PassWork]
    device_queues: frozenset[int]
    others: tuple[int, ...] = ()
    deliveries: tuple[Delivery, ...] = ()


def recorded_work(trace: Trace, task: int) -> RecordedWork:
    """Return the work of a recorded pass.

    Raises:
        UserError: It did not complete, or has too many events.
    """
    causes = find_causes(trace, task)
    if causes.status != "completed":
        raise UserError(
            f"pass {task} is {causes.status}: only of a pass that completed it can be "
            f"said how long it would take; --pass names another one"
        )
    nodes = node_runs(causes)
    keys = _keys(causes, nodes.end)
    if len(keys) > MAX_JOBS:
        raise UserError(
            f"pass {task} has {len(keys):,} nodes, more than the {MAX_JOBS:,} that are "
            f"simulated"
        )
    pushes = _pushes(trace, causes)
    deliveries = _deliveries(causes)
    steps, awaited = _steps(causes, nodes, deliveries)
    kernels_ns = _kernels(causes, nodes)
    pushing_ns = _pushing(causes)
    starts = _starts(causes)
    waking_ns = _waking(causes, {key: queue for key, (queue, _) in pushes.items()})
    own_ns, ran_ns = nodes.own_ns.tolist(), kernels_ns.tolist()
    jobs = {}
    for number, key in enumerate(keys):
        queue, priority = pushes.get(key, (-1, 0))
        jobs[key] = Job(
            queue,
            priority,
            pushing_ns.get(key, 0),
            starts.get(key, 0),
            waking_ns.get(key, -1),
            own_ns[number],
            ran_ns[number],
            tuple(steps.get(key, ())),
        )
    received = {one.receiver for one in deliveries.values()}
    return RecordedWork(
        task=causes.task,
        duration_ns=causes.duration_ns,
        jobs=jobs,
        awaited=awaited,
        passes=_passes(causes, jobs, {*awaited, *received}),
        device_queues=frozenset(
            number for number, queue in trace.queues.items() if queue.device >= 0
        ),
        others=the_pass(trace, causes.task).parts[1:],
        deliveries=tuple(deliveries.values()),
    )


def _keys(causes: Causes, moments: Column) -> list[NodeKey]:
    tasks, nodes = causes.of_task[moments].tolist(), causes.of_node[moments].tolist()
    return list(zip(tasks, nodes, strict=True))


def _pushes(trace: Trace, causes: Causes) -> dict[NodeKey, tuple[int, int]]:
    """The queue and the priority of each node."""
    pushed = trace.columns["task_pushed"]
    pushed = pushed.at(
        np.isin(pushed.narrow("task"), causes.tasks) & (pushed.narrow("node") >= 0)
    )
    names = ("task", "node", "queue", "reentrant_depth", "sequence_nr")
    return {
        (task, node): (queue, (depth << DEPTH_SHIFT) + sequence_nr % 2**64)
        for task, node, queue, depth, sequence_nr in pushed.rows(*names)
    }


def _starts(causes: Causes) -> dict[NodeKey, int]:
    """Return the engine's time before each node, since its thread turned to it."""
    popped = np.flatnonzero(causes.is_kind("task_popped"))
    cause = causes.cause[popped]
    ready_ns = causes.t_ns[np.where(cause >= 0, cause, causes.before[popped])]
    woke_ns = np.where(cause >= 0, causes.woke_ns[popped], 0)
    turned_ns = dict(
        zip(_keys(causes, popped), np.maximum(ready_ns, woke_ns).tolist(), strict=True)
    )
    started = np.flatnonzero(causes.is_kind("node_started"))
    return {
        key: start_ns - turned_ns.get(key, start_ns)
        for key, start_ns in zip(
            _keys(causes, started), causes.t_ns[started].tolist(), strict=True
        )
    }


def _waking(causes: Causes, queue_of: Mapping[NodeKey, int]) -> dict[NodeKey, int]:
    """Return the wake-up times of threads for the first node that arrived.

    Others may have come before it was awake, and one of these may have been popped.
    """
    pushed = np.flatnonzero(causes.is_kind("task_pushed") & (causes.of_node >= 0))
    came: dict[int, list[tuple[int, NodeKey]]] = defaultdict(list)
    for key, pushed_ns in zip(
        _keys(causes, pushed), causes.t_ns[pushed].tolist(), strict=True
    ):
        came[queue_of.get(key, -1)].append((pushed_ns, key))
    popped = causes.is_kind("task_popped") & (causes.cause >= 0) & (causes.of_node >= 0)
    slept = np.flatnonzero(popped & (causes.woke_ns > causes.t_ns[causes.cause]))
    found = {}
    for key, since_ns, woke_ns in zip(
        _keys(causes, slept),
        causes.t_ns[causes.before[slept]].tolist(),
        causes.woke_ns[slept].tolist(),
        strict=True,
    ):
        pushes = came[queue_of.get(key, -1)]
        place = bisect.bisect_right(pushes, since_ns, key=operator.itemgetter(0))
        if place < len(pushes):
            pushed_ns, first = pushes[place]
            found[first] = woke_ns - pushed_ns
    return found


def _pushing(causes: Causes) -> dict[NodeKey, int]:
    """From the last gradient of each node to its push."""
    given = np.flatnonzero(causes.is_kind("gradient_buffered"))
    pushed = np.flatnonzero(causes.is_kind("task_pushed"))
    both = _keys(causes, given), causes.t_ns[given].tolist()
    given_ns = dict(zip(*both, strict=True))
    return {
        key: pushed_ns - given_ns[key]
        for key, pushed_ns in zip(
            _keys(causes, pushed), causes.t_ns[pushed].tolist(), strict=True
        )
        if given_ns.get(key, pushed_ns) < pushed_ns
    }


def _deliveries(causes: Causes) -> dict[NodeKey, Delivery]:
    """The gradients that workers sent each other, by the node that sent them."""
    pushed = np.flatnonzero(causes.is_kind("task_pushed"))
    pushed_ns = dict(
        zip(_keys(causes, pushed), causes.t_ns[pushed].tolist(), strict=True)
    )
    found = {}
    for one in causes.sent:
        receiver = one.to_task, one.to_node
        if one.task in causes.tasks and one.sent_ns and receiver in pushed_ns:
            took_ns = max(pushed_ns[receiver] - one.sent_ns, 0)
            found[one.task, one.node] = Delivery(receiver, took_ns)
    return found


def _steps(
    causes: Causes, nodes: NodeRuns, deliveries: Iterable[NodeKey]
) -> tuple[dict[NodeKey, list[JobStep]], Counter[NodeKey]]:
    """Return the actions of each node, and the number of gradients each gets."""
    steps: dict[NodeKey, list[JobStep]] = defaultdict(list)
    mixed: set[NodeKey] = set()  # what is told by several kinds of events
    after_ns = nodes.so_far_ns.tolist()
    took_ns = (causes.t_ns - causes.t_ns[causes.before]).tolist()
    is_given = causes.is_kind("gradient_buffered") & (causes.by >= 0)
    for moment, task, node, by in _rows(
        is_given, causes.of_task, causes.of_node, causes.by
    ):
        steps[task, by].append(JobStep(after_ns[moment], "give", node))
    is_call = causes.is_kind("task_begun") & (causes.act == Act.RUNNING)
    is_call &= np.isin(causes.of_task, causes.tasks)
    for moment, task, caller, node in _rows(
        is_call, causes.of_task, causes.act_task, causes.act_node
    ):
        steps[caller, node].append(JobStep(after_ns[moment], "call", task))
        mixed.add((caller, node))
    is_wait = causes.is_kind(*SYNCHRONIZED) & (causes.cause >= 0)
    for moment, task, node in _rows(is_wait, causes.act_task, causes.act_node):
        ran_ns = after_ns[int(causes.before[moment])]
        steps[task, node].append(JobStep(ran_ns, "wait", took_ns[moment]))
        mixed.add((task, node))
    number = {key: place for place, key in enumerate(deliveries)}
    is_sent = causes.is_kind("message_sent")
    for moment, task, node in _rows(is_sent, causes.of_task, causes.of_node):
        if (task, node) in number:
            steps[task, node].append(
                JobStep(after_ns[moment], "send", number[task, node])
            )
            mixed.add((task, node))
    for key in mixed:
        steps[key].sort(key=operator.attrgetter("after_ns"))
    return steps, Counter(_keys(causes, np.flatnonzero(is_given)))


def _rows(which: npt.NDArray[np.bool_], *columns: Column) -> Iterable[tuple[int, ...]]:
    places = np.flatnonzero(which)
    return zip(places.tolist(), *(one[places].tolist() for one in columns), strict=True)


def _kernels(causes: Causes, nodes: NodeRuns) -> Column:
    """Return the running time of the kernels of each node."""
    return nodes.sums(causes, np.flatnonzero(causes.act == Act.KERNEL))


def _passes(
    causes: Causes, jobs: Mapping[NodeKey, Job], awaited: Container[NodeKey]
) -> dict[int, PassWork]:
    """The parts of the pass, and the passes that its nodes called for."""
    nodes: dict[int, list[NodeKey]] = {task: [] for task in causes.tasks}
    for key in jobs:
        nodes[key[0]].append(key)
    begun, pushed, done, left = (
        _first_times(causes, kind)
        for kind in ("task_begun", "task_pushed", "task_completed", "reentrant_left")
    )
    for task in causes.tasks:  # in a damaged trace one may begin before its caller
        begun.setdefault(task, int(causes.t_ns[0]))
    ends = np.flatnonzero(causes.is_kind("task_completed"))
    ending = dict(
        zip(causes.of_task[ends].tolist(), causes.took_ns[ends].tolist(), strict=True)
    )
    return {
        task: PassWork(
            roots=tuple(key for key in nodes[task] if key not in awaited),
            setup_ns=pushed.get(task, begun[task]) - begun[task],
            ending_ns=ending.get(task, 0),
            leaving_ns=left[task] - done[task]
            if {task} <= left.keys() & done.keys()
            else 0,
            num_nodes=len(nodes[task]),
        )
        for task in causes.tasks
    }


def _first_times(causes: Causes, kind: str) -> dict[int, int]:
    """Return the time of each pass's first event of a kind."""
    found = np.flatnonzero(causes.is_kind(kind))[::-1]
    both = causes.of_task[found].tolist(), causes.t_ns[found].tolist()
    return dict(zip(*both, strict=True))
