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
tables of docs/trace-events.md and docs/trace-program-events.md.

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
    """A node kept a tensor for its backward; null: its size is unknown."""

    code = 2
    size_bytes: int | None


class StackTaken(Event, frozen=True, kw_only=True):
    """The stack of the program when it made a node.

    `stack` lists the lines, the innermost first, with `` < `` between two of them.
    """

    code = 3
    stack: str


class SavedElsewhere(Event, frozen=True, kw_only=True):
    """A node kept further tensors, whose memory does not count for it.

    `parameter_bytes` is the memory of parameters, other leaves and buffers of modules,
    which exists anyway; of several nodes that keep the same tensor, the first reports
    it. `shared_bytes` is the size of tensors, such as views, whose memory counts for
    another tensor.
    """

    code = 4
    parameter_bytes: int
    shared_bytes: int


# --- task ---------------------------------------------------------------------


class TaskBegun(Event, frozen=True, kw_only=True):
    """A backward pass began, at a line of the user's program.

    `parent` is the pass that it is nested in, or -1. `owner` is the index of the device
    whose thread called, or -1 for the CPU.
    """

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
    """The engine walked the graph and counted the nodes and edges that take part."""

    code = 11
    num_nodes: int
    num_edges: int


class TaskCompleted(Event, frozen=True, kw_only=True):
    """The pass ended without an error."""

    code = 12


class TaskFailed(Event, frozen=True, kw_only=True):
    """The pass ended with an error, which `node` raised; -1: no node did."""

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

    The tensor has the same shape, type and version. `operation` names the node that
    made it or changed it last, `location` is the line that made this node, and
    `sequence_nr` is the node's number. If `operation` is empty, the change itself was
    recorded, and `location` is its line.
    """

    code = 16
    operation: str
    location: str
    sequence_nr: int


class GradientMeasured(Event, frozen=True, kw_only=True):
    """The ``.grad`` of the leaf of `node` had this norm after the pass added to it.

    `norm` is the Euclidean norm, as `repr` writes a float. Only recordings that check
    values have this event.
    """

    code = 18
    norm: str


class GradientCut(Event, frozen=True, kw_only=True):
    """An operation took an input that requires a gradient, and its result needs none.

    `operation` is its name and `location` the line that called it.
    """

    code = 19
    operation: str
    location: str


class GraphKept(Event, frozen=True, kw_only=True):
    """Graphs that are alike stay alive from step to step of the program.

    A backward through one of them would begin at a node with the name `root`, which the
    line `location` made. `holders` names the variables that hold the first graph.
    `num_passes` counts the passes that began in these graphs: 0 if no pass ran them.
    `num_nodes` counts a node that several graphs share once. `size_bytes` is the memory
    that they save for a backward.
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
    """A task entered a ready queue.

    `reentrant_depth` and `sequence_nr` are the two parts of its priority.
    `queue_length` counts the tasks in the queue, this one included; it is approximate
    if another thread pops at the same time. `outstanding` counts the tasks of the pass
    that wait or run, this one included. `pushed_by` is the node that made this one
    ready, or -1.
    """

    code = 20
    queue: int
    reentrant_depth: int
    sequence_nr: int
    queue_length: int
    outstanding: int
    pushed_by: int
    what: Push


class TaskPopped(Event, frozen=True, kw_only=True):
    """A task left a ready queue, which then held `queue_length` others."""

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
    """A thread began to run a node."""

    code = 30


class NodeCompleted(Event, frozen=True, kw_only=True):
    """The node ran and passed its gradients on.

    `thread_time_ns` is the CPU time of its thread since the start of the node, with
    that of any backward that the node called; -1 if unknown.
    """

    code = 31
    thread_time_ns: int = -1


class NodeFailed(Event, frozen=True, kw_only=True):
    """The node, or one of its hooks or checks, raised an error.

    `thread_time_ns` is the same as in `node_completed`.
    """

    code = 32
    error: str
    thread_time_ns: int = -1


class NodeSkipped(Event, frozen=True, kw_only=True):
    """A thread popped a node and did not run it."""

    code = 33
    reason: Skip


class HookCalled(Event, frozen=True, kw_only=True):
    """A hook is about to run: the `index`-th of its kind.

    `function` is its qualified name, `defined_at` the line of its definition,
    `registered_at` the line that registered it, and `target` the module that it was
    registered on. Each is empty if it is unknown.
    """

    code = 34
    hook: Hook
    index: int
    function: str = ""
    defined_at: str = ""
    registered_at: str = ""
    target: str = ""


