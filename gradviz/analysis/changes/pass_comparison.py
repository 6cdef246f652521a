"""Comparison of two backward passes: nodes that appeared, vanished, changed, moved.

Nodes are matched by structure (`matching`), so nothing depends on ids, and of two
recordings no clocks are compared: only durations are, and each by the clock of its own.

Note [What counts as a difference]
~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~
A node that only one pass has; another device, other shapes or dtypes at its inputs,
other edges between nodes that both have, another end (it failed); another order in its
queue, where a queue chose differently: what timing alone explains is no difference, see
Note [What timing alone explains] of `turns`. Lines,
modules and names of parameters are told and do not count: they change whenever a file
is edited. Neither do durations: they differ in any two runs, and `usual_times` says
which differences are significant. Saved bytes, hooks and waits are told, for those who
ask about them (`conditions`), and do not count either.
"""

from collections import Counter, defaultdict
from collections.abc import Iterator, Mapping, Sequence
from itertools import zip_longest
from typing import Any, Final, NamedTuple

import msgspec
import numpy as np

from gradviz.analysis.changes.matching import Structure, longest_common_order, matched
from gradviz.analysis.changes.node_facts import THE_PASS, NodeFacts, node_facts
from gradviz.analysis.changes.turns import moved, turns_of
from gradviz.analysis.nodes.addresses import nodes_of
from gradviz.analysis.tables.executions import (
    Execution,
    NodeNumbers,
    as_list,
    definition,
    execution_columns,
)
from gradviz.analysis.tables.passes import Status, the_pass
from gradviz.analysis.training.usual_times import (
    UsualTime,
    UsualTimes,
    is_significant,
    usual_times,
)
from gradviz.errors import UserError
from gradviz.trace.format.model import InputDefinition, NodeDefinition, Trace
from gradviz.trace.format.strings import without_folders

SCHEMA: Final = "gradviz.comparison"
VERSION: Final = 1

#: Larger passes are not compared.
MAX_COMPARED_NODES: Final = 50_000
MAX_COMPARED_EDGES: Final = 200_000

#: Maximum number of differences of a kind that are told; all are counted.
MAX_DIFFERENCES_TOLD: Final = 1_000

#: Fields of which a difference is told and does not count.
UNCOUNTED: Final = frozenset(
    {"line", "module", "parameter", "saved bytes", "hooks", "waits"}
)

#: Passes that share fewer of their edges are two programs, if they are no tiny ones.
_MIN_SIMILARITY: Final = 0.2
_MIN_NODES: Final = 10

#: Of more inputs, and of more dimensions, the first are compared.
MAX_INPUTS: Final = 64


class TooLargeError(UserError):
    """A pass has too many nodes to be compared."""


class PlacedNode(msgspec.Struct, frozen=True, kw_only=True, gc=False):
    """A node of one of the passes.

    Attributes:
        node: Its id there.
        name: Its class.
        device: Device that it runs on.
        line: ``file:line`` that made it, empty if not known.
        module: The part of a model that made it, empty outside a model.
        place: Its place in the order in which its device ran, from 0; None if not run.
        index: Its place in the execution order of the pass; None if not run.
    """

    node: int
    name: str
    device: str
    line: str
    module: str
    place: int | None
    index: int | None = None


class FieldDifference(msgspec.Struct, frozen=True, gc=False):
    """A field of a node that differs, with both values."""

    field: str
    before: str
    after: str


class ChangedNode(msgspec.Struct, frozen=True, kw_only=True):
    """A node of both passes that differs in something."""

    before: PlacedNode
    after: PlacedNode
    differences: tuple[FieldDifference, ...]


class MovedNode(msgspec.Struct, frozen=True, kw_only=True, gc=False):
    """A node with another turn."""

    before: PlacedNode
    after: PlacedNode


class TimeDifference(msgspec.Struct, frozen=True, kw_only=True):
    """Durations of a node, or of the pass itself, in both.

    Attributes:
        before: The node, None for the pass; so `after`.
        after: Its partner.
        usual_before: Its usual duration there.
        usual_after: Its usual duration here.
        is_significant: True if they differ by more than they vary.
    """

    before: PlacedNode | None
    after: PlacedNode | None
    usual_before: UsualTime
    usual_after: UsualTime
    is_significant: bool


