"""Dispatch of events to the happens-before machine: its method for each kind.

A recording is told to it event after event, a program that runs report after report
(`gradviz.stream_check.checker`). Both take it from here.
"""

import inspect
from collections.abc import Callable, Mapping
from typing import Final, NamedTuple

from gradviz.analysis.races.happens_before import HappensBefore
from gradviz.trace.events import (
    AnyEvent,
    ArrayAccessed,
    DeviceSynchronized,
    Event,
    EventRecorded,
    EventSynchronized,
    HandedOver,
    HandoversHeard,
    HostAccessed,
    KernelLaunched,
    MemoryAllocated,
    MemoryFreed,
    MemoryShared,
    NodeCompleted,
    NodeFailed,
    NodeStarted,
    ProgramThreadBegun,
    ProgramThreadEntered,
    ProgramThreadLeft,
    ReentrantLeft,
    StreamSynchronized,
    StreamWaited,
    TakenOver,
    TaskBegun,
    TaskCompleted,
    ThreadExited,
)

#: A method of the machine. Its parameters are called as the fields of the event are; a
#: last one that is no field is known only while the program runs.
_Method = Callable[..., None]

_METHODS: Final[Mapping[type[Event], _Method]] = {
    NodeStarted: HappensBefore.node_started,
    NodeCompleted: HappensBefore.node_ended,
    NodeFailed: HappensBefore.node_ended,
    TaskBegun: HappensBefore.task_begun,
    TaskCompleted: HappensBefore.task_completed,
    ReentrantLeft: HappensBefore.task_left,
    ThreadExited: HappensBefore.thread_exited,
    HandoversHeard: HappensBefore.handovers_heard,
    ProgramThreadBegun: HappensBefore.program_thread_begun,
    ProgramThreadEntered: HappensBefore.program_thread_entered,
    ProgramThreadLeft: HappensBefore.program_thread_left,
    HandedOver: HappensBefore.handed_over,
    TakenOver: HappensBefore.taken_over,
    EventRecorded: HappensBefore.event_recorded,
    StreamWaited: HappensBefore.stream_waited,
    EventSynchronized: HappensBefore.event_synchronized,
    StreamSynchronized: HappensBefore.stream_synchronized,
    DeviceSynchronized: HappensBefore.device_synchronized,
    KernelLaunched: HappensBefore.kernel_launched,
    ArrayAccessed: HappensBefore.array_accessed,
    HostAccessed: HappensBefore.host_accessed,
    MemoryAllocated: HappensBefore.memory_allocated,
    MemoryShared: HappensBefore.memory_shared,
    MemoryFreed: HappensBefore.memory_freed,
}


class EventHandler(NamedTuple):
    """A method of the machine, and its arguments from an event.

    Attributes:
        call: The method.
        fields: Of the event, in the order of the method's parameters.
    """

    call: _Method
    fields: tuple[str, ...]


def _handler(kind: type[Event], call: _Method) -> EventHandler:
    parameters = tuple(inspect.signature(call).parameters)[1:]
    return EventHandler(
        call, tuple(p for p in parameters if p in kind.__struct_fields__)
    )


#: All other kinds say nothing of what happens before what.
HANDLERS: Final[Mapping[type[Event], EventHandler]] = {
    kind: _handler(kind, call) for kind, call in _METHODS.items()
}


def dispatch(machine: HappensBefore, event: AnyEvent) -> None:
    """Pass an event of one of the kinds in `HANDLERS` to the machine."""
    call, fields = HANDLERS[type(event)]
    call(machine, *(getattr(event, field) for field in fields))
