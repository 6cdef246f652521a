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


class LifeStage(enum.IntEnum):
    """What an event is in the life of a thing."""

    BEGINNING = 0
    USE = 1
    END = 2


#: Of each kind of event: the fields that name a thing, and what becomes of it.
DEVICE_RULES: Final[Mapping[type[Event], Mapping[str, LifeStage]]] = {
    KernelLaunched: {"kernel": LifeStage.BEGINNING},
    ArrayAccessed: {"kernel": LifeStage.USE, "memory": LifeStage.USE},
    HostAccessed: {"memory": LifeStage.USE},
    KernelRan: {"kernel": LifeStage.END},
    MemoryAllocated: {"memory": LifeStage.BEGINNING},
    MemoryShared: {"memory": LifeStage.USE},
    MemoryFreed: {"memory": LifeStage.END},
    EventRecorded: {"event": LifeStage.BEGINNING},
    StreamWaited: {"event": LifeStage.USE},
    LeafStreamSynced: {"event": LifeStage.USE},
    EventSynchronized: {"event": LifeStage.USE},
}

_HAS: Final = {
    LifeStage.BEGINNING: "has begun before",
    LifeStage.USE: "was used before",
    LifeStage.END: "has ended before",
}


class DeviceLifecycle:
    """How far everything on devices has come, moved on by one event after the other."""

    def __init__(self) -> None:
        self._last: dict[tuple[str, int], LifeStage] = {}

    def check(self, event: AnyEvent) -> Iterator[str]:
        """Let `event` happen, and say what is wrong with it."""
        for thing, stage in DEVICE_RULES.get(type(event), {}).items():
            key = thing, getattr(event, thing)
            last = self._last.get(key)
            if last is not None and (
                stage is LifeStage.BEGINNING or last is LifeStage.END
            ):
                yield f"its {thing} {_HAS[last]}"
            self._last[key] = stage
