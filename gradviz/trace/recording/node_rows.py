"""A thread's rows of the most frequent node events: the hottest code here.

Each report is a clock, a tuple, and a list that is extended, or to which the tuple is
appended as it is (see Note [Taking rows] and Note [Whole rows] in `buffer`).
"""

import time as computer
from collections.abc import Callable, Hashable
from typing import NamedTuple

from gradviz.trace.events import (
    MAX_SEQUENCE_NR,
    BufferFreed,
    GradientAccumulated,
    GradientBuffered,
    NodeCompleted,
    NodeCreated,
    StackTaken,
    TaskPushed,
)
from gradviz.trace.format.clock import Clock, clock_of_several, is_the_computers
from gradviz.trace.format.row_layouts import LAYOUTS
from gradviz.trace.node_like import NodeLike
from gradviz.trace.node_reports import NodeReports
from gradviz.trace.recording.buffer import MANY, Rows
from gradviz.trace.recording.node_filter import NodeFilter
from gradviz.trace.recording.processor_time import ThreadTime

# when compiled: integer
_MANY = MANY
_WIDTH = LAYOUTS["node_passed_on"].width
_MANY_WHOLE = MANY // _WIDTH


class Origins(NamedTuple):
    """Sources of further facts about a new node.

    Attributes:
        line: Returns the program's current line, as an index into the strings.
        stack: Returns the lines of its stack; None if not requested.
        nodes: Notes the nodes whose events are kept; None if all are.
    """

    line: Callable[[], int]
    stack: Callable[[], int] | None
    nodes: NodeFilter | None


class NodeRows(NodeReports):
    """Node reporter of one thread.

    Looking up the thread, the clock and the method took a quarter of a report. The
    reporter is kept with the thread's other data, so it must not refer to anything that
    refers to the recorder: that would live as long as the thread.

    Args:
        rows: The thread's rows.
        time: The thread's time.
        clock: The recorder's clock; one of `event_clock`.
        call_writer: Called with the number of integers in a list that has become long.
        origins: The recorder's sources of further facts.
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
        clock: Clock,
        call_writer: Callable[[int], None],
        origins: Origins,
    ) -> None:
        self.rows = rows
        self.time = time
        # The computer's clock is called as it is: compiled, that is a function of C.
        self.is_direct = is_the_computers(clock)
        self.when = clock
        self.when_recorded = _clock_of(clock, "node_recorded")
        self.when_taken = _clock_of(clock, "node_taken")
        self.when_readied = _clock_of(clock, "node_readied")
        self.when_passed_on = _clock_of(clock, "node_passed_on")
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

    def node_recorded(self, node: NodeLike, size_bytes: int) -> None:
        """See `NodeReports`."""
        now = self.when_recorded()
        if self.is_curious:
            self._look_closer(node)
        rows, sequence_nr = self.rows["node_recorded"], node.sequence_nr
        if sequence_nr == MAX_SEQUENCE_NR:
            sequence_nr = -1
        rows.extend((now, -1, node.id, size_bytes, sequence_nr, self.line()))
        if len(rows) > _MANY:
            self.call_writer(len(rows))

    def _look_closer(self, node: NodeLike) -> None:
        """Add rarely requested facts, before any event of the node is kept."""
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
        rows = self.rows["node_taken"]
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
        rows = self.rows["node_readied"]
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
        rows = self.rows["node_passed_on"]
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


def _clock_of(clock: Clock, report: str) -> Clock:
    """Return the clock of rows of a joined report: one reading for all its events."""
    return clock_of_several(clock, len(LAYOUTS[report].parts))
