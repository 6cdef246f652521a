"""Graphs that are kept, or built, in vain: needless memory.

What a program holds by its own references is not in a trace; what is said here follows
from which passes ran which nodes, and holds for what was recorded. So a trace from
which events are missing tells nothing of it.
"""

import itertools
from collections import defaultdict
from collections.abc import Iterator
from typing import Final, NamedTuple

import numpy as np
import numpy.typing as npt

from gradviz.analysis.memory.finding import CostlyFinding
from gradviz.analysis.tables.executions import MAX_TEXT
from gradviz.analysis.tables.spans import following, in_order, last_events
from gradviz.analysis.tables.window import is_inside_a_pass, outermost_passes
from gradviz.trace.format.model import Trace
from gradviz.trace.format.strings import shortened
from gradviz.trace.format.table import Column, Table, different

#: Nodes that no pass reaches are told if they saved this part of all that was saved.
LEAST_UNUSED: Final = 0.1

#: Minimum number of passes in a row that do not use a graph before it is reported.
#: Parts of a batch, each with a pass of its own, are fewer.
MIN_PASSES: Final = 12

#: Passes of so many lines are looked at.
MAX_LINES: Final = 100

#: A graph that got larger in so many passes in a row, all of which ran it, grows.
MIN_GROWTH: Final = 5


class _Savers(NamedTuple):
    """Nodes that saved tensors: their ids, sorted, and how much each saved."""

    node: Column
    size_bytes: Column

    def of(self, nodes: Column) -> Column:
        """Return the bytes saved by each of some nodes."""
        if not len(self.node):
            return np.zeros(len(nodes), np.int64)
        place = np.minimum(np.searchsorted(self.node, nodes), len(self.node) - 1)
        return np.where(self.node[place] == nodes, self.size_bytes[place], 0)


def needless_retain_graph(trace: Trace) -> Iterator[CostlyFinding]:
    """Passes that kept their graph, of which no node that saved tensors ran again.

    All passes that were called at one line together: if one of them needs it, the line
    does.
    """
    savers, begun = _savers(trace), trace.columns["task_begun"]
    is_meant = (begun["keep_graph"] != 0) & (begun["create_graph"] == 0)
    runs, has_next = _runs_of_savers(trace, savers)
    for line, tasks in _by_line(begun.at(is_meant)).items():
        mine = np.isin(runs["task"], tasks)
        size_bytes = savers.of(runs["node"][mine])
        if len(size_bytes) and not has_next[mine].any():
            yield CostlyFinding(
                rule="needless_retain_graph",
                certainty="certain",
                location=line_of(trace, line),
                cost_bytes=_most(runs["task"][mine], size_bytes),
                times=len(tasks),
                task=tasks[-1],
                count=len(size_bytes),
            )


def needless_create_graph(trace: Trace) -> Iterator[CostlyFinding]:
    """Passes that made a graph of themselves, of which no pass ran a node.

    All passes that were called at one line together.
    """
    columns, savers = trace.columns, _savers(trace)
    begun, created = columns["task_begun"], columns["node_created"]
    created = created.at(created.narrow("sequence_nr") >= 0)
    seqs, ran = created["seq"], _has_run(trace, created["node"])
    last = dict(zip(*(one.tolist() for one in last_events(trace)), strict=True))
    began = begun["seq"]
    is_meant = begun["create_graph"] != 0
    for line, tasks in _by_line(begun.at(is_meant)).items():
        # The first pass of an id begins where it is: a recording has each id once.
        begins = began[np.isin(begun["task"], tasks)]
        ends = np.array([last[task] for task in tasks])
        first, after = np.searchsorted(seqs, begins), np.searchsorted(seqs, ends)
        made = [np.arange(low, high) for low, high in zip(first, after, strict=True)]
        places = different(np.concatenate(made)) if made else np.empty(0, np.int64)
        if len(places) and not ran[places].any():
            yield CostlyFinding(
                rule="needless_create_graph",
                certainty="certain",
                location=line_of(trace, line),
                cost_bytes=int(savers.of(created["node"][places]).sum()),
                times=len(tasks),
                task=tasks[-1],
                count=len(places),
            )


def graph_never_run(trace: Trace) -> Iterator[CostlyFinding]:
    """Nodes that the program made outside of passes, and that no pass ever reached.

    Of those that were made after the last pass, one may only not have been recorded.
    """
    columns, savers = trace.columns, _savers(trace)
    created = columns["node_created"]
    created = created.at(created.narrow("sequence_nr") >= 0)
    names, place = trace.nodes.names(created["node"])
    is_unknown = np.array([name == "?" for name in names], np.bool_)[place]
    created = created.at(is_unknown & ~is_inside_a_pass(trace, created["seq"]))
    created = created.at(~_calls_passes(trace, created["location"]))
    size_bytes = savers.of(created["node"])
    total = int(size_bytes.sum())
    _, ends = outermost_passes(trace)
    is_before = created["seq"] < ends.max(initial=-1)
    is_certain = int(size_bytes[is_before].sum()) >= LEAST_UNUSED * total
    if len(ends) and total and total >= LEAST_UNUSED * int(savers.size_bytes.sum()):
        lines, by_line = np.unique(created["location"], return_inverse=True)
        most = np.bincount(by_line, size_bytes).argmax()
        yield CostlyFinding(
            rule="graph_never_run",
            certainty="certain" if is_certain else "likely",
            location=line_of(trace, int(lines[most])),
            cost_bytes=total,
            node=int(created["node"][size_bytes.argmax()]),
            count=created.num_rows,
        )


