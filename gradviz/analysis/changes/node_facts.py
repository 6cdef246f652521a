"""Facts about the nodes of a pass beyond its graph: saved bytes, hooks, waits.

They depend on the program alone, so two runs of one program have the same. What a trace
cannot tell is None.
"""

from collections import Counter, defaultdict
from collections.abc import Iterator, Mapping, Sequence
from typing import Final, NamedTuple

import numpy as np

from gradviz.analysis.memory.saved_shares import unknown_nodes
from gradviz.analysis.tables.executions import execution_columns
from gradviz.analysis.tables.hook_calls import UNKNOWN, hook_calls
from gradviz.analysis.tables.passes import pass_parts
from gradviz.trace.format.model import Trace
from gradviz.trace.format.table import Table, different

#: Stands for the pass itself, outside of any node.
THE_PASS: Final = -1

#: A kind of event and what it says of a node.
_WAITS: Final = {
    "stream_synchronized": "host waits for a stream",
    "device_synchronized": "host waits for a device",
    "event_synchronized": "host waits for an event",
    "stream_waited": "stream waits for another",
}


class NodeFacts(NamedTuple):
    """Facts about the nodes of a pass, by node id.

    Attributes:
        saved: Bytes that each node saved; None for a node of which that is unknown.
        hooks: Hooks that ran at each node, in their order, as ``kind function``; None
            if the trace leaves hooks out.
        waits: Waits of the host and of streams at each node, as ``what`` and, if there
            are several, their number; those outside of any node are at `THE_PASS`.
            None if the trace leaves them out.
    """

    saved: Mapping[int, int | None]
    hooks: Mapping[int, tuple[str, ...]] | None
    waits: Mapping[int, tuple[str, ...]] | None


def node_facts(trace: Trace, parts: Sequence[int], nodes: Sequence[int]) -> NodeFacts:
    """Return the facts about some nodes of a pass.

    Args:
        trace: The trace.
        parts: The parts of the pass.
        nodes: Its nodes.
    """
    left_out = trace.header.scope.left_out
    return NodeFacts(
        saved=_saved(trace, parts, nodes),
        hooks=None if "hook_called" in left_out else _hooks(trace, parts),
        waits=None if {*_WAITS}.intersection(left_out) else _waits(trace, parts),
    )


def _saved(
    trace: Trace, parts: Sequence[int], nodes: Sequence[int]
) -> Mapping[int, int | None]:
    rows = trace.columns["tensor_saved"]
    rows = rows.at(np.isin(rows["node"], np.array(nodes, np.int64)))
    total: dict[int, int | None] = dict.fromkeys(nodes, 0)
    for node, size_bytes in rows.rows("node", "size_bytes"):
        total[node] = (total[node] or 0) + max(size_bytes, 0)
    total.update(dict.fromkeys(unknown_nodes(trace, parts).tolist()))
    return total


def _hooks(trace: Trace, parts: Sequence[int]) -> Mapping[int, tuple[str, ...]]:
    found: dict[int, list[str]] = defaultdict(list)
    for one in hook_calls(trace, parts):
        found[one.node].append(f"{one.kind} {one.function or UNKNOWN}")
    return {node: tuple(names) for node, names in found.items()}


def _waits(trace: Trace, parts: Sequence[int]) -> Mapping[int, tuple[str, ...]]:
    found: dict[int, Counter[str]] = defaultdict(Counter)
    for kind, what in _WAITS.items():
        rows = trace.columns[kind]
        told = rows.having("task", parts)["node"].tolist()
        untold = _waiting_nodes(trace, parts, rows.having("task", [-1]))
        for node in (*told, *untold):
            found[max(node, THE_PASS)][what] += 1
    return {
        node: tuple(
            what if many == 1 else f"{what} x{many}" for what, many in waits.items()
        )
        for node, waits in found.items()
    }


def _waiting_nodes(trace: Trace, parts: Sequence[int], waits: Table) -> Iterator[int]:
    """Yield the node of a pass that each wait was inside of, or `THE_PASS`.

    Our own devices know of no nodes: such a wait belongs to the node that its thread
    ran at that time. Between nodes it belongs to the pass if its caller waited.
    """
    if not waits.num_rows:
        return
    runs = execution_columns(trace, parts)
    whole = pass_parts(trace, tasks=parts)
    for thread in different(waits["thread"]).tolist():
        own = runs.at(np.flatnonzero(runs.thread == thread))
        called = [one for one in whole if one.thread == thread]
        for t_ns in waits["t_ns"][waits.narrow("thread") == thread].tolist():
            last = int(np.searchsorted(own.start_ns, t_ns)) - 1
            if last >= 0 and t_ns <= own.end_ns[last]:
                yield int(own.node[last])
            elif any(
                one.begin_ns < t_ns < (one.end_ns or one.begin_ns) for one in called
            ):
                yield THE_PASS
