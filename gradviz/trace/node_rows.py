"""The rows that a thread makes of what happens to most nodes, hot as no others.

Each report is a clock, a tuple, and a list that is extended, or to which the tuple is
appended as it is (see Note [Taking rows] and Note [Whole rows] in `buffer`).
"""

import time as computer
from collections.abc import Callable, Hashable
from typing import NamedTuple

from gradviz.trace.buffer import MANY, Rows
from gradviz.trace.clock import Clock, clock_of_several, is_the_computers
from gradviz.trace.events import (
    MAX_SEQUENCE_NR,
    BufferFreed,
    GradientAccumulated,
    GradientBuffered,
    NodeCompleted,
    NodeCreated,
    StackTaken,
    TaskPushed,
    TensorSaved,
)
from gradviz.trace.joined import (
    LAYOUTS,
    NODE_PASSED_ON,
    NODE_READIED,
    NODE_RECORDED,
    NODE_TAKEN,
)
from gradviz.trace.node_filter import NodeFilter
from gradviz.trace.node_like import NodeLike
from gradviz.trace.node_reports import NodeReports
from gradviz.trace.processor_time import ThreadTime

# As integers of C, where this is compiled.
_MANY = MANY
_WIDTH = LAYOUTS[NODE_PASSED_ON].width
_MANY_WHOLE = MANY // _WIDTH


class NodeClocks(NamedTuple):
    """What rows of nodes read the time from: one reading for all events of a row.

    Attributes:
        are_the_computers: Whether they are `time.perf_counter_ns`, which then is called
            as it is: compiled, a function of C.
        single: For rows of one event; the others for rows of several.
    """

    are_the_computers: bool
    single: Clock
    recorded: Clock
    taken: Clock
    readied: Clock
    passed_on: Clock


def node_clocks(clock: Clock) -> NodeClocks:
    """Those for `clock`, which is one of `event_clock`."""
    kinds = NODE_RECORDED, NODE_TAKEN, NODE_READIED, NODE_PASSED_ON
    return NodeClocks(
        is_the_computers(clock),
        clock,
        *(clock_of_several(clock, len(LAYOUTS[kind].parts)) for kind in kinds),
    )


class Origins(NamedTuple):
    """Who knows more of a node that is made.

    Attributes:
        line: Says which line of the program runs, as an index into the strings.
        stack: Says in which lines it is; None if that was not asked for.
        nodes: Notes the nodes whose events are kept; None if all are.
    """

    line: Callable[[], int]
    stack: Callable[[], int] | None
    nodes: NodeFilter | None


