"""The probe: the one class through which producers report anything.

A producer (engine, ops, tensors, backends) holds a :class:`Probe` or ``None`` and
knows nothing else of traces. Every method is one thing that can happen; together they
are the complete list. Each does nothing here, so a listener overrides what it wants.

What a producer promises:

* Arguments are integers (ids, counts, nanoseconds, members of the enums below) or
  short strings, never tensors: a trace keeps no gradient alive.
* A change made under a lock is reported under that lock, so that the order in the
  trace is the order in which things happened.
* Nothing is computed, copied or synchronized merely in order to report it.

What a listener promises: to return quickly, never to raise, and never to call back into
the engine. The recorder of `gradviz.trace.recording.recorder` keeps that promise; other
listeners are wrapped in a guard when they are installed (see `Guard`).

A site in a producer is two lines, and costs about ten nanoseconds when nobody listens::

    if probe := graph_task.probe:
        probe.node_started(graph_task.id, node.id)
"""

import contextlib
import enum
import functools
import inspect
import operator
import warnings
from collections.abc import Callable, Hashable, Iterable, Iterator, Mapping, Sequence
from typing import TYPE_CHECKING, Final, NamedTuple

from gradviz.trace.node_reports import JOINED, JoinedEvent, NodeReports
from gradviz.trace.node_reports import How as How  # noqa: PLC0414 - re-exported
from gradviz.trace.node_reports import Push as Push  # noqa: PLC0414 - re-exported

if TYPE_CHECKING:  # what reads a trace needs the enums here, and no protocol of nodes
    from gradviz.trace.node_like import NodeLike

# Values of enums are forever, as codes of events are. No trace holds these, which were
# kept for what no engine ever did, and none may get another meaning: 3 of Push, 1 and 2
# of Skip, 5 of Hook.


class Skip(enum.IntEnum):
    """Reason why a node was popped and not executed."""

    ERROR = 0


class Role(enum.IntEnum):
    """Role of a thread in the engine."""

    CALLER = 0
    DEVICE = 1
    POOL = 2


class Hook(enum.IntEnum):
    """Kind of a node's hook.

    The first two kinds, those of its tensors, are also called for a captured gradient
    if the node itself does not run. Those of a module are called for the node through
    which the module's arguments, or its results, pass.
    """

    TENSOR_PRE = 0
    RETAINS_GRAD = 1
    PRE = 2
    POST = 3
    POST_ACCUMULATE_GRAD = 4
    MODULE_PRE = 6
    MODULE = 7


class Checked(enum.IntEnum):
    """Kind of value that a check for NaN and infinity looks at.

    A result is that of an op or a module of the forward, a gradient one that a node
    made, a sum one that a node was given, a loss a root of a pass, and a parameter one
    that a step of an optimizer has changed.
    """

    RESULT = 0
    GRADIENT = 1
    SUM = 2
    LOSS = 3
    PARAMETER = 4


class Tracking(enum.IntEnum):
    """Part that the tensors which a module takes, or returns, have in a graph."""

    UNKNOWN = 0
    NO_TENSORS = 1
    TRACKED = 2
    """One of them requires a gradient."""
    DISABLED = 3
    """Gradients are disabled (``no_grad``); of results, none requires one besides."""
    INTEGERS = 4
    """None does, and none has a dtype that could."""
    UNTRACKED = 5
    """None does, though gradients are enabled."""


#: No more parameters of a model are described.
MAX_PARAMETERS: Final = 10_000

#: Suffix of the name of a queue that was inferred, and of views' texts of whatever was.
INFERRED_SUFFIX: Final = " (inferred)"

#: Of no node it is told which line made it.
NO_LINES: Final[Mapping[int, str]] = {}


