"""The changes of each node between two passes, for pictures that show both.

`pass_comparison` lists differences by their kind; here they are by node.

Note [Slower in one pass]
~~~~~~~~~~~~~~~~~~~~~~~~~
A time is significantly longer if several passes say so; see `usual_times`. Many
recordings have one pass of a shape. Of such a pair a node counts as slower or faster if
it took twice or half as long, and if that is a noticeable part of the pass; and
`PassChanges.is_by_chance` says that this may be chance.
"""

from collections.abc import Iterable, Iterator, Mapping
from typing import Final, Literal, TypeAlias, get_args

import msgspec

from gradviz.analysis.changes.pass_comparison import (
    UNCOUNTED,
    Comparison,
    FieldDifference,
    PlacedNode,
    TimeDifference,
    compare_paired,
)
from gradviz.analysis.training.usual_times import MIN_PASSES
from gradviz.trace.format.model import Trace

#: From the gravest to the least; ``same`` is none of the others.
ChangeKind: TypeAlias = Literal[
    "vanished", "appeared", "changed", "moved", "slower", "faster", "same"
]

CHANGE_KINDS: Final[tuple[ChangeKind, ...]] = get_args(ChangeKind)

#: Of single passes: so many times as long, and by such a part of the shorter pass.
MIN_FACTOR: Final = 2.0
MIN_PART: Final = 0.01


class NodeChange(msgspec.Struct, frozen=True, kw_only=True):
    """A node of either pass, or of both, and the differences there are.

    Attributes:
        before: The node in the one pass, None if only the other has it.
        after: The node in the other pass, None if only the one has it.
        kinds: Its differences, the gravest first; ``same`` alone if there is none.
        differences: The fields that differ, those that do not count included.
        took_before_ns: Its usual duration in the one pass; None if unknown.
        took_after_ns: The same of the other pass.
    """

    before: PlacedNode | None
    after: PlacedNode | None
    kinds: tuple[ChangeKind, ...]
    differences: tuple[FieldDifference, ...] = ()
    took_before_ns: int | None = None
    took_after_ns: int | None = None


class PassChanges(msgspec.Struct, frozen=True, kw_only=True):
    """Two passes compared, node by node.

    Attributes:
        comparison: The comparison, with all differences.
        nodes: Each node of either pass once, those of the one pass first.
        is_by_chance: True if either pass has too few alike to tell a slower node from
            chance; see Note [Slower in one pass].
    """

    comparison: Comparison
    nodes: tuple[NodeChange, ...]
    is_by_chance: bool

    def by_node_before(self) -> dict[int, NodeChange]:
        """Return the changes by the id that a node has in the one pass."""
        return {one.before.node: one for one in self.nodes if one.before is not None}

    def by_node_after(self) -> dict[int, NodeChange]:
        """Return the changes by the id that a node has in the other pass."""
        return {one.after.node: one for one in self.nodes if one.after is not None}


def pass_changes(
    before: Trace, task: int, after: Trace, other_task: int
) -> PassChanges:
    """Compare two passes node by node.

    Where they have too little in common, each node is only in its own pass.

    Raises:
        TooLargeError: One of them has too many nodes, or edges.
    """
    comparison, pairs = compare_paired(before, task, after, other_task)
    times = {one.before.node: one for one in comparison.times if one.before}
    whole = comparison.duration
    is_by_chance = whole is None or (
        min(whole.usual_before.passes, whole.usual_after.passes) < MIN_PASSES
    )
    nodes = (
        *_of_both(comparison, pairs, times),
        *(
            NodeChange(before=one, after=None, kinds=("vanished",))
            for one in comparison.vanished
        ),
        *(
            NodeChange(before=None, after=one, kinds=("appeared",))
            for one in comparison.appeared
        ),
    )
    return PassChanges(comparison=comparison, nodes=nodes, is_by_chance=is_by_chance)


def _of_both(
    comparison: Comparison,
    pairs: Iterable[tuple[PlacedNode, PlacedNode]],
    times: Mapping[int, TimeDifference],
) -> Iterator[NodeChange]:
    """Yield the changes of the nodes that both passes have."""
    moved = {one.before.node for one in comparison.moved}
    changed = {one.before.node: one.differences for one in comparison.changed}
    shorter_ns = _shorter_ns(comparison)
    for before, after in pairs:
        time = times.get(before.node)
        fields = changed.get(before.node, ())
        kinds: list[ChangeKind] = []
        if any(one.field not in UNCOUNTED for one in fields):
            kinds.append("changed")
        if before.node in moved:
            kinds.append("moved")
        if time is not None and _took_another_time(time, shorter_ns):
            is_slower = time.usual_after.median_ns > time.usual_before.median_ns
            kinds.append("slower" if is_slower else "faster")
        yield NodeChange(
            before=before,
            after=after,
            kinds=tuple(kinds) or ("same",),
            differences=fields,
            took_before_ns=time.usual_before.median_ns if time else None,
            took_after_ns=time.usual_after.median_ns if time else None,
        )


def _shorter_ns(comparison: Comparison) -> int:
    """Return how long the shorter pass took, 0 if that is not known."""
    whole = comparison.duration
    if whole is None:
        return 0
    return min(whole.usual_before.median_ns, whole.usual_after.median_ns)


def _took_another_time(time: TimeDifference, shorter_ns: int) -> bool:
    """Return whether a node is slower or faster; see Note [Slower in one pass]."""
    before, after = time.usual_before, time.usual_after
    if min(before.passes, after.passes) >= MIN_PASSES:
        return time.is_significant
    low, high = sorted((before.median_ns, after.median_ns))
    return high >= MIN_FACTOR * low and high - low > MIN_PART * shorter_ns