class ComparedPass(msgspec.Struct, frozen=True, kw_only=True):
    """One of both passes.

    Attributes:
        trace: The file it is from, empty for a recording in memory.
        task: Its id.
        status: Outcome of the pass.
        num_nodes: Number of its nodes, those that did not run included.
        num_edges: Number of edges between them.
        num_lost: Number of definitions of nodes that are lost.
        is_complete: True if no event is missing from its trace.
    """

    trace: str
    task: int
    status: Status
    num_nodes: int
    num_edges: int
    num_lost: int
    is_complete: bool = True


class Comparison(msgspec.Struct, frozen=True, kw_only=True):
    """Two passes compared.

    Attributes:
        before: The one.
        after: The other.
        num_matched: Number of nodes that both have.
        num_same_edges: Number of edges between these that both have.
        is_related: True if they have enough in common; if not, nothing else is told.
        vanished: Nodes that only the one has; `num_vanished` all.
        appeared: Nodes that only the other has; `num_appeared` all.
        changed: Nodes that differ; `num_changed` those that do in what counts.
        num_by_field: Number of nodes that differ in each field, in any gradient that
            they hand on as ``gradient``.
        passes_differ: Differences of the passes themselves, outside of any node.
        moved: Nodes that are not in the longest common order of their queue, if that
            chose differently; `num_moved` all.
        duration: Of the passes; None if one never ended.
        times: Of the nodes, significant ones first, then the largest differences.
        num_significant: Number of them that differ significantly.
    """

    before: ComparedPass
    after: ComparedPass
    num_matched: int
    num_same_edges: int
    is_related: bool
    vanished: tuple[PlacedNode, ...] = ()
    num_vanished: int = 0
    appeared: tuple[PlacedNode, ...] = ()
    num_appeared: int = 0
    changed: tuple[ChangedNode, ...] = ()
    num_changed: int = 0
    num_by_field: dict[str, int] = {}
    passes_differ: tuple[FieldDifference, ...] = ()
    moved: tuple[MovedNode, ...] = ()
    num_moved: int = 0
    duration: TimeDifference | None = None
    times: tuple[TimeDifference, ...] = ()
    num_significant: int = 0

    @property
    def is_same(self) -> bool:
        """True if there is no significant difference."""
        return self.is_related and not (
            self.num_vanished or self.num_appeared or self.num_changed or self.num_moved
        )

    @property
    def is_slower_or_faster(self) -> bool:
        """True if the passes took significantly different times."""
        return self.duration is not None and self.duration.is_significant


class PairedComparison(NamedTuple):
    """Two passes compared, and their nodes pair by pair.

    Attributes:
        comparison: The comparison.
        pairs: Each node that both passes have: the one's, then the other's.
    """

    comparison: Comparison
    pairs: tuple[tuple[PlacedNode, PlacedNode], ...]


def compare(before: Trace, task: int, after: Trace, other_task: int) -> Comparison:
    """Compare pass `task` of one trace with pass `other_task` of one, or the same.

    Raises:
        TooLargeError: One of them has too many nodes, or edges.
    """
    most = MAX_DIFFERENCES_TOLD
    return compare_paired(before, task, after, other_task, most=most).comparison