class ModelParameter(NamedTuple):
    """A parameter of a model; holds no tensor.

    Attributes:
        names: Its paths in the model, which begin with the model's name: several if
            modules share it.
        shape: Its shape, None if it has none yet.
        dtype: Its dtype, as text.
        device: The device it is on, as text.
        requires_grad: True if it requires a gradient.
    """

    names: tuple[str, ...]
    shape: tuple[int, ...] | None
    dtype: str
    device: str
    requires_grad: bool


class Model(NamedTuple):
    """A model, as far as its parameters go.

    Attributes:
        name: The first part of the paths of its modules.
        parameters: Its parameters; of more than `MAX_PARAMETERS` the first.
        num_parameters: Number of all its parameters.
    """

    name: str
    parameters: tuple[ModelParameter, ...]
    num_parameters: int


class Probe(NodeReports):
    """Everything that can happen, one method each; does nothing.

    The reports on which every node waits are those of `NodeReports`.

    Every method is called by the thread on which the thing happened. `task` is the id
    of a GraphTask, `node` that of a Node, `queue` that of a ReadyQueue; -1 is none.
    """

    __slots__ = ("__weakref__",)

    # --- graph ----------------------------------------------------------------

    def nodes_defined(
        self, nodes: "Iterable[NodeLike]", made_at: Mapping[int, str] = NO_LINES
    ) -> None:
        """These nodes are about to take part in a backward pass.

        Called once a GraphTask, after `task_begun`, with every node of its graph.
        `made_at` has the lines that made them, by id, as far as these are known of
        nodes that nobody reported with `node_created`. Nobody changes it later.
        """

    def nodes_placed(
        self, nodes: "Sequence[NodeLike]", made_at: Mapping[int, str] = NO_LINES
    ) -> None:
        """These nodes were made at other places than their definitions say.

        Called by a producer that learns only from a pass where its nodes were made:
        after the pass has run and before it is told how it ended. The module and the
        line that a node has now replace those it had, also by none.
        """

    def tensor_saved(self, node: int, size_bytes: int) -> None:
        """A node kept a tensor for its backward; `UNKNOWN_BYTES` if unknown."""

    def saved_elsewhere(
        self, node: int, parameter_bytes: int, shared_bytes: int
    ) -> None:
        """A node kept further tensors whose memory does not count for it.

        Args:
            node: The node.
            parameter_bytes: Memory of parameters, leaves and buffers, which hold it
                anyway; told for the first of several nodes that keep the same.
            shared_bytes: Tensors in memory that counts for another tensor.
        """

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

    def task_popped(self, task: int, node: int, queue: int, queue_length: int) -> None:
        """A task left a queue, which then held `queue_length` others."""

    def queue_waited(self, queue: int, waited_ns: int) -> None:
        """A thread found its queue empty and slept that long."""

    # --- node -----------------------------------------------------------------

    def node_started(self, task: int, node: int) -> None:
        """A thread begins to evaluate a node."""

    def node_failed(self, task: int, node: int, error: str) -> None:
        """The node, or one of its hooks or checks, raised."""

    def node_skipped(self, task: int, node: int, reason: Skip) -> None:
        """A popped node was not executed."""

    def hook_called(
        self,
        task: int,
        node: int,
        hook: Hook,
        index: int,
        function: str,
        defined_at: str,
        registered_at: str,
        target: str,
    ) -> None:
        """A hook is about to be called: the `index`-th of its kind.

        The texts are those of `hook_names.HookName`.
        """

    def hook_returned(self, task: int, node: int, hook: Hook, index: int) -> None:
        """The hook has returned; not reported for one that raised."""

    def unexplained(self, task: int, node: int, text: str) -> None:
        """The events of a pass watched from outside do not fit the rules.

        Or a part of it could not be seen, as `text` says.
        """

    def not_finite(  # noqa: PLR0913, PLR0917 - an event has the fields it has
        self,
        task: int,
        node: int,
        what: Checked,
        index: int,
        is_nan: bool,
        given_infinity: bool,
        smallest: str,
        largest: str,
        call: int,
        module: str,
        name: str,
        location: str,
    ) -> None:
        """A check found the first NaN, or the first infinity, of a forward or a pass.

        Args:
            task: The pass; -1 in the forward.
            node: The node that made it, was given it, or belongs to the op.
            what: Kind of value.
            index: Index of the result, gradient or root.
            is_nan: Tells a NaN from an infinity.
            given_infinity: True if the inputs had an infinity.
            smallest: The least magnitude among the finite, nonzero elements of the
                inputs, as `repr` writes a float; empty if unknown.
            largest: The greatest one, likewise.
            call: The module call that it happened in, -1 if unknown.
            module: The path of that module.
            name: Of the op, the node or the parameter.
            location: The line that called the op, empty if the node's own line is it.
        """

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
        """The caller's stream waits, as its pass ends, for one that made a gradient."""

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
            kernel: Kernel that reads or writes.
            memory: The allocation; each has an id of its own, memory that is used
                again too.
            layout: Bytes of it that are accessed, as ``offset;shape;strides;itemsize``
                with commas between the numbers of a shape: ``0;2,3;24,8;8``.
            writes: True if it writes.
        """

    def host_accessed(self, memory: int, layout: str, writes: bool) -> None:
        """The program reads, or writes, memory that devices copy from and to.

        The arguments are those of `array_accessed`. That memory has no stream: its
        `memory_freed` names an empty one.
        """

    def stream_named(self, stream: str, name: str, location: str) -> None:
        """The program's name for a stream, and the line that made it; empty: unknown.

        The recorder finds it out when the stream is used.
        """

    def kernel_ran(self, kernel: int, began_ns: int, ended_ns: int) -> None:
        """The device ran the kernel: times of the recording's clock, reported later."""

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
        """The inner backward returned or raised."""

    def pool_thread_spawned(self, num_threads: int) -> None:
        """The reentrancy pool grew to `num_threads`."""

    def rows_reported(
        self, thread: int, name: str, rows: Mapping[Hashable, Sequence[int | str]]
    ) -> None:
        """Rows of events of another engine, watched from outside, all at once.

        Args:
            thread: The operating system's number of the thread on which it happened.
            name: Name for that thread, if it has reported nothing itself.
            rows: Rows of the layouts of `joined`, one after the other: ``t_ns``, on the
                clock of events, ``task``, ``node``, and the columns of the kind.
        """

    def call_returned(self) -> None:
        """A call of another engine returns to the program, on this thread.

        All that will be known of it has been reported; no lock is held.
        """

    def queue_defined(self, queue: int, name: str, device: int) -> None:
        """A ready queue exists, for the device of this index (-1: a caller's)."""

    def model_defined(self, model: "Model") -> None:
        """A model has these parameters, which backward passes may reach.

        Called whenever the model runs, or whenever a pass begins, with the same object
        until the model has changed.
        """

    # --- the program's threads ---------------------------------------------------
    #
    # Hand-overs between threads have a key: a thread, or the object it is left in.
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
        """The calling thread took over work left there, or a thread's end."""

    # --- reports of every node ---------------------------------------------------

    def for_this_thread(self) -> NodeReports:
        """Return the listener to the nodes that the calling thread makes and runs.

        Who runs a pass that it called for asks once, who makes a node asks each time.
        A listener that has to know the thread can find out here, and not at each event.
        """
        return self

    def node_recorded(self, node: "NodeLike", size_bytes: int) -> None:
        """See `NodeReports`; by hand, since `node_created` takes the node itself."""
        self.node_created(node)
        self.tensor_saved(node.id, size_bytes)

    # --- user -----------------------------------------------------------------

    def mark(self, text: str) -> None:
        """The user's program said where it is."""

    def step_begun(self, step: int) -> None:
        """A training step of the user's program begins."""

    def forward_begun(
        self,
        call: int,
        module: str,
        name: str,
        arguments: Tracking = Tracking.UNKNOWN,
        location: str = "",
    ) -> None:
        """A module was called, its hooks included.

        Args:
            call: Unique in the process.
            module: Its path in the model that runs, such as ``Net.layers.0``.
            name: Of its class.
            arguments: Tracking of its arguments: if a gradient can leave it through
                them.
            location: The line that called it; empty where `arguments` require a
                gradient, or it is not known.
        """

    def forward_ended(
        self, call: int, failed: bool, results: Tracking = Tracking.UNKNOWN
    ) -> None:
        """The call returns, or raises if it `failed`.

        Args:
            call: The number of the call.
            failed: True if it raises.
            results: Tracking of its results: if a gradient can come into it through
                them.
        """

    def tensor_changed(
        self, task: int, operation: str, location: str, sequence_nr: int
    ) -> None:
        """A pass fails for a change in place, and such a tensor is alive.

        It has the shape, the type and the version of the one that was changed.

        Args:
            task: The pass.
            operation: The name of the node that made the tensor, or changed it last;
                empty if it is known that the line changed it.
            location: The line that made that node.
            sequence_nr: The node's.
        """

    def gradient_measured(self, task: int, node: int, norm: str) -> None:
        """A check of values has read the ``.grad`` of a leaf.

        Args:
            task: The pass that has added to it.
            node: The AccumulateGrad of the leaf.
            norm: Its Euclidean norm, as `repr` writes a float.
        """

    def gradient_cut(self, operation: str, location: str) -> None:
        """An operation was given what requires a gradient, and its result needs none.

        Args:
            operation: Its name, such as ``detach``.
            location: The line that called it; empty if unknown.
        """

    def graph_kept(
        self,
        node: int,
        root: str,
        location: str,
        num_graphs: int,
        num_passes: int,
        num_nodes: int,
        size_bytes: int,
        holders: str,
    ) -> None:
        """Graphs that are alike stay alive from step to step of the program.

        Args:
            node: The node at which a backward through one of them would begin.
            root: The name of that node.
            location: The line that made it; empty if unknown, or told already.
            num_graphs: Number of these graphs.
            num_passes: Number of passes that began at a node of them.
            num_nodes: Their nodes, those that they share counted once.
            size_bytes: The memory that they save for a backward.
            holders: The variables that hold the first one, as text; empty if unknown.
        """

    def requires_grad_set(self, parameter: str, requires_grad: bool) -> None:
        """A module was called of which a parameter has another ``requires_grad``.

        All required a gradient until this is reported.

        Args:
            parameter: Its path in the model.
            requires_grad: True if it requires one from now on.
        """

    def parameter_held(self, optimizer: str, parameter: str, shape: str) -> None:
        """An optimizer, at its first step, holds a parameter.

        Args:
            optimizer: The name of its class, numbered where there are several.
            parameter: The path of the parameter; empty if it belongs to no module that
                is known.
            shape: Its shape, as text.
        """

    def optimizer_begun(self, call: int, name: str) -> None:
        """``step`` of an optimizer of a class of this name was called."""

    def optimizer_ended(self, call: int, failed: bool) -> None:
        """The call returns, or raises if it `failed`."""

    # --- workers --------------------------------------------------------------

    def worker_began(self, worker: int, world_size: int, name: str) -> None:
        """A worker of this process has met all others.

        Args:
            worker: Its rank.
            world_size: Number of workers.
            name: Name by which others may call it.
        """

    def worker_ended(self, worker: int) -> None:
        """It takes no more requests."""

    def clock_compared(
        self, worker: int, peer: int, peer_ns: int, round_trip_ns: int
    ) -> None:
        """A worker has received a reading of another one's clock.

        Args:
            worker: Rank of the worker that asked.
            peer: Rank of the worker that answered.
            peer_ns: Reading of that one's clock, at some time within the round trip.
            round_trip_ns: Time that the answer took.
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
            worker: Worker that it goes from.
            peer: Worker that it goes to.
            message: The number that the send and the receive have, wherever they are.
            context: The context; the same on all workers.
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

    # --- collectives ----------------------------------------------------------

    def collective_began(  # noqa: PLR0913, PLR0917 - an event has the fields it has
        self,
        task: int,
        node: int,
        collective: int,
        name: str,
        group: str,
        rank: int,
        world_size: int,
        size_bytes: int,
        model: str,
        bucket: int,
    ) -> None:
        """A collective operation between ranks began to run.

        Args:
            task: The pass that launched it, -1 if unknown.
            node: The node that launched it, -1 if unknown.
            collective: Unique in the process.
            name: Of the backend and the operation, such as ``gloo:all_reduce``.
            group: Name of its process group, empty if unknown.
            rank: This process in the group, -1 if unknown.
            world_size: Number of ranks in the group, -1 if unknown.
            size_bytes: Of the tensors it moves, -1 if unknown.
            model: The data-parallel model whose bucket it reduces, empty if unknown.
            bucket: Index of that bucket, -1 if unknown.
        """

    def collective_ended(self, task: int, node: int, collective: int) -> None:
        """A collective has finished on this rank."""

    def gradient_bucketed(
        self, task: int, node: int, model: str, bucket: int, size_bytes: int
    ) -> None:
        """The gradient that `node` accumulated went into a bucket of `model`."""


def _one_by_one(report: str) -> Callable[..., None]:
    """Return a method that reports each event of a joined report by itself.

    Raises:
        TypeError: The report does not say all that one of its events tells.
    """
    joined = getattr(NodeReports, report)
    parameters = tuple(inspect.signature(joined).parameters)[1:]
    calls = [
        (event.name, _arguments(report, parameters, event)) for event in JOINED[report]
    ]

    @functools.wraps(joined)
    def tell(self: Probe, *fields: object, **named: object) -> None:
        given = (*fields, *(named[one] for one in parameters[len(fields) :]))
        for name, arguments in calls:
            getattr(self, name)(*[argument(given) for argument in arguments])

    return tell


def _arguments(
    report: str, parameters: tuple[str, ...], event: JoinedEvent
) -> list[Callable[[tuple[object, ...]], object]]:
    """Return how to get each argument of an event from those of a joined report."""
    arguments: list[Callable[[tuple[object, ...]], object]] = []
    for name in tuple(inspect.signature(getattr(Probe, event.name)).parameters)[1:]:
        source = event.source(name)
        if isinstance(source, int):
            arguments.append(functools.partial(_constant, source))
        elif source in parameters:
            arguments.append(operator.itemgetter(parameters.index(source)))
        else:
            raise TypeError(
                f"{report} tells {event.name} no {name}: give it a parameter {source}, "
                f"or {event.name} another source of it in JOINED of "
                f"gradviz.trace.node_reports"
            )
    return arguments


def _constant(value: int, given: tuple[object, ...]) -> int:
    del given
    return value


for _report in JOINED:
    if _report not in vars(Probe):
        setattr(Probe, _report, _one_by_one(_report))


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


#: The size of what somebody keeps and nobody can measure.
UNKNOWN_BYTES: Final = -1

#: One method for each thing that can happen.
METHODS: Final = tuple(
    name
    for name in dir(Probe)
    if name not in JOINED and name != "for_this_thread" and not name.startswith("_")
)

#: Listener to which a new GraphTask reports; None if there is none. Replaced as a whole
#: by `install` and `uninstall`, never mutated, so that reading it needs no lock.
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
    Recordings start and end on any thread, in signal handlers, and in the child of a
    fork, where a thread that no longer exists might hold a lock. So there is no lock: a
    thread that changes the list sets `current` from a copy of it, and does so again if
    the list has changed meanwhile. The last thread to set it has seen, afterwards, that
    its copy equals the list, and any later change of the list sets `current` later.
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