class NodeRows(NodeReports):
    """Where one thread reports its nodes.

    Looking up the thread, the clock and the method took a quarter of a report. It is
    kept with what else is the thread's, so it must know nothing that knows the
    recorder: that would live as long as the thread.

    Args:
        rows: The thread's.
        time: The thread's.
        clocks: Of the recorder.
        call_writer: Called with how many integers wait in a list that has become long.
        origins: Of the recorder.
    """

    __slots__ = (
        "call_writer",
        "is_curious",
        "is_direct",
        "line",
        "origins",
        "rows",
        "time",
        "when",
        "when_passed_on",
        "when_readied",
        "when_recorded",
        "when_taken",
    )

    def __init__(
        self,
        rows: dict[Hashable, Rows],
        time: ThreadTime,
        clocks: NodeClocks,
        call_writer: Callable[[int], None],
        origins: Origins,
    ) -> None:
        self.rows = rows
        self.time = time
        self.is_direct, self.when, self.when_recorded, *of_backward = clocks
        self.when_taken, self.when_readied, self.when_passed_on = of_backward
        self.call_writer = call_writer
        self.origins = origins
        self.line = origins.line
        self.is_curious = origins.stack is not None or origins.nodes is not None

    def node_created(self, node: NodeLike) -> None:
        """See `NodeReports`."""
        now = self.when()
        if self.is_curious:
            self._look_closer(node)
        rows, sequence_nr = self.rows[NodeCreated], node.sequence_nr
        if sequence_nr == MAX_SEQUENCE_NR:
            sequence_nr = -1
        rows.extend((now, -1, node.id, sequence_nr, self.line()))
        if len(rows) > _MANY:
            self.call_writer(len(rows))

    def tensor_saved(self, node: int, size_bytes: int) -> None:
        """See `NodeReports`."""
        self.rows[TensorSaved].extend((self.when(), -1, node, size_bytes))

    def node_recorded(self, node: NodeLike, size_bytes: int) -> None:
        """See `NodeReports`."""
        now = self.when_recorded()
        if self.is_curious:
            self._look_closer(node)
        rows, sequence_nr = self.rows[NODE_RECORDED], node.sequence_nr
        if sequence_nr == MAX_SEQUENCE_NR:
            sequence_nr = -1
        rows.extend((now, -1, node.id, sequence_nr, self.line(), size_bytes))
        if len(rows) > _MANY:
            self.call_writer(len(rows))

    def _look_closer(self, node: NodeLike) -> None:
        """Do what few recordings ask for, before any event of the node is kept."""
        _, stack, nodes = self.origins
        if nodes is not None:
            nodes.offer((node,))
        if stack is not None:
            self.rows[StackTaken].extend((self.when(), -1, node.id, stack()))

    def node_taken(self, task: int, node: int, queue: int, queue_length: int) -> None:
        """See `NodeReports`."""
        time = self.time
        if self.is_direct:  # noqa: SIM108 - compiled, this is a number of C
            moment = computer.perf_counter_ns()
        else:
            moment = self.when_taken()
        # As `ThreadTime.start` and, below, `end` do it, without calling them.
        if moment > time.due:
            time.read(moment)
        time.began = moment
        rows = self.rows[NODE_TAKEN]
        rows.append((moment, task, node, queue, queue_length))

    def node_readied(  # noqa: PLR0913, PLR0917 - it is two events
        self,
        task: int,
        node: int,
        producer: int,
        input_nr: int,
        size_bytes: int,
        how: int,
        queue: int,
        reentrant_depth: int,
        sequence_nr: int,
        queue_length: int,
        outstanding: int,
    ) -> None:
        """See `NodeReports`."""
        rows = self.rows[NODE_READIED]
        rows.append(
            (
                self.when_readied(),
                task,
                node,
                producer,
                input_nr,
                size_bytes,
                how,
                queue,
                reentrant_depth,
                sequence_nr if sequence_nr != MAX_SEQUENCE_NR else -1,
                queue_length,
                outstanding,
                0,
            )
        )
        if len(rows) > _MANY_WHOLE:
            self.call_writer(_WIDTH * len(rows))

    def node_passed_on(  # noqa: PLR0913, PLR0917 - it is four events
        self,
        task: int,
        node: int,
        freed_bytes: int,
        receiver: int,
        input_nr: int,
        size_bytes: int,
        queue: int,
        reentrant_depth: int,
        sequence_nr: int,
        queue_length: int,
        outstanding: int,
    ) -> None:
        """See `NodeReports`."""
        rows = self.rows[NODE_PASSED_ON]
        time = self.time
        if self.is_direct:  # noqa: SIM108 - as in `node_taken`
            moment = computer.perf_counter_ns()
        else:
            moment = self.when_passed_on()
        took = moment - time.began
        rows.append(
            (
                moment,
                task,
                node,
                freed_bytes,
                receiver,
                input_nr,
                size_bytes,
                queue,
                reentrant_depth,
                sequence_nr if sequence_nr != MAX_SEQUENCE_NR else -1,
                queue_length,
                outstanding,
                0,
                took if took < time.short else time.end(moment),
            )
        )
        if len(rows) > _MANY_WHOLE:
            self.call_writer(_WIDTH * len(rows))

    def task_pushed(  # noqa: PLR0913, PLR0917 - an event has the fields it has
        self,
        task: int,
        node: int,
        queue: int,
        reentrant_depth: int,
        sequence_nr: int,
        queue_length: int,
        outstanding: int,
        pushed_by: int,
        what: int,
    ) -> None:
        """See `NodeReports`."""
        rows = self.rows[TaskPushed]
        rows.extend(
            (
                self.when(),
                task,
                node,
                queue,
                reentrant_depth,
                sequence_nr if sequence_nr != MAX_SEQUENCE_NR else -1,
                queue_length,
                outstanding,
                pushed_by,
                what,
            )
        )
        if len(rows) > _MANY:
            self.call_writer(len(rows))

    def gradient_buffered(
        self,
        task: int,
        node: int,
        producer: int,
        input_nr: int,
        remaining: int,
        size_bytes: int,
        how: int,
    ) -> None:
        """See `NodeReports`."""
        rows = self.rows[GradientBuffered]
        now = self.when()
        rows.extend((now, task, node, producer, input_nr, remaining, size_bytes, how))

    def gradient_accumulated(self, task: int, node: int, how: int) -> None:
        """See `NodeReports`."""
        rows = self.rows[GradientAccumulated]
        rows.extend((self.when(), task, node, how))

    def buffer_freed(self, task: int, node: int, size_bytes: int) -> None:
        """See `NodeReports`."""
        rows = self.rows[BufferFreed]
        rows.extend((self.when(), task, node, size_bytes))

    def node_completed(self, task: int, node: int) -> None:
        """See `NodeReports`."""
        rows, time = self.rows[NodeCompleted], self.time
        now = moment = self.when()
        took = moment - time.began
        rows.extend((now, task, node, took if took < time.short else time.end(moment)))
