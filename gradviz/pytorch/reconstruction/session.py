"""The records of PyTorch's profiler between a start and a stop."""

from collections.abc import Iterable, Sequence
from typing import TYPE_CHECKING, Any, NamedTuple, TypeAlias

from gradviz.pytorch.reconstruction.watched_pass import WatchedPass

if TYPE_CHECKING:
    from gradviz.pytorch.reconstruction.device_records import DeviceRecords
    from gradviz.pytorch.reconstruction.seen_collectives import SeenCollective

#: A function of a backward that was seen to run: its start and end on the profiler's
#: clock, its name as the node's ``name()`` is, the node's sequence number (-1 if it has
#: none of its own), the operating system's number of the thread, and PyTorch's number
#: of the thread that made the node (0 if it is not known).
SeenRun: TypeAlias = tuple[int, int, str, int, int, int]


class Session(NamedTuple):
    """Events that the profiler has seen between a start and a stop.

    Attributes:
        passes: Passes that ended meanwhile.
        runs: In the order in which they began.
        offset_ns: Approximate amount to add to a time of the profiler's clock for that
            of events.
        collectives: Collectives of ranks meanwhile, in the order in which they began.
        devices: Events of devices, None where none was watched.
    """

    passes: list[WatchedPass]
    runs: list[SeenRun]
    offset_ns: int
    collectives: "Sequence[SeenCollective]" = ()
    devices: "DeviceRecords | None" = None


def runs_of(events: Iterable[Any], *, knows_threads: bool) -> list[SeenRun]:
    """Return the functions among records of the profiler, in the order they began.

    Args:
        events: The records.
        knows_threads: See `PyTorch.knows_threads`.
    """
    runs = [
        (
            one.start_ns(),
            one.end_ns(),
            one.name(),
            one.sequence_nr(),
            one.device_resource_id(),
            one.fwd_thread_id() if knows_threads else 0,
        )
        for one in events
    ]
    runs.sort()
    return runs
