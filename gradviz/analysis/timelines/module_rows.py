"""The rows of modules in a backward pass, as the forward has them.

A call of a module is an event, its backward is none: nodes tell which module made them.
A module's span goes from the first to the last of its nodes that run one after the
other on one thread, so it is inferred.
"""

from collections import defaultdict
from collections.abc import Collection, Iterator, Mapping, Sequence
from typing import Final, NamedTuple

import numpy as np
from msgspec.structs import replace

from gradviz.analysis.graphs.backward_graph import LEAF
from gradviz.analysis.timelines.timeline_lanes import Lane, Timeline, nested
from gradviz.analysis.timelines.timeline_spans import MAX_CALL_ROWS, Span
from gradviz.trace.format.model import Trace
from gradviz.trace.format.table import different

#: Modules in modules, as far as anybody writes them.
_MAX_DEPTH: Final = 64


class _Open(NamedTuple):
    """A module whose nodes are running.

    Attributes:
        path: The module.
        first: Its first node.
    """

    path: str
    first: Span


def with_module_rows(trace: Trace, timeline: Timeline) -> Timeline:
    """Add to each pass of a timeline a span for each module, above its nodes.

    Each node gets its module as well.

    Args:
        trace: The trace.
        timeline: Its timeline.
    """
    ids = sorted({one.node for lane in timeline.lanes for one in lane.spans} - {-1})
    modules = _modules(trace, ids)
    if not any(modules.values()):
        return timeline
    called = _called(trace)
    lanes = [_with_rows(lane, modules, called) for lane in timeline.lanes]
    return replace(timeline, lanes=tuple(lanes))


def _modules(trace: Trace, ids: Sequence[int]) -> dict[int, str]:
    """Return the module of each node; of a leaf that which holds the parameter."""
    nodes = np.array(ids, np.int64)
    paths, path = trace.nodes.names(nodes, "module")
    leaves, leaf = trace.nodes.names(nodes, "parameter")
    found = {}
    for node, where, which in zip(ids, path.tolist(), leaf.tolist(), strict=True):
        module, parameter = paths[where], leaves[which].partition("\n")[0]
        module = "" if module == "?" else module
        found[node] = module or parameter.rpartition(".")[0]
    return found


def _called(trace: Trace) -> frozenset[str]:
    """Return the modules whose calls were recorded."""
    places = different(trace.columns["forward_begun"].narrow("module")).tolist()
    return frozenset(trace.strings[place] for place in places)


def _rows_of(module: str, called: Collection[str]) -> list[str]:
    """Return the modules around a node's, the outermost first, that have rows.

    Those that were called, if any call is known, as in the forward.
    """
    parts = module.split(".", _MAX_DEPTH) if module else []
    paths = [".".join(parts[:end]) for end in range(1, len(parts) + 1)]
    return [one for one in paths if not called or one in called][:MAX_CALL_ROWS]


def _with_rows(lane: Lane, modules: Mapping[int, str], called: Collection[str]) -> Lane:
    """Return a lane with the rows of the modules of each pass."""
    spans = [
        replace(one, row=0, module=modules.get(one.node, "")) for one in lane.spans
    ]
    by_pass: dict[int, list[Span]] = defaultdict(list)
    for one in spans:
        if one.kind == "node":
            by_pass[one.task].append(one)
    rows = [
        span
        for nodes in by_pass.values()
        for span in _stretches(nodes, modules, called)
    ]
    if not rows:
        return replace(lane, spans=nested(spans))
    # Of equal times the outer one comes first.
    every = nested([*rows, *spans])
    return replace(lane, spans=every, num_rows=1 + max(one.row for one in every))


def _stretches(
    nodes: Sequence[Span], modules: Mapping[int, str], called: Collection[str]
) -> Iterator[Span]:
    """Yield a span for each module of which nodes run one after the other."""
    open_ones: list[_Open] = []
    last: Span | None = None
    for node in nodes:  # in order of start
        module = modules.get(node.node, "")
        if last is not None and not module and node.name == LEAF:
            last = node  # whose it is nobody says: it belongs to the node before
            continue
        wanted = _rows_of(module, called)
        kept = 0
        for one, path in zip(open_ones, wanted, strict=False):
            if one.path != path:
                break
            kept += 1
        if last is not None:
            yield from (_span(one, last) for one in open_ones[kept:])
        del open_ones[kept:]
        open_ones += [_Open(path, node) for path in wanted[kept:]]
        last = node
    if last is not None:
        yield from (_span(one, last) for one in open_ones)


def _span(one: _Open, last: Span) -> Span:
    return replace(
        one.first,
        kind="module",
        node=-1,
        index=-1,
        name=one.path,
        module=one.path,
        device="",
        end_ns=max(last.end_ns, one.first.end_ns),
        waited_ns=None,
        status="completed",
        error="",
        thread_time_ns=None,
        parameters=(),
    )
