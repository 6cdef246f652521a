"""The reports of a thread about the nodes that it makes and runs.

Every node waits for these, so they are few: what happens to most nodes is one report of
several events, which `JOINED` lists.

A class, and not a protocol: where it is compiled, the engine calls its methods without
making objects for the call, which is a third of what recording a node costs. And a
listener that has to know the thread finds it out once.
"""

import enum
from collections.abc import Mapping
from typing import TYPE_CHECKING, Final, NamedTuple

if TYPE_CHECKING:  # what reads a trace needs the enums here, and no protocol of nodes
    from gradviz.trace.node_like import NodeLike

# These values never change either; see the enums of `probe`.


class Push(enum.IntEnum):
    """Kind of a task that was pushed to a ready queue."""

    NODE = 0
    ROOT = 1
    WAKE_UP = 2


class How(enum.IntEnum):
    """Way in which a gradient reached its place."""

    FIRST = 0
    IN_PLACE = 1
    OUT_OF_PLACE = 2
    STOLEN = 3
    COPIED = 4
    UNDEFINED = 5
    UNKNOWN = 6


class NodeReports:
    """The reports on which every node waits; see `Probe.for_this_thread`.

    They do nothing here. A `Probe` inherits them, and hears each event of a joined
    report by itself.
    """

    __slots__ = ()

    def __getstate__(self) -> object:
        """Return the initial state of copies of a listener, as for any object.

        By itself Python refuses to copy: it takes the methods' table, which the class
        has where it is compiled, for hidden fields.
        """
        return object.__getstate__(self)

    def node_created(self, node: "NodeLike") -> None:
        """The forward pass made a node; its edges may still be missing."""

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
        what: Push,
    ) -> None:
        """A task entered a queue.

        Args:
            task: The GraphTask it belongs to.
            node: The node to run, -1 for a wake-up.
            queue: The queue's id.
            reentrant_depth: Depth of the GraphTask, the first part of the priority.
            sequence_nr: The second part of the priority.
            queue_length: Tasks in the queue, this one included; approximate where
                another thread pops at the same time.
            outstanding: Tasks of the GraphTask queued or running, this one included.
            pushed_by: The node whose evaluation made it ready, -1 for none.
            what: Kind of the task.
        """

    def node_completed(self, task: int, node: int) -> None:
        """The node ran and its gradients were handed on."""

    def gradient_buffered(
        self,
        task: int,
        node: int,
        producer: int,
        input_nr: int,
        remaining: int,
        size_bytes: int,
        how: How,
    ) -> None:
        """A gradient from `producer` reached input `input_nr` of `node`.

        `remaining` counts the incoming edges that `node` still waits for.
        """

    def gradient_accumulated(self, task: int, node: int, how: How) -> None:
        """AccumulateGrad `node` put a gradient into its leaf's ``.grad``."""

    def buffer_freed(self, task: int, node: int, size_bytes: int) -> None:
        """The gradients that `node` received were released."""

    # --- joined: several events in one report, see `JOINED` --------------------------

    def node_recorded(self, node: "NodeLike", size_bytes: int) -> None:
        """The forward pass made a node, which kept tensors for its backward."""

    def node_taken(self, task: int, node: int, queue: int, queue_length: int) -> None:
        """A node was popped and its evaluation begins."""

    def node_readied(  # noqa: PLR0913, PLR0917 - it is two events
        self,
        task: int,
        node: int,
        producer: int,
        input_nr: int,
        size_bytes: int,
        how: How,
        queue: int,
        reentrant_depth: int,
        sequence_nr: int,
        queue_length: int,
        outstanding: int,
    ) -> None:
        """The only gradient that a node waits for came, and the node was pushed."""

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
        """A node ran, and its only gradient is the only one `receiver` waits for."""


class JoinedEvent(NamedTuple):
    """One of the events of a joined report.

    Attributes:
        name: Of the event's own report, and so of its kind.
        given: Column -> its source: a parameter of the joined report, or a constant.
            Other columns come from the parameter of the same name.
    """

    name: str
    given: Mapping[str, str | int]

    def source(self, column: str) -> str | int:
        """Return the parameter that holds a column, or the constant it always is."""
        return self.given.get(column, column)


def _event(name: str, **given: str | int) -> JoinedEvent:
    return JoinedEvent(name, given)


#: The events of each joined report, in their order. From this table follow the calls
#: that a `Probe` hears and the rows that a recorder keeps (see `row_layouts`).
JOINED: Final[Mapping[str, tuple[JoinedEvent, ...]]] = {
    "node_recorded": (_event("node_created"), _event("tensor_saved")),
    "node_taken": (_event("task_popped"), _event("node_started")),
    "node_readied": (
        _event("gradient_buffered", remaining=0),
        _event("task_pushed", pushed_by="producer", what=Push.NODE),
    ),
    "node_passed_on": (
        _event("buffer_freed", size_bytes="freed_bytes"),
        _event(
            "gradient_buffered",
            node="receiver",
            producer="node",
            remaining=0,
            how=How.FIRST,
        ),
        _event("task_pushed", node="receiver", pushed_by="node", what=Push.NODE),
        _event("node_completed"),
    ),
}
