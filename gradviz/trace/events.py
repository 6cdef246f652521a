"""The vocabulary: every event a trace can hold, as a typed record.

This module knows nothing of files or threads. It defines one frozen class per kind of
event and the table `KINDS`, from which the writer, the reader, the JSON schema and
the documentation are derived. To add an event: add its class, give it the next free
code in `KINDS`, and a method to `Probe`.

A code, once released, is never reused; fields are only ever appended.
"""

import enum
import functools
import typing
from typing import Final, Union

import msgspec

from gradviz.trace.probe import Hook, How, Push, Role, Skip

#: The sequence_nr of every AccumulateGrad (PyTorch's UINT64_MAX). Columns are signed,
#: so it is kept as -1 in a file and turned back on the way out.
MAX_SEQUENCE_NR: Final = 2**64 - 1


class Event(msgspec.Struct, frozen=True, kw_only=True, tag_field="kind"):
    """What all events have.

    Attributes:
        seq: Place in the trace, from 0: order of time, ties by thread.
        t_ns: When, on the recording machine's monotonic clock, in nanoseconds.
        thread: The trace's number for the thread on which it happened.
        task: The GraphTask it belongs to, -1 for none.
        node: The node it is about, -1 for none.
    """

    seq: int
    t_ns: int
    thread: int
    task: int
    node: int


# --- graph --------------------------------------------------------------------


class NodeCreated(Event, tag="node_created", frozen=True, kw_only=True):
    """The forward pass made a node, at a line of the user's program."""

    sequence_nr: int
    location: str


class TensorSaved(Event, tag="tensor_saved", frozen=True, kw_only=True):
    """A node kept a tensor of this size for its backward."""

    size_bytes: int


# --- task ---------------------------------------------------------------------


class TaskBegun(Event, tag="task_begun", frozen=True, kw_only=True):
    """A backward pass began, at a line of the user's program."""

    parent: int
    reentrant_depth: int
    owner: int
    num_roots: int
    num_outputs: int
    keep_graph: bool
    create_graph: bool
    location: str = ""


class DependenciesCounted(Event, tag="dependencies_counted", frozen=True, kw_only=True):
    """The graph was walked; so many nodes and edges take part."""

    num_nodes: int
    num_edges: int


class TaskCompleted(Event, tag="task_completed", frozen=True, kw_only=True):
    """The pass ended well."""


class TaskFailed(Event, tag="task_failed", frozen=True, kw_only=True):
    """The pass ends with an error; `node` raised it, or -1."""

    error: str


class CallbackRun(Event, tag="callback_run", frozen=True, kw_only=True):
    """A final callback is about to run."""

    index: int


class CaptureTaken(Event, tag="capture_taken", frozen=True, kw_only=True):
    """A gradient became a result of the call."""

    output_index: int


# --- queue --------------------------------------------------------------------


class TaskPushed(Event, tag="task_pushed", frozen=True, kw_only=True):
    """A task entered a ready queue; the fields are those of `Probe.task_pushed`."""

    queue: int
    reentrant_depth: int
    sequence_nr: int
    queue_length: int
    outstanding: int
    pushed_by: int
    what: Push


class TaskPopped(Event, tag="task_popped", frozen=True, kw_only=True):
    """A task left a ready queue."""

    queue: int
    queue_length: int


class QueueWaited(Event, tag="queue_waited", frozen=True, kw_only=True):
    """A thread slept on its empty queue for `waited_ns`, until this event."""

    queue: int
    waited_ns: int


# --- node ---------------------------------------------------------------------


class NodeStarted(Event, tag="node_started", frozen=True, kw_only=True):
    """A thread began to evaluate a node."""


class NodeCompleted(Event, tag="node_completed", frozen=True, kw_only=True):
    """The node ran and its gradients were handed on."""


class NodeFailed(Event, tag="node_failed", frozen=True, kw_only=True):
    """The node, or one of its hooks or checks, raised."""

    error: str


class NodeSkipped(Event, tag="node_skipped", frozen=True, kw_only=True):
    """A popped node was not executed."""

    reason: Skip


class HookCalled(Event, tag="hook_called", frozen=True, kw_only=True):
    """A hook was about to be called: the `index`-th of its kind."""

    hook: Hook
    index: int


# --- buffer -------------------------------------------------------------------


