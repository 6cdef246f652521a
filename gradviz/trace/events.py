"""The vocabulary: every event a trace can hold, as a typed record.

This module knows nothing of files or threads. It defines one frozen class per kind of
event, from which all else that deals with every kind follows: the writer, the reader,
the recorder, the JSON schema, the documentation, the tests.

Note [A new kind of event]
~~~~~~~~~~~~~~~~~~~~~~~~~~
A new kind takes three edits; if one is missing, the import fails:

* its class here, with a code never used before;
* its report, the method of `Probe` of the same name (``task_popped`` of `TaskPopped`),
  with parameters named after its fields. The recorder keeps them as they come;
* its rule, a row of the table in `rules`.

An event that happens to every node is no exception. If its report must be fast, it
belongs in `NodeReports`, from which `Probe` inherits it; then a test asks for the line
in two ``.pxd`` files and for the method of `NodeRows` that keeps it. If it happens
together with others, it is named in `node_reports.JOINED`: listeners, rows and files
follow from that.

``python -m tests.docs.trace_format`` then writes the union of all kinds, below, and the
table of docs/trace-format.md.

A released code is never reused; fields are only ever appended.
"""

import enum
import functools
import re
import typing
from typing import ClassVar, Final, Union

import msgspec

from gradviz.trace.probe import Checked, Hook, How, Push, Role, Skip, Tracking

#: The sequence_nr of every AccumulateGrad (PyTorch's UINT64_MAX). Columns are signed,
#: so it is kept as -1 in a file and turned back on the way out.
MAX_SEQUENCE_NR: Final = 2**64 - 1


def _snake_case(name: str) -> str:
    return re.sub("(?<=.)(?=[A-Z])", "_", name).lower()


class Event(
    msgspec.Struct,
    frozen=True,
    kw_only=True,
    tag_field="kind",
    tag=_snake_case,
    gc=False,  # numbers and texts lead nowhere
    repr_omit_defaults=True,
):
    """Fields common to all events.

    Attributes:
        code: Number of the kind in a file.
        seq: Index in the trace, from 0: order of time, ties by thread.
        t_ns: Time on the recording machine's monotonic clock, in nanoseconds.
        thread: The trace's number for the thread on which it happened.
        task: The GraphTask it belongs to, -1 for none.
        node: The node it is about, -1 for none.
        inferred: Nobody saw it: the event and its time follow from other events
            (an engine watched from outside reports less than ours).
    """

    code: ClassVar[int]
    seq: int
    t_ns: int
    thread: int
    task: int
    node: int
    inferred: bool = False


# --- graph --------------------------------------------------------------------


class NodeCreated(Event, frozen=True, kw_only=True):
    """The forward pass made a node, at a line of the user's program."""

    code = 1
    sequence_nr: int
    location: str


class TensorSaved(Event, frozen=True, kw_only=True):
    """A node kept a tensor of this size for its backward; null: of unknown size."""

    code = 2
    size_bytes: int | None


class StackTaken(Event, frozen=True, kw_only=True):
    """Stack of the program when it made a node: lines, the innermost first.

    Between two of them stands `` < ``.
    """

    code = 3
    stack: str


class SavedElsewhere(Event, frozen=True, kw_only=True):
    """A node kept further tensors whose memory does not count for it.

    Memory of parameters, other leaves and buffers of modules, which hold it anyway, and
    tensors in memory that counts for another tensor, such as views.
    """

    code = 4
    parameter_bytes: int
    shared_bytes: int


# --- task ---------------------------------------------------------------------


class TaskBegun(Event, frozen=True, kw_only=True):
    """A backward pass began, at a line of the user's program."""

    code = 10
    parent: int
    reentrant_depth: int
    owner: int
    num_roots: int
    num_outputs: int
    keep_graph: bool
    create_graph: bool
    location: str = ""


class DependenciesCounted(Event, frozen=True, kw_only=True):
    """The graph was walked; so many nodes and edges take part."""

    code = 11
    num_nodes: int
    num_edges: int


class TaskCompleted(Event, frozen=True, kw_only=True):
    """The pass ended well."""

    code = 12


class TaskFailed(Event, frozen=True, kw_only=True):
    """The pass ends with an error; `node` raised it, or -1."""

    code = 13
    error: str


class CallbackRun(Event, frozen=True, kw_only=True):
    """A final callback is about to run."""

    code = 14
    index: int


