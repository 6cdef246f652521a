"""What PyTorch's profiler has seen between a start and a stop."""

from typing import Any, NamedTuple, TypeAlias

from gradviz.pytorch.watched_pass import WatchedPass

#: A function of a backward that was seen to run: its begin and end on the profiler's
#: clock, its name as the node's ``name()`` is, the node's sequence number (-1 if it has
#: none of its own), and the operating system's number of the thread.
SeenRun: TypeAlias = tuple[int, int, str, int, int]


class Session(NamedTuple):
    """What the profiler has seen between a start and a stop.

    Attributes:
        passes: Those that ended meanwhile.
        runs: In the order in which they began.
        offset_ns: What to add to a time of the profiler's clock, about, for that of
            events.
    """

    passes: list[WatchedPass]
    runs: list[SeenRun]
    offset_ns: int


def runs_of(seen: Any) -> list[SeenRun]:  # noqa: ANN401 - PyTorch's
    """The functions of a result of the profiler, in the order in which they began."""
    runs = [
        (
            one.start_ns(),
            one.end_ns(),
            one.name(),
            one.sequence_nr(),
            one.device_resource_id(),
        )
        for one in seen.events()
    ]
    runs.sort()
    return runs