def compare_paired(
    before: Trace, task: int, after: Trace, other_task: int, *, most: int | None = None
) -> PairedComparison:
    """Compare two passes as `compare` does, and say which node is which.

    Args:
        before: The one trace.
        task: Its pass.
        after: The other trace, or the same.
        other_task: Its pass.
        most: Maximum number of differences of a kind; None: all.

    Raises:
        TooLargeError: One of them has too many nodes, or edges.
    """
    one, other = _Side(before, task), _Side(after, other_task)
    partner = matched(one.structure, other.structure)
    pairs = [(x, y) for x, y in enumerate(partner) if y >= 0]
    same_edges = _num_same_edges(one, other, partner)
    num_nodes = max(len(one.nodes), len(other.nodes))
    num_edges = max(one.num_edges, other.num_edges)
    share = same_edges / num_edges if num_edges else len(pairs) / max(num_nodes, 1)
    comparison = Comparison(
        before=one.described(),
        after=other.described(),
        num_matched=len(pairs),
        num_same_edges=same_edges,
        is_related=share >= _MIN_SIMILARITY or num_nodes < _MIN_NODES,
    )
    placed = tuple((one.placed(x), other.placed(y)) for x, y in pairs)
    if not comparison.is_related:
        return PairedComparison(comparison, placed)
    taken = set(partner)
    vanished = [one.placed(x) for x, y in enumerate(partner) if y < 0]
    appeared = [other.placed(y) for y in range(len(other.nodes)) if y not in taken]
    changed = list(_changed(one, other, partner, pairs))
    displaced = list(_moved(one, other, pairs))
    whole, times = _times(one, other, pairs)
    told = msgspec.structs.replace(
        comparison,
        vanished=tuple(vanished[:most]),
        num_vanished=len(vanished),
        appeared=tuple(appeared[:most]),
        num_appeared=len(appeared),
        changed=tuple(changed[:most]),
        num_changed=sum(
            any(part.field not in UNCOUNTED for part in each.differences)
            for each in changed
        ),
        num_by_field=_num_by_field(changed),
        passes_differ=tuple(_passes_differ(one, other)),
        moved=tuple(displaced[:most]),
        num_moved=len(displaced),
        duration=whole,
        times=tuple(times[:most]),
        num_significant=sum(each.is_significant for each in times),
    )
    return PairedComparison(told, placed)


def comparison_document(comparison: Comparison) -> dict[str, Any]:
    """Return the output of ``gradviz diff --json``."""
    return {
        "schema": SCHEMA,
        "version": VERSION,
        "is_same": comparison.is_same,
        "is_complete": comparison.before.is_complete and comparison.after.is_complete,
        **msgspec.to_builtins(comparison),
    }


class _Side:
    """One of both passes, its nodes in the order in which they were made."""

    def __init__(self, trace: Trace, task: int) -> None:
        # A damaged trace may have several of a number.
        self.trace, self.about = trace, the_pass(trace, task)
        self.task, parts = self.about.task, self.about.parts
        self.nodes = sorted({node for part in parts for node in nodes_of(trace, part)})
        if len(self.nodes) > MAX_COMPARED_NODES:
            raise TooLargeError(
                f"pass {task} has {len(self.nodes):,} nodes: passes of up to "
                f"{MAX_COMPARED_NODES:,} are compared"
            )
        self.definitions = [definition(trace, node) for node in self.nodes]
        num_edges = sum(len(one.edges) for one in self.definitions)
        if num_edges > MAX_COMPARED_EDGES:
            raise TooLargeError(
                f"pass {task} has {num_edges:,} edges: passes of up to "
                f"{MAX_COMPARED_EDGES:,} are compared"
            )
        place = {node: index for index, node in enumerate(self.nodes)}
        self.structure = Structure(
            [one.name for one in self.definitions],
            [
                [(place.get(to, -1), input_nr) for to, input_nr in one.edges]
                for one in self.definitions
            ],
        )
        self.num_edges = sum(
            to >= 0 for edges in self.structure.edges for to, _ in edges
        )
        runs = as_list(trace, execution_columns(trace, parts))
        self._numbers = NodeNumbers(trace, [self.task]).of_pass(self.task)
        self.runs: Mapping[int, Execution] = {place[run.node]: run for run in runs}
        self.turns = turns_of(trace, parts, self.nodes)
        self.facts: NodeFacts = node_facts(trace, parts, self.nodes)
        self.order: dict[str, list[int]] = defaultdict(list)
        self._turn: dict[int, int] = {}
        for index in self.runs:
            order = self.order[self.definitions[index].device]
            self._turn[index] = len(order)
            order.append(index)

    def usual_times(self, *, alone: bool = False) -> UsualTimes:
        """Duration of the pass, and of each node of it on all workers."""
        whole, *parts = (
            usual_times(self.trace, part, alone=alone) for part in self.about.parts
        )
        nodes = {node: usual for part in parts for node, usual in part.nodes.items()}
        return whole._replace(nodes={**whole.nodes, **nodes})

    def described(self) -> ComparedPass:
        return ComparedPass(
            trace=str(self.trace.path or ""),
            task=self.task,
            status=self.about.status,
            num_nodes=len(self.nodes),
            num_edges=self.num_edges,
            num_lost=sum(node not in self.trace.nodes for node in self.nodes),
            is_complete=self.trace.losses.is_complete,
        )

    def placed(self, index: int) -> PlacedNode:
        about = self.definitions[index]
        return PlacedNode(
            node=about.id,
            name=about.name,
            device=about.device,
            line=_line(about),
            module=about.module,
            place=self._turn.get(index),
            index=self._numbers.get(about.id),
        )

    def end_of(self, index: int) -> str:
        """Return the ending of the node, in a word."""
        run = self.runs.get(index)
        return "not run" if run is None else run.status


