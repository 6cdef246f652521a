"""Tasks that one thread pushed and another one ran: where work went across threads."""

from collections.abc import Sequence
from typing import NamedTuple

import msgspec
import numpy as np

from gradviz.analysis.spans import NEVER, spans
from gradviz.trace.model import Trace
from gradviz.trace.probe import Push


class PushAcross(msgspec.Struct, frozen=True, kw_only=True, gc=False):
    """A node that ran on another thread than that which pushed it.

    Attributes:
        task: The pass.
        node: The node.
        pushed_by: The node that was running when it was pushed, -1 for none.
        from_thread: Who pushed it.
        pushed_ns: When.
        to_thread: Who ran it.
        start_ns: When it started.
    """

    task: int
    node: int
    pushed_by: int
    from_thread: int
    pushed_ns: int
    to_thread: int
    start_ns: int


class Pushes(NamedTuple):
    """Those that are told, in the order of time, and how many there are."""

    told: tuple[PushAcross, ...]
    num_all: int


def pushes_across(trace: Trace, tasks: Sequence[int], limit: int) -> Pushes:
    """The nodes of passes that went from thread to thread; of very many the first."""
    wanted = np.array(tasks, np.int64)
    pushed, started = (
        table.at(np.isin(table.narrow("task"), wanted))
        for table in (trace.columns["task_pushed"], trace.columns["node_started"])
    )
    pushed = pushed.at(pushed.narrow("what") == Push.NODE)
    ran = spans(pushed, started, ("task", "node"))
    known = np.flatnonzero(ran.end != NEVER)
    start = np.searchsorted(started["seq"], ran.end[known])
    is_across = pushed["thread"][known] != started["thread"][start]
    known, start = known[is_across][:limit], start[is_across][:limit]
    rows = pushed.at(known).rows("task", "node", "pushed_by", "thread", "t_ns")
    told = tuple(
        PushAcross(
            task=task,
            node=node,
            pushed_by=by,
            from_thread=thread,
            pushed_ns=t_ns,
            to_thread=to_thread,
            start_ns=start_ns,
        )
        for (task, node, by, thread, t_ns), to_thread, start_ns in zip(
            rows,
            started["thread"][start].tolist(),
            started["t_ns"][start].tolist(),
            strict=True,
        )
    )
    return Pushes(told, int(np.count_nonzero(is_across)))