class HookReturned(Event, frozen=True, kw_only=True):
    """The `index`-th hook of its kind returned; one that raises has no such event."""

    code = 35
    hook: Hook
    index: int


class Unexplained(Event, frozen=True, kw_only=True):
    """The events of a pass watched from outside do not fit the rules.

    `text` says what was unexpected, or what could not be seen. From here on, everything
    inferred about the pass is in doubt.
    """

    code = 36
    text: str


class NotFinite(Event, frozen=True, kw_only=True):
    """A check found the first NaN, or the first infinity, of a forward or of a pass.

    `node` made the value, received it, or belongs to the op. `index` is the index of
    the result, gradient or root. `given_infinity` is 1 if the inputs had an infinity.
    `smallest` and `largest` are the least and greatest magnitude among the finite,
    nonzero elements of the inputs, as `repr` writes a float; empty if unknown. `call`
    and `module` belong to the module that ran, `name` to the op, node or parameter.
    `location` is the line that called the op; empty if it is the line of the node.
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
    """A gradient reached an input of `node`; `remaining` edges are still awaited.

    `producer` is the node that made the gradient, `input_nr` the input.
    """

    code = 40
    producer: int
    input_nr: int
    remaining: int
    size_bytes: int
    how: How


class GradientAccumulated(Event, frozen=True, kw_only=True):
    """An AccumulateGrad put a gradient into the ``.grad`` of its leaf."""

    code = 41
    how: How


class BufferFreed(Event, frozen=True, kw_only=True):
    """The engine released the gradients that a node received."""

    code = 42
    size_bytes: int


# --- memory of devices ---------------------------------------------------------


class MemoryAllocated(Event, frozen=True, kw_only=True):
    """An array got memory, for work of a stream.

    `memory` is the id of the allocation. Memory that is used again gets a new id.
    """

    code = 45
    memory: int
    stream: str
    size_bytes: int


class MemoryShared(Event, frozen=True, kw_only=True):
    """The memory is not used again before `stream` has come this far.

    PyTorch's `record_stream` does this.
    """

    code = 46
    memory: int
    stream: str


class MemoryFreed(Event, frozen=True, kw_only=True):
    """The last array in the memory is gone; work of its own stream may use it again."""

    code = 47
    memory: int
    stream: str


# --- stream -------------------------------------------------------------------


class EventRecorded(Event, frozen=True, kw_only=True):
    """An event marks the work of a stream so far; `node` is -1 if no node made it."""

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
    """The caller's stream waited, when its pass ended, for one that made a gradient."""

    code = 52
    stream: str
    caller_stream: str
    event: int


class EventSynchronized(Event, frozen=True, kw_only=True):
    """The host waited for an event, or learned that it has happened."""

    code = 53
    event: int


class StreamSynchronized(Event, frozen=True, kw_only=True):
    """The host waited for all work of a stream, or learned that it is done."""

    code = 54
    stream: str


class DeviceSynchronized(Event, frozen=True, kw_only=True):
    """The host waited for all streams of a device."""

    code = 55
    device: str


class KernelLaunched(Event, frozen=True, kw_only=True):
    """The program put work into a stream; `location` is the line that did."""

    code = 56
    kernel: int
    stream: str
    name: str
    location: str = ""


class ArrayAccessed(Event, frozen=True, kw_only=True):
    """A kernel reads or writes the elements of an array that `layout` describes.

    `layout` is ``offset;shape;strides;itemsize`` in the allocation, with commas between
    the numbers of a shape or of strides, such as ``0;2,3;24,8;8``. Offset, strides and
    item size are in bytes.
    """

    code = 57
    kernel: int
    memory: int
    layout: str
    writes: bool


class HostAccessed(Event, frozen=True, kw_only=True):
    """A line of the user's program reads or writes memory that devices copy."""

    code = 59
    memory: int
    layout: str
    writes: bool
    location: str = ""


class StreamNamed(Event, frozen=True, kw_only=True):
    """The program's name for a stream, and the line that made it, or empty texts.

    If a stream has events with a name and without, the one with a name comes last.
    """

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
    """A backward began inside a backward, on this thread."""

    code = 62
    depth: int


class ReentrantLeft(Event, frozen=True, kw_only=True):
    """The inner backward returned or raised an error."""

    code = 63
    depth: int


class PoolThreadSpawned(Event, frozen=True, kw_only=True):
    """The pool of threads for nested passes grew to `num_threads`."""

    code = 64
    num_threads: int