class CaptureTaken(Event, frozen=True, kw_only=True):
    """A gradient became a result of the call."""

    code = 15
    output_index: int


class TensorChanged(Event, frozen=True, kw_only=True):
    """The pass fails for a change in place, and a tensor like that one is alive.

    It has its shape, type and version. `operation` is the name of the node that made
    it, or changed it last, `location` the line and `sequence_nr` the number of that.
    Where `operation` is empty, the change itself was recorded, and `location` made it.
    """

    code = 16
    operation: str
    location: str
    sequence_nr: int


class GradientMeasured(Event, frozen=True, kw_only=True):
    """The ``.grad`` of the leaf of `node` had this norm once the pass had added to it.

    `norm` is the Euclidean one as `repr` writes a float. Reported where values are
    checked.
    """

    code = 18
    norm: str


class GradientCut(Event, frozen=True, kw_only=True):
    """An operation was given what requires a gradient, and its result requires none.

    `operation` is its name and `location` the line that called it.
    """

    code = 19
    operation: str
    location: str


class GraphKept(Event, frozen=True, kw_only=True):
    """Graphs that are alike stay alive from step to step of the program.

    `root` is the name of the node at which a backward through one of them would begin,
    `location` the line that made it, and `holders` the variables that hold the first
    one. `num_passes` counts the passes whose roots are in the graphs: 0 if no pass ran
    them.
    """

    code = 17
    root: str
    location: str
    num_graphs: int
    num_passes: int
    num_nodes: int
    size_bytes: int
    holders: str


# --- queue --------------------------------------------------------------------


class TaskPushed(Event, frozen=True, kw_only=True):
    """A task entered a ready queue; the fields are those of `Probe.task_pushed`."""

    code = 20
    queue: int
    reentrant_depth: int
    sequence_nr: int
    queue_length: int
    outstanding: int
    pushed_by: int
    what: Push


class TaskPopped(Event, frozen=True, kw_only=True):
    """A task left a ready queue."""

    code = 21
    queue: int
    queue_length: int


class QueueWaited(Event, frozen=True, kw_only=True):
    """A thread slept on its empty queue for `waited_ns`, until this event."""

    code = 22
    queue: int
    waited_ns: int


# --- node ---------------------------------------------------------------------


class NodeStarted(Event, frozen=True, kw_only=True):
    """A thread began to evaluate a node."""

    code = 30


class NodeCompleted(Event, frozen=True, kw_only=True):
    """The node ran and its gradients were handed on.

    Its thread was running for `thread_time_ns` of the time since it started, a backward
    that it called included; -1 where that is not known.
    """

    code = 31
    thread_time_ns: int = -1


class NodeFailed(Event, frozen=True, kw_only=True):
    """The node, or one of its hooks or checks, raised.

    `thread_time_ns` is that of `NodeCompleted`.
    """

    code = 32
    error: str
    thread_time_ns: int = -1


class NodeSkipped(Event, frozen=True, kw_only=True):
    """A popped node was not executed."""

    code = 33
    reason: Skip


class HookCalled(Event, frozen=True, kw_only=True):
    """A hook was about to be called: the `index`-th of its kind.

    `function` is its qualified name, `defined_at` the line of its definition,
    `registered_at` the line that registered it, `target` the module that it was
    registered on; each is empty where it is not known.
    """

    code = 34
    hook: Hook
    index: int
    function: str = ""
    defined_at: str = ""
    registered_at: str = ""
    target: str = ""


class HookReturned(Event, frozen=True, kw_only=True):
    """The hook that was called as the `index`-th of its kind has returned."""

    code = 35
    hook: Hook
    index: int


class Unexplained(Event, frozen=True, kw_only=True):
    """The events of a pass watched from outside do not fit the rules.

    `text` says what was unexpected, or what could not be seen. Everything inferred
    about the pass is in doubt from here on.
    """

    code = 36
    text: str


class NotFinite(Event, frozen=True, kw_only=True):
    """A check found the first NaN, or the first infinity, of a forward or of a pass.

    `node` made it, was given it, or is that of the op; `index` says which result,
    gradient or root it is. The magnitudes are those of the finite, nonzero elements of
    the inputs, as texts; empty where unknown. `location` is empty where the node's line
    is it, and `call` and `module` are those of the module that ran.
    """

    code = 39
    what: Checked
    index: int
    is_nan: bool
    given_infinity: bool
    smallest: str
    largest: str
    call: int
    module: str
    name: str
    location: str


