"""A probe that keeps its reports as typed events, in memory.

For tests that look at events: see `assertions`. A recording of a
real program belongs into a file: see `gradviz.capture.session`.
"""

import inspect
import threading
from collections.abc import Callable
from typing import Final, cast

from gradviz.trace.events import KINDS, AnyEvent, Event, NodeCreated, kind_name
from gradviz.trace.probe import Probe

#: Event whose method takes the node itself, and not its id.
_NOT_KEPT: Final = NodeCreated

#: Of each method: a kind's fields are called as the parameters of its method.
_PARAMETERS: Final = {
    kind_name(kind): tuple(
        inspect.signature(getattr(Probe, kind_name(kind))).parameters
    )[1:]
    for kind in KINDS.values()
}


class EventList(Probe):
    """Keeps events in the order in which they are reported.

    Their time is their place in the list: what is not recorded is when, only in
    which order.

    Args:
        thread: Says on which thread it is called; `Scheduler.thread` for threads of a
            scheduler.

    Attributes:
        events: All so far.
    """

    __slots__ = ("__dict__", "_thread", "events")

    def __init__(self, thread: Callable[[], int] = threading.get_ident) -> None:
        self._thread = thread
        self.events: list[AnyEvent] = []
        for kind in KINDS.values():
            if kind is not _NOT_KEPT:
                self._listen(kind_name(kind), kind)

    def _listen(self, method: str, kind: Callable[..., Event]) -> None:
        parameters = _PARAMETERS[method]
        common = {"task": -1, "node": -1}

        def keep(*args: object, **kwargs: object) -> None:
            own = common | dict(zip(parameters, args, strict=False)) | kwargs
            seq = len(self.events)
            event = kind(seq=seq, t_ns=seq, thread=self._thread(), **own)
            self.events.append(cast("AnyEvent", event))

        setattr(self, method, keep)
