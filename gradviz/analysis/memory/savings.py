"""Savings at a peak of memory: dispensable holdings.

These are upper bounds: what a change really saves depends on what it makes instead.
"""

from collections import defaultdict
from collections.abc import Iterator, Mapping
from typing import Final, Literal, TypeAlias

import msgspec
import numpy as np
import numpy.typing as npt

from gradviz.analysis.memory.allocations import HoldingKind, Holdings
from gradviz.analysis.tables.executions import MAX_TEXT, definition
from gradviz.analysis.tables.window import is_inside_a_pass
from gradviz.trace.format.model import NodeDefinition, Trace
from gradviz.trace.format.strings import shortened
from gradviz.trace.format.table import Column, different

#: Savings below this share of all that is held are not told.
LEAST_SHARE: Final = 0.01

#: Maximum number of savings told.
MAX_SAVINGS: Final = 6

#: A checkpoint over fewer nodes than this saves nothing: it keeps what they are given.
MIN_NODES: Final = 2

#: Nodes that keep only their inputs already.
_CHECKPOINTS: Final = frozenset({"CheckpointFunctionBackward"})

Means: TypeAlias = Literal[
    "checkpoint", "earlier dependency", "no retain_graph", "let go"
]


class Saving(msgspec.Struct, frozen=True, kw_only=True):
    """One thing that would lower the peak.

    Attributes:
        means: Remedy: a checkpoint around what is called `where`; see that the gradient
            from `other` comes earlier; call backward at `where` without
            ``retain_graph``; drop the last reference to a graph that was made there.
        size_bytes: Most bytes that it saves.
        num_nodes: Number of nodes that hold these.
        where: A part of a model, or a line of the program; empty if not known.
        node: The one that holds it longest, or that waits.
        name: Its name.
        other: The node that is waited for, -1 where none is.
        other_name: Its name.
        index: The place of `node` in the execution order; None if it did not run.
        other_index: That of `other`.
        after_ns: Time from the peak until `node` lets go, or `other` is done; None if
            the trace does not have that.
    """

    means: Means
    size_bytes: int
    num_nodes: int
    where: str
    node: int
    name: str
    other: int = -1
    other_name: str = ""
    index: int | None = None
    other_index: int | None = None
    after_ns: int | None = None


def savings(
    trace: Trace, held: Holdings, t_ns: Column, peak: int, index: Mapping[int, int]
) -> tuple[Saving, ...]:
    """Return ways to hold less right after event `peak`, the best first.

    Nodes have the places in the execution order that `index` has for them.
    """
    now = held.at(np.flatnonzero((held.begin <= peak) & (held.end > peak)))
    found = [
        *_checkpoints(trace, now, t_ns, peak),
        *_late(trace, now, t_ns, peak),
        *_kept(trace, now, t_ns, peak),
        *_unclaimed(trace, now),
    ]
    least = LEAST_SHARE * int(now.size_bytes.sum())
    told = [one for one in found if one.size_bytes >= least]
    # Savings that may not exist come last.
    told.sort(key=lambda one: (one.means == "let go", -one.size_bytes))
    return tuple(
        msgspec.structs.replace(
            one, index=index.get(one.node), other_index=index.get(one.other)
        )
        for one in told[:MAX_SAVINGS]
    )


def _checkpoints(
    trace: Trace, now: Holdings, t_ns: Column, peak: int
) -> Iterator[Saving]:
    """Parts of a model of which several nodes hold saved tensors that they will use."""
    is_saved = (now.kind == HoldingKind.SAVED) & ~_has_run(trace, now, peak)
    # Tensors made inside a pass are recomputed already, or belong to its own graph.
    saved = now.at(np.flatnonzero(is_saved & ~is_inside_a_pass(trace, now.begin)))
    groups: dict[str, list[int]] = defaultdict(list)
    for place, node in enumerate(saved.node.tolist()):
        known = definition(trace, node)
        if known.name not in _CHECKPOINTS:
            groups[known.module or known.location].append(place)
    # A layer of one node alone goes with the part of the model that it belongs to.
    for path in sorted(groups, key=lambda one: -one.count(".")):
        outer = path.rpartition(".")[0]
        if len(groups[path]) < MIN_NODES and outer and ":" not in path:
            groups[outer] += groups.pop(path)
    for where, places in groups.items():
        if len(places) >= MIN_NODES and where:
            mine = saved.at(np.array(places))
            yield _saving(trace, mine, "checkpoint", where, t_ns, peak)