# --- buffer -------------------------------------------------------------------


class GradientBuffered(Event, frozen=True, kw_only=True):
    """A gradient reached an input of `node`; `remaining` edges are still awaited."""

    code = 40
    producer: int
    input_nr: int
    remaining: int
    size_bytes: int
    how: How


class GradientAccumulated(Event, frozen=True, kw_only=True):
    """A gradient was put into a leaf's ``.grad``."""

    code = 41
    how: How


class BufferFreed(Event, frozen=True, kw_only=True):
    """The gradients that a node received were released."""

    code = 42
    size_bytes: int


# --- memory of devices ---------------------------------------------------------


class MemoryAllocated(Event, frozen=True, kw_only=True):
    """Memory was taken for an array, for work of that stream."""

    code = 45
    memory: int
    stream: str
    size_bytes: int


class MemoryShared(Event, frozen=True, kw_only=True):
    """Memory is not used again before that stream has come so far."""

    code = 46
    memory: int
    stream: str


class MemoryFreed(Event, frozen=True, kw_only=True):
    """The last array in it is gone; work of its own stream may use it again."""

    code = 47
    memory: int
    stream: str


# --- stream -------------------------------------------------------------------


class EventRecorded(Event, frozen=True, kw_only=True):
    """An event marks the work that a stream has so far: that of `node`, or -1."""

    code = 50
    stream: str
    event: int


class StreamWaited(Event, frozen=True, kw_only=True):
    """From now on `stream`, where `node` works, waits for `event` of `producer`."""

    code = 51
    stream: str
    event: int
    producer: int
    location: str = ""


class LeafStreamSynced(Event, frozen=True, kw_only=True):
    """The caller's stream waited for one that made a gradient, as its pass ended."""

    code = 52
    stream: str
    caller_stream: str
    event: int


class EventSynchronized(Event, frozen=True, kw_only=True):
    """The host has waited for an event, or asked and got a yes."""

    code = 53
    event: int


class StreamSynchronized(Event, frozen=True, kw_only=True):
    """The host has waited for all work of a stream, or asked and got a yes."""

    code = 54
    stream: str


class DeviceSynchronized(Event, frozen=True, kw_only=True):
    """The host has waited for all streams of a device."""

    code = 55
    device: str


class KernelLaunched(Event, frozen=True, kw_only=True):
    """Work was put into a stream, at a line of the user's program."""

    code = 56
    kernel: int
    stream: str
    name: str
    location: str = ""


class ArrayAccessed(Event, frozen=True, kw_only=True):
    """A kernel reads, or writes, the elements of an array given by `layout`."""

    code = 57
    kernel: int
    memory: int
    layout: str
    writes: bool


class HostAccessed(Event, frozen=True, kw_only=True):
    """A line of the user's program reads, or writes, memory that devices copy."""

    code = 59
    memory: int
    layout: str
    writes: bool
    location: str = ""


class StreamNamed(Event, frozen=True, kw_only=True):
    """The program's name for a stream, and the line that made it, or empty texts."""

    code = 49
    stream: str
    name: str
    location: str


class KernelRan(Event, frozen=True, kw_only=True):
    """The device ran a kernel: start and end in nanoseconds on the clock of `t_ns`."""

    code = 58
    kernel: int
    began_ns: int
    ended_ns: int


# --- worker -------------------------------------------------------------------


class ThreadStarted(Event, frozen=True, kw_only=True):
    """A thread began to work for the engine; `device` -1 is the CPU."""

    code = 60
    device: int
    role: Role


class ThreadExited(Event, frozen=True, kw_only=True):
    """A thread stopped working for the engine."""

    code = 61
    device: int
    role: Role


class ReentrantEntered(Event, frozen=True, kw_only=True):
    """A backward began inside a backward."""

    code = 62
    depth: int


class ReentrantLeft(Event, frozen=True, kw_only=True):
    """The inner backward returned or raised."""

    code = 63
    depth: int


class PoolThreadSpawned(Event, frozen=True, kw_only=True):
    """The reentrancy pool grew."""

    code = 64
    num_threads: int


# --- user ---------------------------------------------------------------------


class HandoversHeard(Event, frozen=True, kw_only=True):
    """From here on it is recorded how threads of the program hand over."""

    code = 70


