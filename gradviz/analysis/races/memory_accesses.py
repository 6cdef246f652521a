"""The accesses to an allocation that a race can still be with.

An access is forgotten when it can no longer be in a race that is not found anyway:

* A later access comes after it, covers its bytes, and writes or is a read like it.
  Whoever is in no order with the earlier one is in none with the later one.
* All threads of the host know that it is done, so all that comes is after it.

So what is remembered is, of each stream, at most one read and one write of each extent.
"""

from collections.abc import Callable, Hashable, Iterable, Iterator
from typing import Final, NamedTuple

from gradviz.analysis.races.byte_ranges import Extent, covers, overlap
from gradviz.analysis.races.stream_clocks import StreamPoint, is_thread

#: A task and a node, of work that belongs to none.
NOWHERE: Final = (-1, -1)

#: Of a stream's accesses to an allocation that many are kept before it is asked whether
#: all know that some of them are done.
_MANY: Final = 64


class StreamWork:
    """Something that was put into a stream: where, for which node, by which line."""

    __slots__ = ("action", "location", "point", "task_node")

    def __init__(
        self,
        action: str,
        point: StreamPoint,
        task_node: tuple[int, int] = NOWHERE,
        location: str = "",
    ) -> None:
        self.action = action
        self.point = point
        self.task_node = task_node
        self.location = location


class Past(NamedTuple):
    """An access that happened; `tensor` is the program's name for the tensor."""

    work: StreamWork
    extent: Extent
    writes: bool
    tensor: str = ""


class MemoryAccesses:
    """Accesses of an allocation.

    Attributes:
        shared: The streams that `record_stream` has named.
    """

    __slots__ = ("_by_stream", "shared")

    def __init__(self) -> None:
        self._by_stream: dict[str, _OfStream] = {}
        self.shared: set[str] = set()

    def __len__(self) -> int:
        return sum(len(one.accesses) for one in self._by_stream.values())

    def latest(self) -> list[Past]:
        """Of each stream the last access."""
        return [one.latest for one in self._by_stream.values()]

    def in_conflict(self, access: Past) -> Iterator[Past]:
        """Accesses that `access` should be after and is not.

        Its point may be moved on meanwhile, and is looked at anew for each of them.
        """
        work, extent, writes, _ = access
        for stream, pasts in self._by_stream.items():
            number = pasts.latest.work.point.number
            if work.point.is_after_number(stream, number):
                continue
            if is_thread(stream) and is_thread(work.point.stream):
                continue  # no work of a device: the program's own affair
            for one in pasts.accesses.values():
                if (
                    (writes or one.writes)
                    and not work.point.is_after(one.work.point)
                    and overlap(extent, one.extent)
                ):
                    yield one

    def add(self, access: Past, is_known_to_all: Callable[[StreamPoint], bool]) -> None:
        """Add an access, and drop those no longer needed."""
        for stream, pasts in tuple(self._by_stream.items()):
            pasts.forget_for(access)
            if not pasts.accesses:
                del self._by_stream[stream]
        stream = access.work.point.stream
        pasts = self._by_stream.setdefault(stream, _OfStream())
        pasts.add(access, is_known_to_all)


class _OfStream:
    """The accesses of one stream, in order.

    Attributes:
        accesses: By the bytes, and whether they write.
    """

    __slots__ = ("_many", "_shortest", "accesses")

    def __init__(self) -> None:
        self.accesses: dict[tuple[Hashable, bool], Past] = {}
        #: No access is to an extent shorter than that: who covers it is to be seen.
        self._shortest = 0
        self._many = _MANY

    @property
    def latest(self) -> Past:
        return next(reversed(self.accesses.values()))

    def add(self, access: Past, is_known_to_all: Callable[[StreamPoint], bool]) -> None:
        extent = access.extent
        length = extent.high - extent.low
        self._shortest = min(self._shortest, length) if self.accesses else length
        self.accesses[_bytes(extent), access.writes] = access
        if len(self.accesses) > self._many:
            self._keep(
                one
                for one in self.accesses.values()
                if not is_known_to_all(one.work.point)
            )
            self._many = max(_MANY, 2 * len(self.accesses))

    def forget_for(self, access: Past) -> None:
        """Drop the accesses that `access` follows and replaces."""
        work, extent, writes, _ = access
        for kind in (True, False) if writes else (False,):
            key = _bytes(extent), kind
            same = self.accesses.get(key)
            if same is not None and work.point.is_after(same.work.point):
                del self.accesses[key]
        if extent.is_dense and extent.high - extent.low > self._shortest:
            self._keep(
                one
                for one in self.accesses.values()
                if (one.writes and not writes)
                or not covers(extent, one.extent)
                or not work.point.is_after(one.work.point)
            )

    def _keep(self, kept: Iterable[Past]) -> None:
        self.accesses = {(_bytes(one.extent), one.writes): one for one in kept}
        self._shortest = min(
            (one.extent.high - one.extent.low for one in self.accesses.values()),
            default=0,
        )


def _bytes(extent: Extent) -> Hashable:
    """The same for the same bytes, mostly."""
    return (extent.low, extent.high) if extent.is_dense else extent.layout
