"""Saved tensors by their savers: nodes, ops, parts of a model and lines.

Note [What is unknown of memory]
~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~
A purpose is unknown where nothing was seen that could tell of it: its events were left
out of the recording, the nodes that ran were made before it, or a pass was not seen to
run at all. Then it is None, never 0. Where some nodes are known the figure is of those,
and `num_unknown` says how many are missing.
"""

from collections import defaultdict
from collections.abc import Sequence
from typing import Final, Literal

import msgspec
import numpy as np

from gradviz.analysis.memory.allocations import HoldingKind, Holdings
from gradviz.analysis.tables.executions import MAX_TEXT
from gradviz.analysis.tables.saved_bytes import is_unknown, passes_that_tell
from gradviz.analysis.tables.window import EventRange
from gradviz.trace.format.model import Trace
from gradviz.trace.format.strings import shortened
from gradviz.trace.format.table import Column, different

#: Maximum number of each told, those that saved most.
MAX_SHARES: Final = 20

#: Without these kinds of events nothing is known of a purpose.
_TELL: Final = {
    HoldingKind.SAVED: ("tensor_saved",),
    HoldingKind.BUFFER: ("gradient_buffered", "task_pushed", "buffer_freed"),
    HoldingKind.GRADIENT: ("gradient_accumulated", "buffer_freed"),
    HoldingKind.RESULT: ("gradient_buffered", "task_pushed", "capture_taken"),
}


class SavedShare(msgspec.Struct, frozen=True, kw_only=True):
    """Saved tensors of a node, or of nodes with something in common.

    Attributes:
        name: The node's name, its op, part of a model or line; empty if not known.
        node: The node, None for several that have the name in common.
        size_bytes: Number of bytes that they saved.
        num_nodes: Number of these nodes.
    """

    name: str
    size_bytes: int
    num_nodes: int
    node: int | None = None


class SavedTensors(msgspec.Struct, frozen=True, kw_only=True):
    """Tensors that were saved while some passes ran, or before; each memory once.

    Attributes:
        size_bytes: All that only graphs hold; None if nothing is known.
        parameter_bytes: Besides, what parameters, other leaves and buffers of modules
            hold anyway; None if that is not told apart.
        shared_bytes: Besides, tensors in memory that counts for another one, such as
            views; likewise.
        num_unknown: Nodes that ran and of which it is not known what they saved.
        by_node: The nodes that saved most, and how much of `size_bytes`.
        by_op: The same by the nodes' names.
        by_module: By the part of the model that made them.
        by_line: By the line of the program that did.
    """

    size_bytes: int | None
    parameter_bytes: int | None
    shared_bytes: int | None
    num_unknown: int
    by_node: tuple[SavedShare, ...]
    by_op: tuple[SavedShare, ...]
    by_module: tuple[SavedShare, ...]
    by_line: tuple[SavedShare, ...]


def saved_tensors(
    trace: Trace, held: Holdings, tasks: Sequence[int], window: EventRange
) -> SavedTensors:
    """Sum up the tensors saved while some passes ran, by their savers."""
    is_meant = held.kind == HoldingKind.SAVED
    is_meant &= (held.begin <= window.last) & (held.end > window.first)
    nodes, place = np.unique(held.node[is_meant], return_inverse=True)
    sizes = np.zeros(len(nodes), np.int64)
    np.add.at(sizes, place, held.size_bytes[is_meant])
    unknown = unknown_nodes(trace, tasks)
    elsewhere = _elsewhere(trace, tasks, nodes)

    def by(of: Literal["name", "module", "location"]) -> tuple[SavedShare, ...]:
        return _shares(*_cut_names(trace, nodes, of), sizes)

    names, called = _cut_names(trace, nodes, "name")
    order = np.argsort(-sizes, kind="stable")[:MAX_SHARES].tolist()
    return SavedTensors(
        size_bytes=None if len(unknown) and not len(nodes) else int(sizes.sum()),
        parameter_bytes=None if elsewhere is None else elsewhere[0],
        shared_bytes=None if elsewhere is None else elsewhere[1],
        num_unknown=len(unknown),
        by_node=tuple(
            SavedShare(
                name=names[called[one]],
                size_bytes=int(sizes[one]),
                num_nodes=1,
                node=int(nodes[one]),
            )
            for one in order
        ),
        by_op=by("name"),
        by_module=by("module"),
        by_line=by("location"),
    )