class ProgramThreadBegun(Event, frozen=True, kw_only=True):
    """The program is about to start a thread, called `key`."""

    code = 71
    key: int


class ProgramThreadEntered(Event, frozen=True, kw_only=True):
    """This is the thread that was started as `key`, and it begins."""

    code = 72
    key: int


class ProgramThreadLeft(Event, frozen=True, kw_only=True):
    """This thread, which was started as `key`, is done."""

    code = 73
    key: int


class HandedOver(Event, frozen=True, kw_only=True):
    """The program is about to leave something for other threads: in a queue, a lock."""

    code = 74
    key: int


class TakenOver(Event, frozen=True, kw_only=True):
    """The program took over work left there: `key` is the same, or 0 for all."""

    code = 75
    key: int


class Mark(Event, frozen=True, kw_only=True):
    """The user's program said where it is."""

    code = 80
    text: str


class StepBegun(Event, frozen=True, kw_only=True):
    """A training step of the user's program began."""

    code = 81
    step: int


class ForwardBegun(Event, frozen=True, kw_only=True):
    """A module was called: its path in the model, the name of its class.

    `location` is the line that called it, where its `arguments` require no gradient.
    """

    code = 82
    call: int
    module: str
    name: str
    arguments: Tracking = Tracking.UNKNOWN
    location: str = ""


class ForwardEnded(Event, frozen=True, kw_only=True):
    """The call returned, or raised."""

    code = 83
    call: int
    failed: bool
    results: Tracking = Tracking.UNKNOWN


class OptimizerBegun(Event, frozen=True, kw_only=True):
    """``step`` of an optimizer was called: the name of its class."""

    code = 84
    call: int
    name: str


class OptimizerEnded(Event, frozen=True, kw_only=True):
    """The call returned, or raised."""

    code = 85
    call: int
    failed: bool


class RequiresGradSet(Event, frozen=True, kw_only=True):
    """A module was called of which a parameter has another ``requires_grad``.

    A parameter of which there is no such event required a gradient in every call.
    """

    code = 86
    parameter: str
    requires_grad: bool


class ParameterHeld(Event, frozen=True, kw_only=True):
    """An optimizer, at its first step, holds a parameter.

    `parameter` is its path, empty if it belongs to no module that is known.
    """

    code = 87
    optimizer: str
    parameter: str
    shape: str


# --- workers ------------------------------------------------------------------


class WorkerBegan(Event, frozen=True, kw_only=True):
    """A worker of a distributed program met the others: its rank, how it is called."""

    code = 90
    worker: int
    world_size: int
    name: str


class WorkerEnded(Event, frozen=True, kw_only=True):
    """It no longer is one."""

    code = 91
    worker: int


class ClockCompared(Event, frozen=True, kw_only=True):
    """A worker's clock was read, `round_trip_ns` after the request.

    The answer has just come.
    """

    code = 92
    worker: int
    peer: int
    peer_ns: int
    round_trip_ns: int


class MessageSent(Event, frozen=True, kw_only=True):
    """A message that is part of a graph is about to leave `worker` for `peer`.

    In the forward pass `pass_id` is -1 and the node the send, -1 if no tensor of it
    needs a gradient; a gradient of pass `pass_id` goes back from the receive.
    """

    code = 93
    worker: int
    peer: int
    message: int
    context: int
    pass_id: int
    size_bytes: int


class MessageReceived(Event, frozen=True, kw_only=True):
    """It has come to `worker` from `peer`; the node is the other end of it."""

    code = 94
    worker: int
    peer: int
    message: int
    context: int
    pass_id: int
    size_bytes: int


# --- collectives --------------------------------------------------------------


class CollectiveBegan(Event, frozen=True, kw_only=True):
    """A collective operation between ranks began to run on this thread.

    `node` is the node whose gradient or function launched it, -1 if unknown. `group` is
    the name of the process group and `model` that of the data-parallel model whose
    `bucket` it reduces; both are empty, and the numbers null, where unknown.
    """

    code = 95
    collective: int
    name: str
    group: str
    rank: int | None
    world_size: int | None
    size_bytes: int | None
    model: str
    bucket: int | None


class CollectiveEnded(Event, frozen=True, kw_only=True):
    """A collective has finished on this rank."""

    code = 96
    collective: int


