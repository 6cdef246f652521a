"""The lifecycle of what is on a device: kernels, memory and events of streams.

Each of them begins, is used, and may end, in this order: a kernel is launched before it
accesses an array, and does that before it ran; memory is not used before it is
allocated, or after it is freed; nobody waits for an event that is recorded later. Ids
are never used again, so each begins once.

What began before the recording did is known by its first use.
"""

from collections.abc import Iterator
from typing import Final

from gradviz.trace.events import AnyEvent
from gradviz.trace.rules import RULES, LifeStage

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
        for thing, stage in RULES[type(event)].things.items():
            key = thing, getattr(event, thing)
            last = self._last.get(key)
            if last is not None and (
                stage is LifeStage.BEGINNING or last is LifeStage.END
            ):
                yield f"its {thing} {_HAS[last]}"
            self._last[key] = stage
