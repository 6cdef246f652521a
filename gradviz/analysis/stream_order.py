"""Whether a recorded program ordered its streams: races, and waits for nothing."""

from collections.abc import Callable, Iterable, Mapping
from typing import Final

from gradviz.analysis.happens_before import HappensBefore
from gradviz.analysis.races import Findings, NodeOrigin
from gradviz.trace.events import (
    AnyEvent,
    ArrayAccessed,
    DeviceSynchronized,
    Event,
    EventRecorded,
    EventSynchronized,
    HostAccessed,
    KernelLaunched,
    MemoryAllocated,
    MemoryFreed,
    MemoryShared,
    NodeCompleted,
    NodeFailed,
    NodeStarted,
    StreamSynchronized,
    StreamWaited,
    TaskBegun,
    ThreadExited,
)
from gradviz.trace.model import Trace

#: Of each kind of event: whom it is reported to, and which of its fields.
_REPORTS: Final[Mapping[type[Event], tuple[Callable[..., None], tuple[str, ...]]]] = {
    NodeStarted: (HappensBefore.node_started, ("thread", "task", "node")),
    NodeCompleted: (HappensBefore.node_ended, ("thread", "task", "node")),
    NodeFailed: (HappensBefore.node_ended, ("thread", "task", "node")),
    TaskBegun: (HappensBefore.task_begun, ("thread", "task", "location")),
    ThreadExited: (HappensBefore.thread_exited, ("thread",)),
    EventRecorded: (HappensBefore.event_recorded, ("stream", "event")),
    StreamWaited: (
        HappensBefore.stream_waited,
        ("task", "node", "stream", "event", "location"),
    ),
    EventSynchronized: (HappensBefore.event_synchronized, ("event",)),
    StreamSynchronized: (HappensBefore.stream_synchronized, ("stream",)),
    DeviceSynchronized: (HappensBefore.device_synchronized, ("device",)),
    KernelLaunched: (
        HappensBefore.kernel_launched,
        ("thread", "kernel", "stream", "name", "location"),
    ),
    ArrayAccessed: (
        HappensBefore.array_accessed,
        ("kernel", "memory", "layout", "writes"),
    ),
    HostAccessed: (
        HappensBefore.host_accessed,
        ("thread", "memory", "layout", "writes", "location"),
    ),
    MemoryAllocated: (
        HappensBefore.memory_allocated,
        ("memory", "stream", "size_bytes"),
    ),
    MemoryShared: (HappensBefore.memory_shared, ("memory", "stream")),
    MemoryFreed: (HappensBefore.memory_freed, ("memory", "stream")),
}


def stream_order(trace: Trace) -> Findings:
    """What is wrong with the order of a trace's work on streams.

    Where events are missing (`Trace.losses`), a wait may be among them, and what is
    found may be no race.
    """
    if not len(trace.columns["kernel_launched"]["seq"]):
        return Findings()

    def origin(node: int) -> NodeOrigin:
        if (known := trace.nodes.get(node)) is None:
            return NodeOrigin()
        return NodeOrigin(name=known.name, location=known.location, module=known.module)

    return order_of_events(trace.events(), origin)


def order_of_events(
    events: Iterable[AnyEvent],
    origin: Callable[[int], NodeOrigin] = lambda _: NodeOrigin(),
) -> Findings:
    """Likewise, of events in their order.

    Args:
        events: All of a recording.
        origin: What is known of a node.
    """
    machine = HappensBefore(origin)
    for event in events:
        if type(event) in _REPORTS:
            report, fields = _REPORTS[type(event)]
            report(machine, *(getattr(event, field) for field in fields))
    return machine.findings