def _num_same_edges(one: _Side, other: _Side, partner: Sequence[int]) -> int:
    """Return the number of edges of matched nodes that both have."""
    found = 0
    for index, edges in enumerate(one.structure.edges):
        if partner[index] >= 0:
            theirs = set(other.structure.edges[partner[index]])
            found += sum(
                to >= 0 and partner[to] >= 0 and (partner[to], input_nr) in theirs
                for to, input_nr in set(edges)
            )
    return found


def _changed(
    one: _Side, other: _Side, partner: Sequence[int], pairs: Sequence[tuple[int, int]]
) -> Iterator[ChangedNode]:
    taken = {y: x for x, y in pairs}
    for x, y in pairs:
        a, b = one.definitions[x], other.definitions[y]
        fields = [
            ("device", a.device, b.device),
            ("inputs", _inputs(a), _inputs(b)),
            ("end", one.end_of(x), other.end_of(y)),
            ("line", _line(a), _line(b)),
            ("module", a.module, b.module),
            ("parameter", ", ".join(a.parameters), ", ".join(b.parameters)),
            *_facts(one, other, x, y),
            *_edges(one, other, partner, taken, (x, y)),
        ]
        differences = tuple(
            FieldDifference(*field) for field in fields if field[1] != field[2]
        )
        if differences:
            yield ChangedNode(
                before=one.placed(x), after=other.placed(y), differences=differences
            )


def _facts(one: _Side, other: _Side, x: int, y: int) -> Iterator[tuple[str, str, str]]:
    """Yield a node's saved bytes, hooks and waits, where both traces have them."""
    node, its_partner = one.nodes[x], other.nodes[y]
    before, after = one.facts.saved[node], other.facts.saved[its_partner]
    if before is not None and after is not None:
        yield "saved bytes", f"{before:,}", f"{after:,}"
    for field, mine, theirs in (
        ("hooks", one.facts.hooks, other.facts.hooks),
        ("waits", one.facts.waits, other.facts.waits),
    ):
        if mine is not None and theirs is not None:
            yield field, _listed(mine, node), _listed(theirs, its_partner)


def _passes_differ(one: _Side, other: _Side) -> Iterator[FieldDifference]:
    if one.about.status != other.about.status:
        yield FieldDifference("end", one.about.status, other.about.status)
    if one.facts.waits is not None and other.facts.waits is not None:
        before, after = (_listed(side.facts.waits, THE_PASS) for side in (one, other))
        if before != after:
            yield FieldDifference("waits", before, after)


def _listed(facts: Mapping[int, tuple[str, ...]] | None, node: int) -> str:
    return ", ".join((facts or {}).get(node, ()))


def _num_by_field(changed: Sequence[ChangedNode]) -> dict[str, int]:
    """Count the nodes that differ in each field; see `Comparison.num_by_field`."""
    return dict(
        Counter(
            field
            for one in changed
            for field in sorted({_kind(part.field) for part in one.differences})
        )
    )


def _kind(field: str) -> str:
    return "gradient" if field.startswith("gradient ") else field


