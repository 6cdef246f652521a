"""Layouts of rows: which events a row of integers stands for.

A row mostly stands for one event. What happens to most nodes is reported in three calls
though, and kept in three rows that stand for eight events: a row costs the thread that
reports it some 200 ns, whatever its length, and the writer has fewer columns to encode.
In a file there are only the events themselves.

The events of one row happen together, so one reading of the clock does for them: they
are a nanosecond apart, in their order.
"""

from collections.abc import Hashable, Sequence
from typing import Final, NamedTuple

from gradviz.trace.columns import Part, RowLayout
from gradviz.trace.events import (
    INFERRED,
    KINDS,
    BufferFreed,
    Event,
    GradientBuffered,
    NodeCompleted,
    NodeCreated,
    NodeStarted,
    TaskPopped,
    TaskPushed,
    TensorSaved,
    own_columns,
)

#: Columns that every kind has before its own: ``t_ns``, ``task``, ``node``.
NUM_COMMON: Final = 3

#: Rows of `NodeReports.node_recorded`: ``t_ns``, -1, ``node, sequence_nr, location,
#: size_bytes``.
NODE_RECORDED: Final = "node_recorded"

#: Rows of `NodeReports.node_taken`: ``t_ns, task, node, queue, queue_length``.
NODE_TAKEN: Final = "node_taken"

#: Rows of `NodeReports.node_readied`: ``t_ns, task, node`` and its other parameters in
#: their order, then a zero.
NODE_READIED: Final = "node_readied"

#: Rows of `NodeReports.node_passed_on`: ``t_ns, task, node`` and its other parameters
#: in their order, then a zero and the node's processor time.
NODE_PASSED_ON: Final = "node_passed_on"


class Inferred(NamedTuple):
    """The key of rows of a kind that nobody saw; see `Event.inferred`."""

    kind: type[Event]


def _part(kind: type[Event], delay_ns: int, places: Sequence[int]) -> Part:
    assert len(places) == NUM_COMMON + len(own_columns(kind))
    return Part(kind.code, delay_ns, tuple(places))


def _plain(kind: type[Event], flag: int = 0) -> RowLayout:
    width = NUM_COMMON + len(own_columns(kind))
    return RowLayout(width, (Part(kind.code | flag, 0, tuple(range(width))),))


#: Of each list of rows that a thread has: what its rows stand for. The places of zero
#: are `remaining`, `Push.NODE` and `How.FIRST`.
LAYOUTS: Final[dict[Hashable, RowLayout]] = {
    **{kind: _plain(kind) for kind in KINDS.values()},
    **{Inferred(kind): _plain(kind, INFERRED) for kind in KINDS.values()},
    NODE_RECORDED: RowLayout(
        6,
        (
            _part(NodeCreated, 0, (0, 1, 2, 3, 4)),
            _part(TensorSaved, 1, (0, 1, 2, 5)),
        ),
    ),
    NODE_TAKEN: RowLayout(
        5,
        (
            _part(TaskPopped, 0, (0, 1, 2, 3, 4)),
            _part(NodeStarted, 1, (0, 1, 2)),
        ),
    ),
    NODE_READIED: RowLayout(
        13,
        (
            _part(GradientBuffered, 0, (0, 1, 2, 3, 4, 12, 5, 6)),
            _part(TaskPushed, 1, (0, 1, 2, 7, 8, 9, 10, 11, 3, 12)),
        ),
    ),
    NODE_PASSED_ON: RowLayout(
        14,
        (
            _part(BufferFreed, 0, (0, 1, 2, 3)),
            _part(GradientBuffered, 1, (0, 1, 4, 2, 5, 12, 6, 12)),
            _part(TaskPushed, 2, (0, 1, 4, 7, 8, 9, 10, 11, 2, 12)),
            _part(NodeCompleted, 3, (0, 1, 2, 13)),
        ),
    ),
}
