"""What producers call: the one class through which anything is reported.

A producer (engine, ops, tensors, backends) holds a :class:`Probe` or ``None`` and
knows nothing else of traces. Every method is one thing that can happen; together they
are the complete list. Each does nothing here, so a listener overrides what it wants.

What a producer promises:

* Arguments are integers (ids, counts, nanoseconds, members of the enums below) or
  short strings, never tensors: a trace keeps no gradient alive.
* A change made under a lock is reported under that lock, so that the order in the
  trace is the order in which things happened.
* Nothing is computed, copied or synchronised merely in order to report it.

What a listener promises: to return quickly, never to raise, and never to call back
into the engine. The recorder of `gradviz.trace.recorder` keeps that promise; other
listeners are wrapped in a guard when they are installed (see `Guard`).

A site in a producer is two lines, and costs about ten nanoseconds when nobody listens::

    if probe := graph_task.probe:
        probe.node_started(graph_task.id, node.id)
"""

import contextlib
import enum
import functools
import warnings
from collections.abc import Callable, Hashable, Iterable, Iterator, Mapping, Sequence
from typing import Final

from gradviz.trace.node_like import NodeLike
from gradviz.trace.node_reports import NodeReports

# Values of enums are for ever, as codes of events are. No trace holds these, which were
# kept for what no engine ever did, and none may get another meaning: 3 of Push, 1 and 2
# of Skip, 5 of Hook.


class Push(enum.IntEnum):
    """What kind of task was pushed to a ready queue."""

    NODE = 0
    ROOT = 1
    WAKE_UP = 2


class How(enum.IntEnum):
    """How a gradient reached its place."""

    FIRST = 0
    IN_PLACE = 1
    OUT_OF_PLACE = 2
    STOLEN = 3
    COPIED = 4
    UNDEFINED = 5
    UNKNOWN = 6


class Skip(enum.IntEnum):
    """Why a node was popped and not executed."""

    ERROR = 0


class Role(enum.IntEnum):
    """What a thread does for the engine."""

    CALLER = 0
    DEVICE = 1
    POOL = 2


class Hook(enum.IntEnum):
    """Which of a node's hooks was called.

    The first two kinds, which are those of its tensors, are called for a gradient that
    is captured, too, where the node itself does not run.
    """

    TENSOR_PRE = 0
    RETAINS_GRAD = 1
    PRE = 2
    POST = 3
    POST_ACCUMULATE_GRAD = 4


#: Of no node it is told which line made it.
NO_LINES: Final[Mapping[int, str]] = {}