def graph_held_over(trace: Trace) -> Iterator[CostlyFinding]:
    """Saved tensors that many passes in a row did not use, until a later one did."""
    columns, savers = trace.columns, _savers(trace)
    outer = outermost_passes(trace)
    runs, _ = _runs_of_savers(trace, savers)
    saved = columns["tensor_saved"]
    uses = in_order(saved, runs)
    place = following(uses, runs, ("node",))
    used = place >= 0
    since, until = uses["seq"][used], runs["seq"][place[used]]
    nodes = uses["node"][used]
    # Passes that began after the one moment and ended before the other.
    begins, ends = outer
    num = np.searchsorted(ends, until) - np.searchsorted(begins, since)
    is_long = (num >= MIN_PASSES) & ~_calls_passes(trace, lines_of(trace, nodes))
    if is_long.any():
        held = different(nodes[is_long])
        size_bytes = savers.of(held)
        node = int(held[size_bytes.argmax()])
        yield CostlyFinding(
            rule="graph_held_over",
            certainty="certain",
            location=line_of(trace, int(lines_of(trace, np.array([node]))[0])),
            cost_bytes=int(size_bytes.sum()),
            times=int(num.max()),
            node=node,
            name=trace.nodes[node].name if node in trace.nodes else "?",
            count=len(held),
        )


def graph_grows(trace: Trace) -> Iterator[CostlyFinding]:
    """Yield passes from one line that each rerun the previous ones' nodes, and more."""
    columns, savers = trace.columns, _savers(trace)
    counted = columns["dependencies_counted"]
    num_nodes = dict(
        zip(counted["task"].tolist(), counted["num_nodes"].tolist(), strict=True)
    )
    runs, _ = _runs_of_savers(trace, savers)
    _, first = np.unique(runs["node"], return_index=True)
    is_again = np.ones(runs.num_rows, np.bool_)
    is_again[first] = False
    again = runs.at(is_again)
    for line, tasks in _by_line(columns["task_begun"]).items():
        if len(tasks) <= MIN_GROWTH:
            continue
        sizes = np.array([num_nodes.get(task, 0) for task in tasks])
        grew = (np.diff(sizes) > 0) & np.isin(tasks[1:], again["task"])
        # Where `MIN_GROWTH` of them stand in a row.
        in_a_row = np.convolve(grew, np.ones(MIN_GROWTH, np.int64), "valid")
        if len(in_a_row) and in_a_row.max() == MIN_GROWTH:
            final = tasks[int(np.flatnonzero(grew)[-1]) + 1]
            nodes = again["node"][again["task"] == final]
            yield CostlyFinding(
                rule="graph_grows",
                certainty="certain",
                location=line_of(trace, line),
                cost_bytes=int(savers.of(nodes).sum()),
                times=int(grew.sum()),
                task=final,
                count=len(nodes),
            )


def _savers(trace: Trace) -> _Savers:
    rows = trace.columns["tensor_saved"]
    nodes, place = np.unique(rows["node"], return_inverse=True)
    total = np.zeros(len(nodes), np.int64)
    np.add.at(total, place, np.maximum(rows["size_bytes"], 0))
    return _Savers(nodes[total > 0], total[total > 0])


def _runs_of_savers(
    trace: Trace, savers: _Savers
) -> tuple[Table, npt.NDArray[np.bool_]]:
    """Each time that such a node ran, and whether it ran again later."""
    started = trace.columns["node_started"]
    runs = started.at(np.isin(started.narrow("node"), savers.node))
    return runs, following(runs, runs, ("node",)) >= 0


def _has_run(trace: Trace, nodes: Column) -> npt.NDArray[np.bool_]:
    return np.isin(nodes, trace.columns["node_started"].narrow("node"))


def _by_line(begun: Table) -> dict[int, list[int]]:
    """Passes by the line that called them: a place in the trace's strings."""
    found: dict[int, list[int]] = defaultdict(list)
    for line, task in begun.rows("location", "task"):
        found[line].append(task)
    return dict(itertools.islice(found.items(), MAX_LINES))


def _calls_passes(trace: Trace, lines: Column) -> npt.NDArray[np.bool_]:
    """Return whether lines call passes, such as ``gv.autograd.gradcheck``.

    What is built there is a matter of the function that is called.
    """
    return np.isin(lines, trace.columns["task_begun"].narrow("location"))


def _most(tasks: Column, size_bytes: Column) -> int:
    """The most that one pass has."""
    _, place = np.unique(tasks, return_inverse=True)
    return int(np.bincount(place, size_bytes).max(initial=0))


def lines_of(trace: Trace, nodes: Column) -> Column:
    """The lines that made some nodes, as places in the strings of a trace; or -1."""
    created = trace.columns["node_created"]
    order = np.argsort(created["node"], kind="stable")
    known = np.append(created["node"][order], -1)
    lines = np.append(created["location"][order], -1)
    place = np.searchsorted(known[:-1], nodes)
    return np.where(known[place] == nodes, lines[place], -1)


def line_of(trace: Trace, place: int) -> str:
    """The line that a place in the strings of a trace stands for, empty for -1."""
    return shortened(trace.strings[place], MAX_TEXT) if place >= 0 else ""
