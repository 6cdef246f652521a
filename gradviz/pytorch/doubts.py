"""What of a pass is not explained, in words."""

from collections.abc import Iterable
from typing import Final

from gradviz.pytorch.queues import ReplayedPass, SeenThread
from gradviz.pytorch.seen_node import SeenNode
from gradviz.trace.events import Unexplained

#: So many names are told of nodes that did not run.
_MAX_NAMED: Final = 3


def doubt(
    replay: ReplayedPass, thread: SeenThread, node: SeenNode | None, t_ns: int, why: str
) -> None:
    """Say of a pass, or of a node of it, that it is not what was expected."""
    number = -1 if node is None else node.id
    row = thread.tick(t_ns - 1), replay.about.task, number, why
    replay.sheet(thread).seen(Unexplained).extend(row)


def missing(replay: ReplayedPass) -> str:
    """Which nodes had to run and were not seen to; empty if all were."""
    about, ran = replay.about, replay.ran
    if about.graph is None:
        return about.doubt or "its graph could not be read, so no node is known"
    if about.needed is None and len(ran) == len(about.graph.nodes):
        return ""
    nodes: Iterable[SeenNode] = about.graph.nodes
    absent = [
        node for node in nodes if node not in ran and not replay.runs_nothing(node)
    ]
    if not absent:
        return ""
    names = ", ".join(node.text for node in absent[:_MAX_NAMED])
    more = len(absent) - _MAX_NAMED
    return f"not seen to run: {names}" + (f" and {more:,} more" if more > 0 else "")
