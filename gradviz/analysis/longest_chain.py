"""The longest chain of a pass: how long it would take with a thread for every node.

A node begins when it is pushed, and gives its gradients and pushes others as far into
its run as it did. It runs for as long as it ran itself, and the longest chains of the
passes that it called for. There is nothing between nodes, and no wait for a stream.
"""

from collections import defaultdict
from collections.abc import Mapping, Sequence
from typing import NamedTuple

import numpy as np

from gradviz.analysis.causes import Causes
from gradviz.analysis.lanes import Act
from gradviz.analysis.node_runs import NodeRuns


class _Gradient(NamedTuple):
    """From which node to which, and how long the former had run by then."""

    producer: int
    node: int
    after_ns: int


def longest_chain(causes: Causes, nodes: NodeRuns) -> int:
    """The longest chain of nodes in nanoseconds; never more than the pass took."""
    own_ns: dict[int, dict[int, int]] = defaultdict(dict)
    for task, node, took_ns in zip(
        causes.of_task[nodes.end].tolist(),
        causes.of_node[nodes.end].tolist(),
        nodes.own_ns.tolist(),
        strict=True,
    ):
        own_ns[task][node] = took_ns
    gradients: dict[int, list[_Gradient]] = defaultdict(list)
    is_given = causes.is_kind("gradient_buffered", "task_pushed") & (causes.by >= 0)
    given = np.flatnonzero(is_given)
    for task, *gradient in zip(
        causes.of_task[given].tolist(),
        causes.by[given].tolist(),
        causes.of_node[given].tolist(),
        nodes.so_far_ns[given].tolist(),
        strict=True,
    ):
        gradients[task].append(_Gradient(*gradient))
    inside: dict[tuple[int, int], int] = defaultdict(int)
    longest = 0
    # What was called from inside a pass has begun after it.
    for call in np.flatnonzero(causes.is_kind("task_begun"))[::-1].tolist():
        task = int(causes.of_task[call])
        called_ns = {node: inside[task, node] for node in own_ns[task]}
        longest = _chain(own_ns[task], called_ns, gradients[task])
        if causes.act[call] == Act.RUNNING:
            inside[int(causes.act_task[call]), int(causes.act_node[call])] += longest
    return longest


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