def _late(trace: Trace, now: Holdings, t_ns: Column, peak: int) -> Iterator[Saving]:
    """Yield gradients with nodes that still wait for another one."""
    waiting = now.at(np.flatnonzero(now.kind == HoldingKind.BUFFER))
    arrivals = trace.columns["gradient_buffered"]
    is_later = (arrivals.narrow("seq") > peak) & (arrivals.narrow("remaining") == 0)
    later = arrivals.at(is_later & np.isin(arrivals.narrow("node"), waiting.node))
    last = {
        (task, node): (seq, producer)
        for task, node, seq, producer in later.rows("task", "node", "seq", "producer")
    }
    groups: dict[tuple[int, int], int] = defaultdict(int)
    for task, node, size in zip(
        *(one.tolist() for one in (waiting.task, waiting.node, waiting.size_bytes)),
        strict=True,
    ):
        groups[task, node] += size
    for key, size in groups.items():
        if key in last:
            seq, producer = last[key]
            known = definition(trace, key[1])
            yield Saving(
                means="earlier dependency",
                size_bytes=size,
                num_nodes=1,
                where=known.location,
                node=key[1],
                name=known.name,
                other=producer,
                other_name=definition(trace, producer).name,
                after_ns=int(t_ns[seq] - t_ns[peak]),
            )


def _kept(trace: Trace, now: Holdings, t_ns: Column, peak: int) -> Iterator[Saving]:
    """Saved tensors that a pass has used and kept, by that pass."""
    is_saved = now.kind == HoldingKind.SAVED
    used = now.at(np.flatnonzero(is_saved & _has_run(trace, now, peak)))
    freed = trace.columns["buffer_freed"]
    is_earlier = (freed["seq"] <= peak) & np.isin(freed.narrow("node"), used.node)
    rows = freed.at(is_earlier).rows("node", "task")
    last_pass = {node: task for node, task in rows}  # noqa: C416 - typed so
    groups: dict[int, list[int]] = defaultdict(list)
    for place, node in enumerate(used.node.tolist()):
        groups[last_pass[node]].append(place)
    begun = trace.columns["task_begun"]
    lines = begun.rows("task", "location")
    where = {task: line for task, line in lines}  # noqa: C416 - typed so
    for task, places in groups.items():
        line = trace.strings[where[task]] if where.get(task, -1) >= 0 else ""
        mine = used.at(np.array(places))
        yield _saving(trace, mine, "no retain_graph", line, t_ns, peak)


def _unclaimed(trace: Trace, now: Holdings) -> Iterator[Saving]:
    """Yield memory held for no visible reason; ``.grad`` usually shall be."""
    names, place = trace.nodes.names(now.node)
    is_leaf = np.array([name == "AccumulateGrad" for name in names], np.bool_)[place]
    is_meant = (now.kind == HoldingKind.UNCLAIMED) & ~is_leaf
    left = now.at(np.flatnonzero(is_meant))
    if len(left.node):
        most = definition(trace, int(left.node[left.size_bytes.argmax()]))
        yield Saving(
            means="let go",
            size_bytes=int(left.size_bytes.sum()),
            num_nodes=len(different(left.node)),
            where=made_at(trace, most),
            node=most.id,
            name=most.name,
        )


def made_at(trace: Trace, node: NodeDefinition) -> str:
    """The line that made a node, though it has no definition: no pass reached it."""
    if node.location:
        return node.location
    created = trace.columns["node_created"]
    lines = created["location"][created.narrow("node") == node.id]
    return shortened(trace.strings[int(lines[0])], MAX_TEXT) if len(lines) else ""


def _has_run(trace: Trace, now: Holdings, peak: int) -> npt.NDArray[np.bool_]:
    """Return whether each node has run by then, and so used its saved tensors."""
    freed = trace.columns["buffer_freed"]
    return np.isin(now.node, freed["node"][freed["seq"] <= peak])


def _saving(
    trace: Trace, held: Holdings, means: Means, where: str, t_ns: Column, peak: int
) -> Saving:
    end = int(held.end.max())
    known = definition(trace, int(held.node[held.end.argmax()]))
    return Saving(
        means=means,
        size_bytes=int(held.size_bytes.sum()),
        num_nodes=len(different(held.node)),
        where=where,
        node=known.id,
        name=known.name,
        after_ns=int(t_ns[end] - t_ns[peak]) if end < len(t_ns) else None,
    )
