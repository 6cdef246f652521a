"""What is told of passes of PyTorch's, to whoever listens to them.

Each of these is one call of `Probe.told`, for an interrupt may come between two.
"""

import time
from collections.abc import Hashable, Iterable, Mapping
from typing import Any

from gradviz.pytorch.queues import ReplayedPass
from gradviz.pytorch.watched_pass import WatchedPass
from gradviz.trace.events import (
    DependenciesCounted,
    TaskBegun,
    TaskCompleted,
    TaskFailed,
    Unexplained,
)
from gradviz.trace.joined import Inferred


def tell_begun(
    one: WatchedPass, num_roots: int, call: Mapping[str, Any], line: str
) -> None:
    """Tell that a pass begins now.

    Args:
        one: The pass, which has its graph if there is one.
        num_roots: How many roots it has.
        call: What PyTorch was called with, by name.
        line: The line of the program that did.
    """
    nodes = [] if one.graph is None else one.graph.nodes
    num_edges = sum(node.num_edges for node in nodes)
    begun_ns = time.perf_counter_ns()
    begun: list[int | str] = [
        begun_ns,
        one.task,
        -1,
        -1 if one.parent is None else one.parent.task,
        one.depth,
        -1,
        num_roots,
        len(call.get("inputs") or ()),
        bool(call.get("keep_graph")),
        bool(call.get("create_graph")),
        line,
    ]
    counted: list[int | str] = [begun_ns + 1, one.task, -1, len(nodes), num_edges]
    rows: dict[Hashable, list[int | str]] = {
        TaskBegun: begun,
        Inferred(DependenciesCounted): counted,
    }
    one.listener.told(one.thread, one.thread_name, rows)
    one.is_begun = True


def tell_seen(passes: Iterable[ReplayedPass]) -> None:
    """Tell what passes did that were seen, and gone through."""
    for replay in passes:
        for thread, sheet in replay.sheets.items():
            rows = dict(sheet.rows())
            replay.about.listener.told(thread.number, thread.name, rows)


def tell_unseen(one: WatchedPass) -> None:
    """Tell the end of a pass whose nodes were not seen, and why."""
    rows: dict[Hashable, list[int | str]] = {}
    if doubt := one.doubt or one.unseen:
        rows[Unexplained] = [one.called_ns, one.task, -1, doubt]
    if one.error:
        rows[TaskFailed] = [one.returned_ns, one.task, -1, one.error]
    else:
        rows[TaskCompleted] = [one.returned_ns, one.task, -1]
    one.listener.told(one.thread, one.thread_name, rows)
