"""Micro-batches of a pipeline: which nodes belong to which, as messages tell.

A pipeline splits a batch, and each part goes from worker to worker by itself. In the
backward pass the worker of the loss sends the gradients of each part by themselves: so
a message from a node that no message led to begins a micro-batch, and all that its
gradients reach is of it. That is inferred: no event tells of micro-batches. What the
gradients of several reach, as parameters are, is of none; where there is no such node,
messages are of something else, as the parameters of a parameter server.
"""

from collections import defaultdict
from collections.abc import Mapping, Sequence

from gradviz.analysis.graphs.forward_order import order_by_sequence
from gradviz.analysis.tables.executions import execution_columns
from gradviz.analysis.tables.messages import messages
from gradviz.analysis.timelines.timeline_lanes import Timeline
from gradviz.trace.format.model import Trace
from gradviz.trace.format.table import different


def micro_batches(trace: Trace, timeline: Timeline) -> Mapping[int, int]:
    """Return the micro-batch of each node that is of one, from 0, by its id.

    They are counted in the order in which their first gradients were sent. Where all
    nodes are of one, nothing is told.
    """
    tasks = {part for one in timeline.passes for part in one.parts}
    sent = [
        (one.sent_ns or 0, one.node, one.to_node)
        for one in messages(trace)
        if one.pass_id >= 0 and one.task in tasks
    ]
    if not sent:
        return {}
    ids = different(execution_columns(trace, sorted(tasks)).node).tolist()
    place = {node: at for at, node in enumerate(ids)}
    across = [
        (place[node], place[to_node])
        for _, node, to_node in sorted(sent)
        if node in place and to_node in place
    ]
    labels = _labels(_ways(trace, place), across, ids)
    if not any(len(own) > 1 for own in labels):
        return {}
    return _numbered(
        {node: own for node, own in zip(ids, labels, strict=True) if len(own) == 1}
    )


def _ways(trace: Trace, place: Mapping[int, int]) -> list[tuple[int, int]]:
    """Return the edges between nodes, as places."""
    return [
        (at, place[to])
        for node, at in place.items()
        if node in trace.nodes
        for to, _ in trace.nodes[node].edges
        if to in place
    ]


def _labels(
    ways: Sequence[tuple[int, int]],
    across: Sequence[tuple[int, int]],
    ids: Sequence[int],
) -> list[set[int]]:
    """Return the micro-batches whose gradients reach each node.

    Args:
        ways: Edges of each worker.
        across: Messages, in the order in which they were sent.
        ids: Of the nodes.
    """
    begun: dict[int, int] = {}
    for at, _ in across:
        begun.setdefault(at, len(begun))
    consumers: dict[int, list[int]] = defaultdict(list)
    for at, to in (*ways, *across):
        consumers[at].append(to)
    labels: list[set[int]] = [set() for _ in ids]
    # Producers come first in the opposite of the forward order.
    made = order_by_sequence([0] * len(ids), ids, (*ways, *across))
    for at in sorted(range(len(ids)), key=lambda at: -made[at]):
        if at in begun and not labels[at]:
            labels[at] = {begun[at]}
        for to in consumers[at]:
            labels[to] |= labels[at]
    return labels


def _numbered(labels: Mapping[int, set[int]]) -> dict[int, int]:
    """Return labels counted from 0, of those that are there; none if all are one."""
    found = {node: next(iter(own)) for node, own in labels.items()}
    numbers = {label: number for number, label in enumerate(sorted({*found.values()}))}
    if len(numbers) < 2:
        return {}
    return {node: numbers[label] for node, label in found.items()}