class GradientBucketed(Event, frozen=True, kw_only=True):
    """The gradient that `node` accumulated went into a bucket of a data-parallel model.

    The collective of the bucket sums it over the ranks. Numbers are null if unknown.
    """

    code = 97
    model: str
    bucket: int | None
    size_bytes: int | None


def _by_code() -> dict[int, type[Event]]:
    kinds: dict[int, type[Event]] = {}
    for kind in sorted(Event.__subclasses__(), key=lambda kind: kind.code):
        other = kinds.setdefault(kind.code, kind)
        if other is not kind:
            raise TypeError(
                f"events {other.__name__} and {kind.__name__} both have the code "
                f"{kind.code}: give one of them another, which no event ever had"
            )
    return kinds


#: Added in a file to the code of a kind: nobody saw these, see `Event.inferred`. No
#: code is as large.
INFERRED: Final = 1 << 15

#: Code in a file -> class, in the order of the codes.
KINDS: Final = _by_code()

#: The union that `match` checks for exhaustiveness, and that msgspec decodes. Types are
#: checked without running anything, so it is written out: by
#: ``python -m tests.docs.trace_format``.
AnyEvent = Union[  # noqa: UP007 - mypy narrows a plain Union of many best
    NodeCreated,
    TensorSaved,
    StackTaken,
    SavedElsewhere,
    TaskBegun,
    DependenciesCounted,
    TaskCompleted,
    TaskFailed,
    CallbackRun,
    CaptureTaken,
    TensorChanged,
    GraphKept,
    GradientMeasured,
    GradientCut,
    TaskPushed,
    TaskPopped,
    QueueWaited,
    NodeStarted,
    NodeCompleted,
    NodeFailed,
    NodeSkipped,
    HookCalled,
    HookReturned,
    Unexplained,
    NotFinite,
    GradientBuffered,
    GradientAccumulated,
    BufferFreed,
    MemoryAllocated,
    MemoryShared,
    MemoryFreed,
    StreamNamed,
    EventRecorded,
    StreamWaited,
    LeafStreamSynced,
    EventSynchronized,
    StreamSynchronized,
    DeviceSynchronized,
    KernelLaunched,
    ArrayAccessed,
    KernelRan,
    HostAccessed,
    ThreadStarted,
    ThreadExited,
    ReentrantEntered,
    ReentrantLeft,
    PoolThreadSpawned,
    HandoversHeard,
    ProgramThreadBegun,
    ProgramThreadEntered,
    ProgramThreadLeft,
    HandedOver,
    TakenOver,
    Mark,
    StepBegun,
    ForwardBegun,
    ForwardEnded,
    OptimizerBegun,
    OptimizerEnded,
    RequiresGradSet,
    ParameterHeld,
    WorkerBegan,
    WorkerEnded,
    ClockCompared,
    MessageSent,
    MessageReceived,
    CollectiveBegan,
    CollectiveEnded,
    GradientBucketed,
]


#: The type of a number that may be unknown.
_MAYBE: Final = int | None


class EventColumn(msgspec.Struct, frozen=True):
    """One integer column of a kind of event.

    Attributes:
        name: The field's name.
        type: Meaning of the integers: ``int`` and ``bool`` themselves, ``str`` an index
            into the trace's strings, an enum its values.
        absent: Its value in traces of versions that did not have it.
        may_be_unknown: True if -1 stands for None, which means that it is not known.
    """

    name: str
    type: type
    absent: int = 0
    may_be_unknown: bool = False


def kind_name(event: type[Event]) -> str:
    """The name of a kind, such as ``task_pushed``."""
    return str(event.__struct_config__.tag)


@functools.cache  # evaluating annotations takes longer than using them
def own_columns(event: type[Event]) -> tuple[EventColumn, ...]:
    """Return a kind's columns except ``t_ns``, ``thread``, ``task`` and ``node``."""
    hints = typing.get_type_hints(event)
    common = set(Event.__struct_fields__)
    return tuple(
        EventColumn(
            one.name,
            int if hints[one.name] == _MAYBE else hints[one.name],
            one.default if isinstance(one.default, int) else 0,
            may_be_unknown=hints[one.name] == _MAYBE,
        )
        for one in msgspec.structs.fields(event)
        if one.name not in common
    )


def label(value: enum.IntEnum) -> str:
    """Return the text of an enum member for people and JSON: ``wake_up``."""
    return value.name.lower()