# --- user ---------------------------------------------------------------------


class HandoversHeard(Event, frozen=True, kw_only=True):
    """From here on the trace has the hand-overs between threads of the program."""

    code = 70


class ProgramThreadBegun(Event, frozen=True, kw_only=True):
    """The program is about to start a thread, which `key` stands for."""

    code = 71
    key: int


class ProgramThreadEntered(Event, frozen=True, kw_only=True):
    """This thread begins; the program started it as `key`."""

    code = 72
    key: int


class ProgramThreadLeft(Event, frozen=True, kw_only=True):
    """This thread is done; the program started it as `key`."""

    code = 73
    key: int


class HandedOver(Event, frozen=True, kw_only=True):
    """The program is about to leave something for other threads: in a queue, a lock."""

    code = 74
    key: int


class TakenOver(Event, frozen=True, kw_only=True):
    """The program took over what another thread left under `key`.

    A `key` of 0 stands for all that any thread has left or done.
    """

    code = 75
    key: int


class Mark(Event, frozen=True, kw_only=True):
    """The user's program marked a place with a text."""

    code = 80
    text: str


class StepBegun(Event, frozen=True, kw_only=True):
    """A training step of the user's program began."""

    code = 81
    step: int


class ForwardBegun(Event, frozen=True, kw_only=True):
    """A module was called.

    `module` is its path in the model and `name` its class. `location` is the line that
    called it; it is empty if the `arguments` require a gradient, or if it is unknown.
    """

    code = 82
    call: int
    module: str
    name: str
    arguments: Tracking = Tracking.UNKNOWN
    location: str = ""


class ForwardEnded(Event, frozen=True, kw_only=True):
    """The call of a module returned or raised an error."""

    code = 83
    call: int
    failed: bool
    results: Tracking = Tracking.UNKNOWN


class OptimizerBegun(Event, frozen=True, kw_only=True):
    """The ``step`` of an optimizer was called; `name` is the optimizer's class."""

    code = 84
    call: int
    name: str


class OptimizerEnded(Event, frozen=True, kw_only=True):
    """The call of an optimizer returned or raised an error."""

    code = 85
    call: int
    failed: bool


class RequiresGradSet(Event, frozen=True, kw_only=True):
    """A module was called, and one of its parameters has another ``requires_grad``.

    Without such an event, a parameter required a gradient in every call.
    """

    code = 86
    parameter: str
    requires_grad: bool


class ParameterHeld(Event, frozen=True, kw_only=True):
    """An optimizer, at its first step, holds a parameter.

    `parameter` is the path of the parameter, empty if it belongs to no known module.
    `shape` is its shape, as text.
    """

    code = 87
    optimizer: str
    parameter: str
    shape: str


# --- workers ------------------------------------------------------------------


class WorkerBegan(Event, frozen=True, kw_only=True):
    """A worker of a distributed program met the others.

    `worker` is its rank, and others call it by its `name`.
    """

    code = 90
    worker: int
    world_size: int
    name: str


class WorkerEnded(Event, frozen=True, kw_only=True):
    """The worker takes no more requests."""

    code = 91
    worker: int


class ClockCompared(Event, frozen=True, kw_only=True):
    """A worker received a reading of another worker's clock.

    The worker of rank `peer` read `peer_ns` at some time within the last
    `round_trip_ns` before this event.
    """

    code = 92
    worker: int
    peer: int
    peer_ns: int
    round_trip_ns: int


class MessageSent(Event, frozen=True, kw_only=True):
    """A message that is part of a graph is about to leave `worker` for `peer`.

    In the forward pass `pass_id` is -1 and `node` is the send, or -1 if no tensor of
    the message needs a gradient. In a backward pass the message is a gradient: it goes
    back from `node`, the receive, and `pass_id` is the number of the pass. All workers
    use the same numbers for a `message`, a `context` and a pass.
    """

    code = 93
    worker: int
    peer: int
    message: int
    context: int
    pass_id: int
    size_bytes: int


class MessageReceived(Event, frozen=True, kw_only=True):
    """A message arrived at `worker` from `peer`; `node` is its end here.

    The other fields are the same as in `message_sent`.
    """

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

    `node` is the node whose gradient or function launched it, or -1 if unknown. `name`
    has the backend and the operation, such as ``gloo:all_reduce``. `group` is the name
    of the process group. `model` is the data-parallel model, and `bucket` the bucket of
    it, that the collective reduces. Texts are empty and numbers null if unknown.
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