def _cut_names(
    trace: Trace, nodes: Column, of: Literal["name", "module", "location"]
) -> tuple[list[str], Column]:
    """Return texts of nodes, each once and cut if it is long, and the place of each."""
    texts, place = trace.nodes.names(nodes, of)
    # A node without a definition has a name, but no module and no line.
    is_lost = of != "name"
    cut = ["" if is_lost and one == "?" else shortened(one, MAX_TEXT) for one in texts]
    return cut, place


def unknown_nodes(trace: Trace, tasks: Sequence[int]) -> Column:
    """Return the nodes that ran and may have saved something that is not known."""
    started = trace.columns["node_started"]
    mine = np.isin(started.narrow("task"), np.array(tasks, np.int64))
    ran = different(started["node"][mine])
    return ran[is_unknown(trace, ran)]


def unknown_purposes(
    trace: Trace, held: Holdings, tasks: Sequence[int], window: EventRange
) -> frozenset[HoldingKind]:
    """Return the purposes of which nothing is known while some passes ran."""
    scope, columns = trace.header.scope, trace.columns
    unknown = {
        kind for kind, needed in _TELL.items() if {*needed}.intersection(scope.left_out)
    }
    started = columns["node_started"]
    mine = np.isin(started.narrow("task"), np.array(tasks, np.int64))
    ran = started["node"][mine]
    counted = columns["dependencies_counted"]
    is_mine = np.isin(counted.narrow("task"), np.array(tasks, np.int64))
    if not len(ran) and (counted["num_nodes"][is_mine] > 0).any():
        unknown |= {HoldingKind.BUFFER, HoldingKind.GRADIENT, HoldingKind.RESULT}
    is_there = (held.begin <= window.last) & (held.end > window.first)
    kinds = {*held.kind[is_there].tolist()}
    if HoldingKind.SAVED not in kinds and len(unknown_nodes(trace, tasks)):
        unknown.add(HoldingKind.SAVED)
    names, place = trace.nodes.names(ran)
    is_leaf = np.array([name == "AccumulateGrad" for name in names], np.bool_)[place]
    told = [columns[kind]["node"] for kind in ("gradient_accumulated", "capture_taken")]
    if is_leaf.any() and not np.isin(ran[is_leaf], np.concatenate(told)).any():
        unknown.add(HoldingKind.GRADIENT)
    return frozenset(unknown)


def _elsewhere(
    trace: Trace, tasks: Sequence[int], nodes: Column
) -> tuple[int, int] | None:
    """Saved tensors of parameters, and those in memory that counts for others.

    Older traces of gradviz's own ops do not tell them apart: there each counts as a
    whole, and no event says otherwise.
    """
    started = trace.columns["node_started"]
    mine = np.isin(started.narrow("task"), np.array(tasks, np.int64))
    rows = trace.columns["saved_elsewhere"]
    is_meant = np.isin(rows["node"], nodes) | np.isin(
        rows["node"], started["node"][mine]
    )
    meant = rows.at(is_meant)
    is_told = np.isin(np.array(tasks, np.int64), passes_that_tell(trace)).any()
    if not len(meant["node"]) and not is_told:
        return None
    return int(meant["parameter_bytes"].sum()), int(meant["shared_bytes"].sum())


def _shares(
    names: Sequence[str], place: Column, sizes: Column
) -> tuple[SavedShare, ...]:
    """Sum up sizes by name, the largest first; `place` is that of the name of each."""
    sums = np.zeros(len(names), np.int64)
    np.add.at(sums, place, sizes)
    counts = np.bincount(place, minlength=len(names))
    total: dict[str, int] = defaultdict(int)
    count: dict[str, int] = defaultdict(int)
    # Two names may be the same once they are cut.
    for name, size, num in zip(names, sums.tolist(), counts.tolist(), strict=True):
        total[name] += size
        count[name] += num
    found = sorted(total.items(), key=lambda one: (-one[1], one[0]))
    return tuple(
        SavedShare(name=name, size_bytes=size, num_nodes=count[name])
        for name, size in found[:MAX_SHARES]
    )
