"""Descriptions of the inexplicable parts of a pass."""

from collections.abc import Iterable
from typing import Final

from gradviz.pytorch.nodes.seen_node import SeenNode
from gradviz.pytorch.reconstruction.seen_queues import ReplayedPass, SeenThread
from gradviz.trace.events import Unexplained

#: Maximum number of names told of nodes that did not run.
_MAX_NAMED: Final = 3


def report_unexplained(
    replay: ReplayedPass, thread: SeenThread, node: SeenNode | None, t_ns: int, why: str
) -> None:
    """Report that a pass, or a node of it, is not as expected."""
    number = -1 if node is None else node.id
    row = thread.tick(t_ns - 1), replay.about.task, number, why
    replay.rows_of(thread).seen(Unexplained).extend(row)


def missing(replay: ReplayedPass) -> str:
    """Return names of nodes that should have run and were not seen; empty if none."""
    about, ran = replay.about, replay.ran
    if about.graph is None:
        return about.problem or "its graph could not be read, so no node is known"
    if about.needed is None and len(ran) == len(about.graph.nodes):
        return ""
    nodes: Iterable[SeenNode] = about.graph.nodes
    absent = [
        node for node in nodes if node not in ran and not replay.runs_nothing(node)
    ]
    if not absent:
        return ""
    if not ran:
        return "none of its nodes was seen to run, as where compiled autograd runs them"
    names = ", ".join(node.text for node in absent[:_MAX_NAMED])
    more = len(absent) - _MAX_NAMED
    return f"not seen to run: {names}" + (f" and {more:,} more" if more > 0 else "")
