"""A moment: the state of an engine right after one event, as plain values.

`gradviz.analysis.moments.engine_state` makes them.
"""

import msgspec

from gradviz.analysis.tables.passes import Status
from gradviz.trace.probe import Push, Role


class QueuedTask(msgspec.Struct, frozen=True, kw_only=True, gc=False):
    """A task in a ready queue.

    Attributes:
        task: The pass.
        node: Node that is to run, -1 for a wake-up.
        what: A node, a root or a wake-up.
        reentrant_depth: Of the pass: what is nested deeper runs first.
        sequence_nr: Of two of a depth the one made later runs first; -1 is the
            largest, that of every AccumulateGrad.
        pushed_by: The node that made it ready, -1 for none.
        thread: Thread that pushed it.
        pushed_ns: Time of the push, on the trace's clock.
    """

    task: int
    node: int
    what: Push
    reentrant_depth: int
    sequence_nr: int
    pushed_by: int
    thread: int
    pushed_ns: int


class Running(msgspec.Struct, frozen=True, gc=False):
    """A node that a thread is inside of, and since when."""

    task: int
    node: int
    started_ns: int


class WorkingThread(msgspec.Struct, frozen=True, kw_only=True):
    """A thread that works for the engine, or runs a node.

    Attributes:
        thread: The trace's number for it.
        roles: Its roles for the engine, the innermost last; a thread that called
            backward is a caller for so long. Empty where its beginning was not seen.
        running: The nodes it is inside of, the innermost last: several where a node
            calls backward.
        asleep_on: The empty queue that it sleeps on, None while it does not.
    """

    thread: int
    roles: tuple[Role, ...]
    running: tuple[Running, ...]
    asleep_on: int | None


class BufferedGradient(msgspec.Struct, frozen=True, gc=False):
    """A gradient that has reached a node: from which, at which input, of which size."""

    producer: int
    input_nr: int
    size_bytes: int


class Countdown(msgspec.Struct, frozen=True, kw_only=True):
    """A node that has been given gradients and has not run yet.

    Attributes:
        task: The pass.
        node: The node.
        remaining: Gradients that it still waits for.
        gradients: Those it has, in the order in which they came. What comes to one
            input is summed up.
    """

    task: int
    node: int
    remaining: int
    gradients: tuple[BufferedGradient, ...]


class OpenPass(msgspec.Struct, frozen=True, kw_only=True, gc=False):
    """A call of backward that has not returned.

    Attributes:
        task: Its id.
        parent: The pass from inside which it was called, -1 for none.
        reentrant_depth: Number of passes that it is nested in.
        thread: Thread that called.
        began_ns: Time of its start.
        status: ``unfinished`` while its nodes run; then how it ended, though its
            caller has not left yet.
        num_nodes: Number of nodes that take part, -1 before they are counted.
        num_started: Number of them that were started so far.
    """

    task: int
    parent: int
    reentrant_depth: int
    thread: int
    began_ns: int
    status: Status
    num_nodes: int
    num_started: int


class PendingWait(msgspec.Struct, frozen=True, gc=False):
    """A stream does nothing before an event of another one: asked for by which node."""

    event: int
    awaited: str
    node: int
    producer: int


class BusyStream(msgspec.Struct, frozen=True, kw_only=True):
    """Pending work of a device's stream.

    Attributes:
        stream: Such as ``sim:0/1``.
        num_kernels: Number of kernels that it was given and has not done.
        waits: Its waits, in the order of the requests.
    """

    stream: str
    num_kernels: int
    waits: tuple[PendingWait, ...]


class Moment(msgspec.Struct, frozen=True, kw_only=True):
    """Everything, right after one event.

    Attributes:
        seq: The event.
        t_ns: Time of that event, on the trace's clock.
        passes: That are open, in the order of their start. Of more than were asked
            for, the last.
        num_passes: Number of open passes.
        queues: Queue -> what is in it, in the order in which it would be popped if
            nothing else came; queues that are empty are not there. Of more than were
            asked for, the first.
        num_queued: Queue -> how many tasks are in it.
        workers: In the order of their numbers. Of more than were asked for, the first.
        num_workers: Number of workers.
        countdowns: Nodes that have got a gradient: first those that wait for more,
            then those that have all, each in the order in which they got the first.
            Of more than were asked for, the first.
        num_countdowns: Number of such nodes.
        num_waiting: Number of them that wait for more.
        streams: That have something to do or to wait for, by name.
    """

    seq: int
    t_ns: int
    passes: tuple[OpenPass, ...]
    num_passes: int
    queues: dict[int, tuple[QueuedTask, ...]]
    num_queued: dict[int, int]
    workers: tuple[WorkingThread, ...]
    num_workers: int
    countdowns: tuple[Countdown, ...]
    num_countdowns: int
    num_waiting: int
    streams: tuple[BusyStream, ...]
