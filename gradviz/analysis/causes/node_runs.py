"""The nodes that ran in one pass, the owner of each piece of its time, and chains.

Note [The longest chain]
~~~~~~~~~~~~~~~~~~~~~~~~
It says how long a pass would take with a thread for every node. A node begins when it
is pushed, and gives its gradients and pushes others as far into its run as it did. It
runs for as long as it ran itself, and the longest chains of the passes that it called
for. There is nothing between nodes, and no wait for a stream.
"""

from collections import defaultdict
from collections.abc import Iterator, Mapping, Sequence
from typing import NamedTuple

import numpy as np

from gradviz.analysis.causes.causal_graph import Causes
from gradviz.analysis.causes.thread_lanes import Act
from gradviz.trace.format.table import Column, different


class NodeRuns(NamedTuple):
    """Nodes of a pass, and of those called from inside it, in the order of their ends.

    Attributes:
        end: The moment when each was done.
        last_begin: The moment since when it ran without waiting for anything: its
            start, or when it came back from a pass that it had called for.
        owner: Of each moment the number of the node that ran until then, or whose
            kernel did; -1 for none of these.
        own_ns: Time that each ran itself.
        so_far_ns: Of each moment how long the node that ran until then had run itself.
    """

    end: Column
    last_begin: Column
    owner: Column
    own_ns: Column
    so_far_ns: Column

    def sums(self, causes: Causes, moments: Column) -> Column:
        """Return each node's share of the time before some moments."""
        found = np.zeros(len(self.end) + 1, np.int64)
        np.add.at(found, self.owner[moments], causes.took_ns[moments])
        return found[:-1]  # the last is that of nobody


def node_runs(causes: Causes) -> NodeRuns:
    """The nodes of a pass that were done before its end."""
    is_end = causes.is_kind("node_completed", "node_failed")
    end = np.flatnonzero(is_end & np.isin(causes.of_task, causes.tasks))
    owner = _owners(causes, end)
    owner[~np.isin(causes.act, (Act.RUNNING, Act.KERNEL))] = -1
    is_run = causes.act == Act.RUNNING
    runner = np.where(is_run, owner, -1)
    own = NodeRuns(end, end, runner, end, end)
    in_lanes = np.argsort(causes.lane, kind="stable")
    has_waited = ~(is_run & (causes.cause < 0))
    place = np.where(has_waited[in_lanes], np.arange(len(in_lanes)), 0)
    since = np.empty(len(in_lanes), np.int64)
    since[in_lanes] = in_lanes[np.maximum.accumulate(place)]
    return NodeRuns(
        end=end,
        last_begin=since[end],
        owner=owner,
        own_ns=own.sums(causes, np.arange(len(causes.t_ns))),
        so_far_ns=_so_far(causes, runner),
    )


def _so_far(causes: Causes, runner: Column) -> Column:
    order = np.argsort(runner, kind="stable")
    total = np.cumsum(causes.took_ns[order])
    first = np.searchsorted(runner[order], runner[order])
    before = np.where(first > 0, total[first - 1], 0)
    found = np.empty(len(order), np.int64)
    found[order] = total - before
    return np.where(runner >= 0, found, 0)


def _owners(causes: Causes, end: Column) -> Column:
    """Of each moment the place in `end` of the node that its time belongs to."""
    tasks, nodes = different(causes.of_task[end]), different(causes.of_node[end])
    if not len(end):
        return np.full(len(causes.t_ns), -1)

    def numbered(task: Column, node: Column) -> Column:
        one = np.minimum(np.searchsorted(tasks, task), len(tasks) - 1)
        other = np.minimum(np.searchsorted(nodes, node), len(nodes) - 1)
        is_known = (tasks[one] == task) & (nodes[other] == node)
        return np.where(is_known, one * len(nodes) + other, -1)

    numbers = numbered(causes.of_task[end], causes.of_node[end])
    wanted = numbered(causes.act_task, causes.act_node)
    order = np.argsort(numbers, kind="stable")
    place = np.minimum(np.searchsorted(numbers[order], wanted), len(end) - 1)
    found = order[place]
    return np.where(numbers[found] == wanted, found, -1)


def longest_chain(causes: Causes, nodes: NodeRuns) -> int:
    """Return the longest chain of nodes in nanoseconds, at most the pass's duration.

    See Note [The longest chain]. It goes through all workers; messages take no time.
    """

    def whole_of(task: int) -> int:
        return causes.parts[task].whole if task in causes.parts else task

    own_ns: dict[int, dict[int, int]] = defaultdict(dict)
    for task, node, took_ns in zip(
        causes.of_task[nodes.end].tolist(),
        causes.of_node[nodes.end].tolist(),
        nodes.own_ns.tolist(),
        strict=True,
    ):
        own_ns[whole_of(task)][node] = took_ns
    gradients: dict[int, list[_Gradient]] = defaultdict(list)
    for task, gradient in _gradients(causes, nodes):
        gradients[whole_of(task)].append(gradient)
    inside: dict[tuple[int, int], int] = defaultdict(int)
    longest = 0
    # A pass called from inside another has begun after it: the last one comes first.
    for call in np.flatnonzero(causes.is_kind("task_begun"))[::-1].tolist():
        task = int(causes.of_task[call])
        if task != whole_of(task):
            continue
        called_ns = {node: inside[task, node] for node in own_ns[task]}
        longest = _chain(own_ns[task], called_ns, gradients[task])
        if causes.act[call] == Act.RUNNING:
            caller = whole_of(int(causes.act_task[call]))
            inside[caller, int(causes.act_node[call])] += longest
    return longest


class _Gradient(NamedTuple):
    """A gradient's sender and receiver, and the sender's running time by then."""

    producer: int
    node: int
    after_ns: int


def _gradients(causes: Causes, nodes: NodeRuns) -> Iterator[tuple[int, _Gradient]]:
    """The gradients of a pass and the tasks that they belong to, in order of time."""
    receivers = {(one.task, one.node): one.to_node for one in causes.sent}
    is_sent = causes.is_kind("message_sent")
    is_given = causes.is_kind("gradient_buffered", "task_pushed") & (causes.by >= 0)
    given = np.flatnonzero(is_given | is_sent)
    for is_message, task, node, by, after_ns in zip(
        is_sent[given].tolist(),
        causes.of_task[given].tolist(),
        causes.of_node[given].tolist(),
        causes.by[given].tolist(),
        nodes.so_far_ns[given].tolist(),
        strict=True,
    ):
        if not is_message:
            yield task, _Gradient(by, node, after_ns)
        elif (task, node) in receivers:
            yield task, _Gradient(node, receivers[task, node], after_ns)


def _chain(
    own_ns: Mapping[int, int],
    called_ns: Mapping[int, int],
    gradients: Sequence[_Gradient],
) -> int:
    """The longest chain of one pass; its gradients are in the order of time."""
    begin = dict.fromkeys(own_ns, 0)
    for producer, node, after_ns in gradients:
        if producer in begin and node in begin:
            came = begin[producer] + called_ns[producer] + after_ns
            begin[node] = max(begin[node], came)
    done = (begin[node] + called_ns[node] + own_ns[node] for node in begin)
    return max(done, default=0)
