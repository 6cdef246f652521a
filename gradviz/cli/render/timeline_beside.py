"""The timelines that ``gradviz render timeline --beside`` draws below each other."""

from collections.abc import Iterator, Sequence
from itertools import zip_longest
from pathlib import Path

from gradviz.analysis.changes.node_changes import NodeChange, PassChanges, pass_changes
from gradviz.analysis.changes.pass_comparison import TooLargeError
from gradviz.analysis.timelines.timeline_lanes import Timeline
from gradviz.cli.console.notes import note, working
from gradviz.render.timeline.timeline_changes import Beside, NodeInPass, TimelineSide
from gradviz.render.words.change_text import unrelated
from gradviz.render.words.text import clean
from gradviz.trace.format.model import Trace


def beside(
    trace: Trace,
    timelines: Sequence[Timeline],
    after: Trace,
    others: Sequence[Timeline],
) -> tuple[list[Timeline], Beside]:
    """Put timelines of two traces below each other, and compare their passes.

    The first pass of the one is compared with the first of the other, and so on. What
    cannot be compared is drawn nevertheless, and said.
    """
    compared, alarms = [], []
    tasks = zip(_tasks(timelines), _tasks(others), strict=False)
    with working(f"comparing {trace.path} with {after.path}"):
        for task, other_task in tasks:
            try:
                changes = pass_changes(trace, task, after, other_task)
            except TooLargeError as error:
                alarms.append(f"not compared: {error}")
                continue
            if changes.comparison.is_related:
                compared.append(changes)
            else:
                alarms.append(unrelated(changes))
    for alarm in alarms:
        note(alarm)
    one = TimelineSide(f"A: {_name(trace)}", _nodes(compared, is_after=False))
    other = TimelineSide(f"B: {_name(after)}", _nodes(compared, is_after=True))
    drawn = [
        (timeline, side)
        for pair in zip_longest(timelines, others)
        for timeline, side in zip(pair, (one, other), strict=True)
        if timeline is not None
    ]
    return (
        [timeline for timeline, _ in drawn],
        Beside(tuple(side for _, side in drawn), tuple(compared), tuple(alarms)),
    )


def _tasks(timelines: Sequence[Timeline]) -> Iterator[int]:
    """Yield the passes that no other one called, as they began."""
    for timeline in timelines:
        outer = [one for one in timeline.passes if one.parent < 0]
        yield from (one.task for one in sorted(outer, key=lambda one: one.begin_ns))


def _name(trace: Trace) -> str:
    return clean(Path(trace.path).name) if trace.path else "a recording"


def _nodes(
    compared: Sequence[PassChanges], *, is_after: bool
) -> dict[NodeInPass, NodeChange]:
    """Return the changes of the nodes of one of both traces."""
    found: dict[NodeInPass, NodeChange] = {}
    for pair in compared:
        about = pair.comparison.after if is_after else pair.comparison.before
        by_node = pair.by_node_after() if is_after else pair.by_node_before()
        found |= {(about.task, node): change for node, change in by_node.items()}
    return found