class Probe:
    """Everything that can happen, one method each; does nothing.

    Every method is called by the thread on which the thing happened. `task` is the id
    of a GraphTask, `node` that of a Node, `queue` that of a ReadyQueue; -1 is none.
    """

    __slots__ = ()

    # --- graph ----------------------------------------------------------------

    def node_created(self, node: NodeLike) -> None:
        """The forward pass made a node; its edges may still be missing."""

    def nodes_defined(
        self, nodes: Iterable[NodeLike], made_at: Mapping[int, str] = NO_LINES
    ) -> None:
        """These nodes are about to take part in a backward pass.

        Called once a GraphTask, after `task_begun`, with every node of its graph.
        `made_at` has the lines that made them, by id, as far as these are known of
        nodes that nobody reported with `node_created`.
        """

    def tensor_saved(self, node: int, size_bytes: int) -> None:
        """A node kept a tensor for its backward."""

    def stack_taken(self, node: int, stack: str) -> None:
        """The lines that the program was inside of when it made a node.

        Found out by who records, if it was asked to.
        """

    # --- task -----------------------------------------------------------------

    def task_begun(
        self,
        task: int,
        *,
        parent: int,
        reentrant_depth: int,
        owner: int,
        num_roots: int,
        num_outputs: int,
        keep_graph: bool,
        create_graph: bool,
    ) -> None:
        """A backward pass began; `owner` is a device index, -1 for the caller."""

    def dependencies_counted(self, task: int, num_nodes: int, num_edges: int) -> None:
        """The graph was walked and every incoming edge counted."""

    def task_completed(self, task: int) -> None:
        """Every node ran and the callbacks returned."""

    def task_failed(self, task: int, node: int, error: str) -> None:
        """The pass ends with this error, the first one; `node` raised it, or -1."""

    def callback_run(self, task: int, index: int) -> None:
        """A final callback is about to run."""

    def capture_taken(self, task: int, node: int, output_index: int) -> None:
        """A gradient became a result of the call."""

    # --- queue ----------------------------------------------------------------

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
            what: What kind of task.
        """

    def task_popped(self, task: int, node: int, queue: int, queue_length: int) -> None:
        """A task left a queue, which then held `queue_length` others."""

    def queue_waited(self, queue: int, waited_ns: int) -> None:
        """A thread found its queue empty and slept that long."""

    # --- node -----------------------------------------------------------------

    def node_started(self, task: int, node: int) -> None:
        """A thread begins to evaluate a node."""

    def node_completed(self, task: int, node: int) -> None:
        """The node ran and its gradients were handed on."""

    def node_failed(self, task: int, node: int, error: str) -> None:
        """The node, or one of its hooks or checks, raised."""

    def node_skipped(self, task: int, node: int, reason: Skip) -> None:
        """A popped node was not executed."""

    def hook_called(self, task: int, node: int, hook: Hook, index: int) -> None:
        """A hook is about to be called: the `index`-th of its kind."""

    def hook_returned(self, task: int, node: int, hook: Hook, index: int) -> None:
        """That hook has returned; not reported of one that raised."""

    def unexplained(self, task: int, node: int, text: str) -> None:
        """What was seen of a pass that is watched from outside does not fit the rules.

        Or something of it could not be seen, which `text` says.
        """

    # --- buffer ---------------------------------------------------------------

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
        """The gradients that `node` was given were let go."""

    # --- stream ---------------------------------------------------------------
    #
    # A stream is called by its text, such as "sim:0/1": the second stream of sim:0.

    def event_recorded(self, task: int, node: int, stream: str, event: int) -> None:
        """An event marks the work that a stream has so far: that of `node`, or -1."""

    def stream_waited(
        self, task: int, node: int, stream: str, event: int, producer: int
    ) -> None:
        """From now on `stream`, where `node` works, waits for `event` of `producer`.

        The latter two are -1 where a user's program asked for it.
        """

    def leaf_stream_synced(
        self, task: int, stream: str, caller_stream: str, event: int
    ) -> None:
        """As a pass ends: its caller's stream waits for one that made a gradient."""

    def event_synchronized(self, event: int) -> None:
        """The host knows that an event has happened: it has waited for it, or asked."""

    def stream_synchronized(self, stream: str) -> None:
        """The host knows that all work of a stream is done: it has waited, or asked."""

    def device_synchronized(self, device: str) -> None:
        """The host has waited for all streams of a device."""

    def kernel_launched(self, kernel: int, stream: str, name: str) -> None:
        """Work was put into a stream; the accesses that follow are its own.

        Reported by the launching thread, in the order of the stream. `kernel` is
        unique in the process.
        """

    def array_accessed(
        self, kernel: int, memory: int, layout: str, writes: bool
    ) -> None:
        """`kernel` reads, or writes, elements of an array.

        Args:
            kernel: Which.
            memory: The allocation; each has an id of its own, memory that is used
                again too.
            layout: Which bytes of it, as ``offset;shape;strides;itemsize`` with commas
                between the numbers of a shape: ``0;2,3;24,8;8``.
            writes: Whether it writes.
        """

    def host_accessed(self, memory: int, layout: str, writes: bool) -> None:
        """The program reads, or writes, memory that devices copy from and to.

        The arguments are those of `array_accessed`. That memory has no stream: its
        `memory_freed` names an empty one.
        """

    def stream_named(self, stream: str, name: str, location: str) -> None:
        """What the program calls a stream, and the line that made it; empty: unknown.

        Found out by who records, when the stream is used.
        """

    def kernel_ran(self, kernel: int, began_ns: int, ended_ns: int) -> None:
        """When the device did it, on the recording's clock; reported afterwards."""

    def memory_allocated(self, memory: int, stream: str, size_bytes: int) -> None:
        """Memory was taken for an array, for work of that stream."""

    def memory_shared(self, memory: int, stream: str) -> None:
        """`record_stream`: it is not used again before that stream has come so far."""

    def memory_freed(self, memory: int, stream: str) -> None:
        """The last array in it is gone; work of its own stream may use it again."""

    # --- worker ---------------------------------------------------------------

    def thread_started(self, device: int, role: Role) -> None:
        """This thread begins to work for the engine."""

    def thread_exited(self, device: int, role: Role) -> None:
        """This thread no longer works for the engine."""

    def reentrant_entered(self, task: int, depth: int) -> None:
        """A backward began inside a backward, on this thread."""

    def reentrant_left(self, task: int, depth: int) -> None:
        """That inner backward returned or raised."""

    def pool_thread_spawned(self, num_threads: int) -> None:
        """The reentrancy pool grew to `num_threads`."""

    def told(
        self, thread: int, name: str, rows: Mapping[Hashable, Sequence[int | str]]
    ) -> None:
        """What somebody who watches another engine has to tell, all of it at once.

        Args:
            thread: The operating system's number of the thread on which it happened.
            name: What that is called, if it has reported nothing itself.
            rows: Rows of the layouts of `joined`, one after the other: ``t_ns``, on the
                clock of events, ``task``, ``node``, and the columns of the kind.
        """

    def queue_defined(self, queue: int, name: str, device: int) -> None:
        """A ready queue exists, for the device of this index (-1: a caller's)."""

    # --- the program's threads ---------------------------------------------------
    #
    # What they leave for each other has a key: a thread, or the object it is left in.
    # To leave is reported before it is done, to take afterwards.

    def handovers_heard(self) -> None:
        """From now on all below is reported, and nothing of it is missed."""

    def program_thread_begun(self, key: int) -> None:
        """The calling thread is about to start another one."""

    def program_thread_entered(self, key: int) -> None:
        """The calling thread is that one, and begins."""

    def program_thread_left(self, key: int) -> None:
        """The calling thread is that one, and is done."""

    def handed_over(self, key: int) -> None:
        """The calling thread is about to leave something there."""

    def taken_over(self, key: int) -> None:
        """The calling thread has taken what was left there, a thread's end too."""

    # --- what is reported of every node ------------------------------------------
    #
    # Some of the above goes this way, and what happens to most nodes in three calls
    # instead of eight. A listener that does not override this hears the eight.

    def for_this_thread(self) -> NodeReports:
        """To whom the calling thread alone reports the nodes that it makes and runs.

        Who runs a pass that it called for asks once, who makes a node asks each time.
        A listener that has to know the thread can find out here, and not at each event.
        """
        return OneByOne(self)

    # --- user -----------------------------------------------------------------

    def mark(self, text: str) -> None:
        """The user's program said where it is."""

    def step_begun(self, step: int) -> None:
        """A training step of the user's program begins."""

    def forward_begun(self, call: int, module: str, name: str) -> None:
        """A module was called, its hooks included.

        Args:
            call: Unique in the process.
            module: Its path in the model that runs, such as ``Net.layers.0``.
            name: Of its class.
        """

    def forward_ended(self, call: int, failed: bool) -> None:
        """That call returns, or raises if it `failed`."""

    def optimizer_begun(self, call: int, name: str) -> None:
        """``step`` of an optimizer of a class of this name was called."""

    def optimizer_ended(self, call: int, failed: bool) -> None:
        """That call returns, or raises if it `failed`."""

    # --- workers --------------------------------------------------------------

    def worker_began(self, worker: int, world_size: int, name: str) -> None:
        """A worker of this process has met all others.

        Args:
            worker: Its rank.
            world_size: How many there are.
            name: How others may call it.
        """

    def worker_ended(self, worker: int) -> None:
        """It takes no more requests."""

    def clock_compared(
        self, worker: int, peer: int, peer_ns: int, round_trip_ns: int
    ) -> None:
        """A worker has just heard what another one's clock says.

        Args:
            worker: Which one asked.
            peer: Which one answered.
            peer_ns: What its clock said, some time within the round trip.
            round_trip_ns: How long the answer took.
        """

    def message_sent(
        self,
        task: int,
        node: int,
        worker: int,
        peer: int,
        message: int,
        context: int,
        pass_id: int,
        size_bytes: int,
    ) -> None:
        """A message that is part of a graph is about to leave.

        Args:
            task: The pass whose gradients it has, -1 in the forward pass.
            node: The send, or the receive from which gradients go back; -1 for none.
            worker: From where it goes.
            peer: Where to.
            message: The number that the send and the receive have, wherever they are.
            context: In which context; the same on all workers.
            pass_id: The number of the pass that is the same on all workers, or -1.
            size_bytes: Of its arrays.
        """

    def message_received(
        self,
        task: int,
        node: int,
        worker: int,
        peer: int,
        message: int,
        context: int,
        pass_id: int,
        size_bytes: int,
    ) -> None:
        """It has come to `worker` from `peer`; other arguments as of `message_sent`."""


