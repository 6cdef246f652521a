"""What one thread reports of the nodes that it makes and runs.

The methods of a `Probe` that are called for every node, and in their place, for what
happens to most nodes, three calls instead of eight.

A class, and not a protocol: where it is compiled, the engine calls its methods without
making objects for the call, which is a third of what recording a node costs. And a
listener that has to know the thread finds it out once.
"""

from gradviz.trace.node_like import NodeLike


class NodeReports:
    """Whom one thread reports its nodes to; see `Probe.for_this_thread`."""

    __slots__ = ()

    def node_created(self, node: NodeLike) -> None:
        """As `Probe.node_created`."""
        raise NotImplementedError

    def tensor_saved(self, node: int, size_bytes: int) -> None:
        """As `Probe.tensor_saved`."""
        raise NotImplementedError

    def node_recorded(self, node: NodeLike, size_bytes: int) -> None:
        """The forward pass made a node, which kept tensors for its backward.

        `Probe.node_created` and `Probe.tensor_saved`.
        """
        raise NotImplementedError

    def node_taken(self, task: int, node: int, queue: int, queue_length: int) -> None:
        """A node was popped and its evaluation begins.

        `Probe.task_popped` and `Probe.node_started`.
        """
        raise NotImplementedError

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
        """The only gradient that a node waits for came, and the node was pushed.

        `Probe.gradient_buffered`, as a `How` says, and `Probe.task_pushed`.
        """
        raise NotImplementedError

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
        """A node ran, and its only gradient is the only one `receiver` waits for.

        `Probe.buffer_freed`, `node_readied` of the receiver, and
        `Probe.node_completed`.
        """
        raise NotImplementedError

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
        """As `Probe.task_pushed`; `what` is a `Push`."""
        raise NotImplementedError

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
        """As `Probe.gradient_buffered`; `how` is a `How`."""
        raise NotImplementedError

    def gradient_accumulated(self, task: int, node: int, how: int) -> None:
        """As `Probe.gradient_accumulated`; `how` is a `How`."""
        raise NotImplementedError

    def buffer_freed(self, task: int, node: int, size_bytes: int) -> None:
        """As `Probe.buffer_freed`."""
        raise NotImplementedError

    def node_completed(self, task: int, node: int) -> None:
        """As `Probe.node_completed`."""
        raise NotImplementedError
