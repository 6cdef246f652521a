"""The nodes that ran in one pass, and whose each piece of its time was."""

from typing import NamedTuple

import numpy as np

from gradviz.analysis.causes import Causes
from gradviz.analysis.lanes import Act
from gradviz.trace.table import Column, different


class NodeRuns(NamedTuple):
    """Nodes of a pass, and of those called from inside it, in the order of their ends.

    Attributes:
        end: The moment when each was done.
        last_begin: The moment since when it ran without waiting for anything: its
            start, or when it came back from a pass that it had called for.
        owner: Of each moment the number of the node that ran until then, or whose
            kernel did; -1 for none of these.
        own_ns: How long each ran itself.
        so_far_ns: Of each moment how long the node that ran until then had run itself.
    """

    end: Column
    last_begin: Column
    owner: Column
    own_ns: Column
    so_far_ns: Column

    def sums(self, causes: Causes, moments: Column) -> Column:
        """How much of the time before some moments is each node's own."""
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