class GradientBuffered(Event, tag="gradient_buffered", frozen=True, kw_only=True):
    """A gradient reached an input of `node`; `remaining` edges are still awaited."""

    producer: int
    input_nr: int
    remaining: int
    size_bytes: int
    how: How


class GradientAccumulated(Event, tag="gradient_accumulated", frozen=True, kw_only=True):
    """A gradient was put into a leaf's ``.grad``."""

    how: How


class BufferFreed(Event, tag="buffer_freed", frozen=True, kw_only=True):
    """The gradients that a node was given were let go."""

    size_bytes: int


# --- memory of devices ---------------------------------------------------------


class MemoryAllocated(Event, tag="memory_allocated", frozen=True, kw_only=True):
    """Memory was taken for an array, for work of that stream."""

    memory: int
    stream: str
    size_bytes: int


class MemoryShared(Event, tag="memory_shared", frozen=True, kw_only=True):
    """Memory is not used again before that stream has come so far."""

    memory: int
    stream: str


class MemoryFreed(Event, tag="memory_freed", frozen=True, kw_only=True):
    """The last array in it is gone; work of its own stream may use it again."""

    memory: int
    stream: str


# --- stream -------------------------------------------------------------------


class EventRecorded(Event, tag="event_recorded", frozen=True, kw_only=True):
    """An event marks the work that a stream has so far: that of `node`, or -1."""

    stream: str
    event: int


class StreamWaited(Event, tag="stream_waited", frozen=True, kw_only=True):
    """From now on `stream`, where `node` works, waits for `event` of `producer`."""

    stream: str
    event: int
    producer: int
    location: str = ""


class LeafStreamSynced(Event, tag="leaf_stream_synced", frozen=True, kw_only=True):
    """As a pass ends, its caller's stream waits for one that made a gradient."""

    stream: str
    caller_stream: str
    event: int


class EventSynchronized(Event, tag="event_synchronized", frozen=True, kw_only=True):
    """The host has waited for an event, or asked and got a yes."""

    event: int


class StreamSynchronized(Event, tag="stream_synchronized", frozen=True, kw_only=True):
    """The host has waited for all work of a stream, or asked and got a yes."""

    stream: str


class DeviceSynchronized(Event, tag="device_synchronized", frozen=True, kw_only=True):
    """The host has waited for all streams of a device."""

    device: str


class KernelLaunched(Event, tag="kernel_launched", frozen=True, kw_only=True):
    """Work was put into a stream, at a line of the user's program."""

    kernel: int
    stream: str
    name: str
    location: str = ""


class ArrayAccessed(Event, tag="array_accessed", frozen=True, kw_only=True):
    """A kernel reads, or writes, elements of an array: which is told by `layout`."""

    kernel: int
    memory: int
    layout: str
    writes: bool


class HostAccessed(Event, tag="host_accessed", frozen=True, kw_only=True):
    """A line of the user's program reads, or writes, memory that devices copy."""

    memory: int
    layout: str
    writes: bool
    location: str = ""


class StreamNamed(Event, tag="stream_named", frozen=True, kw_only=True):
    """What the program calls a stream, and the line that made it, or empty texts."""

    stream: str
    name: str
    location: str


class KernelRan(Event, tag="kernel_ran", frozen=True, kw_only=True):
    """When the device did a kernel, in nanoseconds on the clock of `t_ns`."""

    kernel: int
    began_ns: int
    ended_ns: int


# --- worker -------------------------------------------------------------------


class ThreadStarted(Event, tag="thread_started", frozen=True, kw_only=True):
    """A thread began to work for the engine; `device` -1 is the CPU."""

    device: int
    role: Role


class ThreadExited(Event, tag="thread_exited", frozen=True, kw_only=True):
    """A thread stopped working for the engine."""

    device: int
    role: Role


class ReentrantEntered(Event, tag="reentrant_entered", frozen=True, kw_only=True):
    """A backward began inside a backward."""

    depth: int


class ReentrantLeft(Event, tag="reentrant_left", frozen=True, kw_only=True):
    """That inner backward returned or raised."""

    depth: int


class PoolThreadSpawned(Event, tag="pool_thread_spawned", frozen=True, kw_only=True):
    """The reentrancy pool grew."""

    num_threads: int