def _edges(
    one: _Side,
    other: _Side,
    partner: Sequence[int],
    taken: Mapping[int, int],
    pair: tuple[int, int],
) -> Iterator[tuple[str, str, str]]:
    """Yield edges with another destination, which exists in both."""
    x, y = pair
    both = zip_longest(
        one.structure.edges[x], other.structure.edges[y], fillvalue=(-1, 0)
    )
    for number, ((to, nr), (to_other, nr_other)) in enumerate(both):
        if (to >= 0 and partner[to] < 0) or (to_other >= 0 and to_other not in taken):
            continue
        if (partner[to] if to >= 0 else -1, nr) != (to_other, nr_other) and not (
            to < 0 and to_other < 0
        ):
            before, after = _end(one, to, nr), _end(other, to_other, nr_other)
            yield f"gradient {number}", before, after


def _end(side: _Side, to: int, input_nr: int) -> str:
    if to < 0:
        return "nobody"
    about = side.definitions[to]
    return f"{about.name} ({about.id}), input {input_nr}"


def _moved(
    one: _Side, other: _Side, pairs: Sequence[tuple[int, int]]
) -> Iterator[MovedNode]:
    """Yield nodes with another turn, which timing alone does not explain."""
    if one.turns is None or other.turns is None:
        found = _displaced(one, other, pairs)
    else:
        mine, theirs = np.array(pairs, np.int64).reshape(-1, 2).T
        places = moved(one.turns.at(mine), other.turns.at(theirs))
        found = [pairs[place] for place in places]
    for x, y in found:
        yield MovedNode(before=one.placed(x), after=other.placed(y))


def _displaced(
    one: _Side, other: _Side, pairs: Sequence[tuple[int, int]]
) -> list[tuple[int, int]]:
    """Of each device the nodes that are not in the longest order of both passes.

    That is all that can be said where the trace does not tell what lay in queues.
    """
    partner = dict(pairs)
    found = []
    for device, order in one.order.items():
        place = {index: number for number, index in enumerate(other.order[device])}
        both = [x for x in order if partner.get(x) in place]
        kept = longest_common_order([place[partner[x]] for x in both])
        found += [(x, partner[x]) for nr, x in enumerate(both) if nr not in kept]
    return found


def _times(
    one: _Side, other: _Side, pairs: Sequence[tuple[int, int]]
) -> tuple[TimeDifference | None, list[TimeDifference]]:
    """Return the durations of the passes and of their nodes, largest changes first."""
    before, after = one.usual_times(), other.usual_times()
    if one.trace is other.trace and other.task in before.like:
        # Over all passes of the shape they would be the same.
        before, after = one.usual_times(alone=True), other.usual_times(alone=True)
    whole = None
    if before.whole is not None and after.whole is not None:
        whole = _time(None, None, before.whole, after.whole)
    found = []
    for x, y in pairs:
        a, b = before.nodes.get(one.nodes[x]), after.nodes.get(other.nodes[y])
        if a is not None and b is not None:
            found.append(_time(one.placed(x), other.placed(y), a, b))
    found.sort(key=_apart_ns, reverse=True)
    return whole, found


def _time(
    before: PlacedNode | None, after: PlacedNode | None, a: UsualTime, b: UsualTime
) -> TimeDifference:
    return TimeDifference(
        before=before,
        after=after,
        usual_before=a,
        usual_after=b,
        is_significant=is_significant(a, b),
    )


def _apart_ns(one: TimeDifference) -> tuple[bool, int]:
    apart = abs(one.usual_after.median_ns - one.usual_before.median_ns)
    return one.is_significant, apart


def _inputs(node: NodeDefinition) -> str:
    """The shapes and dtypes that it expects; on which devices is another question."""
    return ", ".join(map(_input, node.inputs[:MAX_INPUTS]))


def _input(one: InputDefinition | None) -> str:
    return "any" if one is None else f"{one.dtype}{list(one.shape[:MAX_INPUTS])}"


def _line(node: NodeDefinition) -> str:
    """The file and line without folders, which differ from machine to machine."""
    return without_folders(node.location)