class OneByOne(NodeReports):
    """Reports of nodes for a listener that hears each event by itself."""

    __slots__ = ("_probe",)

    def __init__(self, probe: Probe) -> None:
        self._probe = probe

    def node_recorded(self, node: NodeLike, size_bytes: int) -> None:
        """See `NodeReports`."""
        self._probe.node_created(node)
        self._probe.tensor_saved(node.id, size_bytes)

    def node_taken(self, task: int, node: int, queue: int, queue_length: int) -> None:
        """See `NodeReports`."""
        self._probe.task_popped(task, node, queue, queue_length)
        self._probe.node_started(task, node)

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
        self.gradient_buffered(task, node, producer, input_nr, 0, size_bytes, how)
        self.task_pushed(
            task,
            node,
            queue,
            reentrant_depth,
            sequence_nr,
            queue_length,
            outstanding,
            producer,
            Push.NODE,
        )

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
        self.buffer_freed(task, node, freed_bytes)
        self.node_readied(
            task,
            receiver,
            node,
            input_nr,
            size_bytes,
            How.FIRST,
            queue,
            reentrant_depth,
            sequence_nr,
            queue_length,
            outstanding,
        )
        self.node_completed(task, node)


def _told_to_probe(name: str) -> Callable[..., None]:
    """A method of `OneByOne` that calls the probe's of the same name."""

    @functools.wraps(getattr(Probe, name))
    def report(self: OneByOne, *fields: object, **named: object) -> None:
        getattr(self._probe, name)(*fields, **named)

    return report