# --- user ---------------------------------------------------------------------


class HandoversHeard(Event, tag="handovers_heard", frozen=True, kw_only=True):
    """From here on it is recorded how threads of the program hand over."""


class ProgramThreadBegun(Event, tag="program_thread_begun", frozen=True, kw_only=True):
    """The program is about to start a thread, called `key`."""

    key: int


class ProgramThreadEntered(
    Event, tag="program_thread_entered", frozen=True, kw_only=True
):
    """This is the thread that was started as `key`, and it begins."""

    key: int


class ProgramThreadLeft(Event, tag="program_thread_left", frozen=True, kw_only=True):
    """This thread, which was started as `key`, is done."""

    key: int


class HandedOver(Event, tag="handed_over", frozen=True, kw_only=True):
    """The program is about to leave something for other threads: in a queue, a lock."""

    key: int


class TakenOver(Event, tag="taken_over", frozen=True, kw_only=True):
    """The program has taken what was left there: `key` is the same."""

    key: int


class Mark(Event, tag="mark", frozen=True, kw_only=True):
    """The user's program said where it is."""

    text: str


class StepBegun(Event, tag="step_begun", frozen=True, kw_only=True):
    """A training step of the user's program began."""

    step: int


#: Code in a file -> class. Codes are for ever.
KINDS: Final[dict[int, type[Event]]] = {
    1: NodeCreated,
    2: TensorSaved,
    10: TaskBegun,
    11: DependenciesCounted,
    12: TaskCompleted,
    13: TaskFailed,
    14: CallbackRun,
    15: CaptureTaken,
    20: TaskPushed,
    21: TaskPopped,
    22: QueueWaited,
    30: NodeStarted,
    31: NodeCompleted,
    32: NodeFailed,
    33: NodeSkipped,
    34: HookCalled,
    40: GradientBuffered,
    41: GradientAccumulated,
    42: BufferFreed,
    45: MemoryAllocated,
    46: MemoryShared,
    47: MemoryFreed,
    49: StreamNamed,
    50: EventRecorded,
    51: StreamWaited,
    52: LeafStreamSynced,
    53: EventSynchronized,
    54: StreamSynchronized,
    55: DeviceSynchronized,
    56: KernelLaunched,
    57: ArrayAccessed,
    58: KernelRan,
    59: HostAccessed,
    60: ThreadStarted,
    61: ThreadExited,
    62: ReentrantEntered,
    63: ReentrantLeft,
    64: PoolThreadSpawned,
    70: HandoversHeard,
    71: ProgramThreadBegun,
    72: ProgramThreadEntered,
    73: ProgramThreadLeft,
    74: HandedOver,
    75: TakenOver,
    80: Mark,
    81: StepBegun,
}

#: The union that `match` checks for exhaustiveness, and that msgspec decodes.
AnyEvent = Union[  # noqa: UP007 - mypy narrows a plain Union of many best
    NodeCreated,
    TensorSaved,
    TaskBegun,
    DependenciesCounted,
    TaskCompleted,
    TaskFailed,
    CallbackRun,
    CaptureTaken,
    TaskPushed,
    TaskPopped,
    QueueWaited,
    NodeStarted,
    NodeCompleted,
    NodeFailed,
    NodeSkipped,
    HookCalled,
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
]


class EventColumn(msgspec.Struct, frozen=True):
    """One integer column of a kind of event.

    Attributes:
        name: The field's name.
        type: What the integers stand for: ``int`` and ``bool`` themselves, ``str`` an
            index into the trace's strings, an enum its values.
    """

    name: str
    type: type


def kind_name(event: type[Event]) -> str:
    """The name of a kind, such as ``task_pushed``."""
    return str(event.__struct_config__.tag)


@functools.cache  # evaluating annotations takes longer than using them
def own_columns(event: type[Event]) -> tuple[EventColumn, ...]:
    """The columns a kind has besides ``t_ns``, ``thread``, ``task`` and ``node``."""
    hints = typing.get_type_hints(event)
    common = set(Event.__struct_fields__)
    return tuple(
        EventColumn(name, hints[name])
        for name in event.__struct_fields__
        if name not in common
    )


def label(value: enum.IntEnum) -> str:
    """How an enum member is written for people and in JSON: ``wake_up``."""
    return value.name.lower()
