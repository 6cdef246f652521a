"""The lifecycle of what is on a device: kernels, memory and events of streams.

Each of them begins, is used, and may end, in this order: a kernel is launched before it
accesses an array, and does that before it ran; memory is not used before it is
allocated, or after it is freed; nobody waits for an event that is recorded later. Ids
are never used again, so each begins once.

What began before the recording did is known by its first use.
"""

import enum
from collections.abc import Iterator, Mapping
from typing import Final

from gradviz.trace.events import (
    AnyEvent,
    ArrayAccessed,
    Event,
    EventRecorded,
    EventSynchronized,
    HostAccessed,
    KernelLaunched,
    KernelRan,
    LeafStreamSynced,
    MemoryAllocated,
    MemoryFreed,
    MemoryShared,
    StreamWaited,
)


class Part(enum.IntEnum):
    """What an event is in the life of a thing."""

    BEGINNING = 0
    USE = 1
    END = 2


#: Of each kind of event: the fields that name a thing, and what becomes of it.
DEVICE_RULES: Final[Mapping[type[Event], Mapping[str, Part]]] = {
    KernelLaunched: {"kernel": Part.BEGINNING},
    ArrayAccessed: {"kernel": Part.USE, "memory": Part.USE},
    HostAccessed: {"memory": Part.USE},
    KernelRan: {"kernel": Part.END},
    MemoryAllocated: {"memory": Part.BEGINNING},
    MemoryShared: {"memory": Part.USE},
    MemoryFreed: {"memory": Part.END},
    EventRecorded: {"event": Part.BEGINNING},
    StreamWaited: {"event": Part.USE},
    LeafStreamSynced: {"event": Part.USE},
    EventSynchronized: {"event": Part.USE},
}

_HAS: Final = {
    Part.BEGINNING: "has begun before",
    Part.USE: "was used before",
    Part.END: "has ended before",
}


class DeviceLifecycle:
    """How far everything on devices has come, moved on by one event after the other."""

    def __init__(self) -> None:
        self._last: dict[tuple[str, int], Part] = {}

    def check(self, event: AnyEvent) -> Iterator[str]:
        """Let `event` happen, and say what is wrong with it."""
        for thing, part in DEVICE_RULES.get(type(event), {}).items():
            key = thing, getattr(event, thing)
            last = self._last.get(key)
            if last is not None and (part is Part.BEGINNING or last is Part.END):
                yield f"its {thing} {_HAS[last]}"
            self._last[key] = part