#: What `NodeReports` has from `Probe`; the rest are several such reports in one.
NODE_REPORTS: Final = tuple(
    name for name in vars(NodeReports) if name in vars(Probe) and name[0] != "_"
)

for _name in NODE_REPORTS:
    setattr(OneByOne, _name, _told_to_probe(_name))


class Guard(Probe):
    """Listens for a listener that may fail: its first error silences it.

    A backward must never be harmed by who watches it. The first exception drops the
    listener for good and is told once, as a warning; whatever it missed is its loss.
    """

    __slots__ = ("__dict__", "_listener")

    def __init__(self, listener: Probe) -> None:
        self._listener = listener
        for name in METHODS:
            if getattr(type(listener), name) is not getattr(Probe, name):
                setattr(self, name, self._guarded(name))

    def _guarded(self, name: str) -> Callable[..., None]:
        method = getattr(self._listener, name)

        def call(*args: object, **kwargs: object) -> None:
            try:
                method(*args, **kwargs)
            except Exception as error:  # noqa: BLE001 - whatever it is, it is not ours
                self._drop(name, error)

        return call

    def _drop(self, name: str, error: Exception) -> None:
        for method in METHODS:
            self.__dict__.pop(method, None)
        with contextlib.suppress(Exception):  # a warning filter may raise
            warnings.warn(
                f"a gradviz listener failed and was dropped: "
                f"{type(self._listener).__name__}.{name} raised {error!r}; "
                f"the backward pass goes on, what the listener recorded is incomplete",
                RuntimeWarning,
                stacklevel=2,
            )


class Tee(Probe):
    """Passes everything on to several listeners, in the order of their arrival."""

    __slots__ = ("__dict__", "listeners")

    def __init__(self, listeners: Sequence[Probe]) -> None:
        self.listeners = tuple(listeners)
        for name in METHODS:
            calls = tuple(getattr(listener, name) for listener in self.listeners)
            setattr(self, name, self._all(calls))

    @staticmethod
    def _all(calls: tuple[Callable[..., None], ...]) -> Callable[..., None]:
        def call(*args: object, **kwargs: object) -> None:
            for one in calls:
                one(*args, **kwargs)

        return call


#: One method for each thing that can happen.
METHODS: Final = tuple(
    name
    for name, value in vars(Probe).items()
    if callable(value) and not name.startswith("_") and name != "for_this_thread"
)

#: Whom a new GraphTask reports to; None when nobody listens. Replaced as a whole by
#: `install` and `uninstall`, never mutated, so that reading it needs no lock.
current: Probe | None = None

#: Everyone who listens: while it is empty, nobody need look at `current`. Changed by
#: single calls into C, see Note [Publishing]. Code that runs for each node asks it, for
#: an attribute of a module takes eight times as long to read as an object imported.
LISTENERS: Final[list[Probe]] = []


def install(listener: Probe) -> None:
    """Make `listener` hear of everything that begins from now on. Any thread."""
    LISTENERS.append(listener)
    _publish()


def uninstall(listener: Probe) -> None:
    """Stop new work from reporting to `listener`; unknown listeners are ignored.

    A backward that began before still holds its probe and reports to its end. Any
    thread.
    """
    with contextlib.suppress(ValueError):
        LISTENERS.remove(listener)
    _publish()


@contextlib.contextmanager
def installed(listener: Probe) -> Iterator[Probe]:
    """Install `listener` for a block."""
    install(listener)
    try:
        yield listener
    finally:
        uninstall(listener)


def _publish() -> None:
    """Make `current` of those that are installed.

    Note [Publishing]
    ~~~~~~~~~~~~~~~~~
    Recordings begin and end on any thread, in signal handlers, and in the child of a
    fork, where a lock might be held by a thread that is gone. So there is none: whoever
    changes the list sets `current` from a copy of it, and does so again if the list is
    another one by then. The last to set it has seen, afterwards, that its copy is the
    list, and whoever changes the list later sets `current` later.
    """
    global current
    seen = None
    while seen != (listeners := tuple(LISTENERS)):
        seen = listeners
        match listeners:
            case ():
                current = None
            case (only,):
                current = only
            case _:
                current = Tee(listeners)
