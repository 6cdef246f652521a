"""What happens before what on streams: finds accesses to memory that nothing orders.

Theory of operation
~~~~~~~~~~~~~~~~~~~
`stream_clocks` knows for each work on a stream what is done before it begins.
Two accesses to the same bytes, one of them a write, have to be so ordered: the later
one's work begins when the earlier one's is done. Of each allocation those accesses are
remembered that a later one can still be in conflict with.

* Memory is written by being allocated: whoever had it before may still be at work on
  the stream that it is allocated for.
* Memory is written by being freed, since that stream's next work may get it; but that
  waits for the streams that `memory_shared` has named.

A race is told once: from then on the machine goes on as if the missing wait were there,
so that each further race is another missing wait.

Differs: PyTorch's sanitizer of CUDA streams (torch/cuda/_sanitizer.py) is the model,
but takes each address for one whole and looks at no free.
"""

from collections import Counter
from collections.abc import Callable, Hashable
from typing import Final, NamedTuple

from gradviz.analysis.extent import Extent, covers, overlap, parse_extent, whole
from gradviz.analysis.races import (
    Access,
    Findings,
    NeedlessWait,
    NodeOrigin,
    Race,
    missing_sync,
)
from gradviz.analysis.stream_clocks import Point, StreamClocks

#: A kernel's accesses are reported right after its launch, other threads' between.
_MAX_KERNELS: Final = 1 << 12

#: So many accesses to an allocation are remembered. What is forgotten can hide a race,
#: never make one up.
_MAX_ACCESSES: Final = 1 << 8

#: So many different races and needless waits are listed.
_MAX_FINDINGS: Final = 1000

_NOWHERE: Final = (-1, -1)


class _Work:
    """Something that was put into a stream: where, for which node, by which line."""

    __slots__ = ("action", "location", "point", "task_node")

    def __init__(
        self,
        action: str,
        point: Point,
        task_node: tuple[int, int] = _NOWHERE,
        location: str = "",
    ) -> None:
        self.action = action
        self.point = point
        self.task_node = task_node
        self.location = location


class _Past(NamedTuple):
    """An access that happened."""

    work: _Work
    extent: Extent
    writes: bool


class _Memory:
    """What is remembered of an allocation."""

    __slots__ = ("accesses", "shared")

    def __init__(self) -> None:
        self.accesses: list[_Past] = []
        self.shared: set[str] = set()


class HappensBefore:
    """A machine that is fed with reports and finds what they leave unordered.

    Its methods are called as those of a `Probe`, in the order of what happened, by one
    thread at a time. What a thread reports while it evaluates a node is the node's.

    Args:
        origin: What is known of a node; asked when a race is found.
    """

    def __init__(self, origin: Callable[[int], NodeOrigin]) -> None:
        self._origin = origin
        self._clocks = StreamClocks()
        self._kernels: dict[int, _Work] = {}
        self._memories: dict[int, _Memory] = {}
        self._inside: dict[Hashable, list[tuple[int, int]]] = {}
        self._races: dict[Hashable, tuple[Race, int]] = {}
        self._waits: Counter[NeedlessWait] = Counter()
        self._num_kernels = 0
        self._num_unlisted = 0

    @property
    def findings(self) -> Findings:
        """All that was found so far."""
        return Findings(
            races=tuple(self._races.values()),
            needless_waits=tuple(self._waits.items()),
            num_kernels=self._num_kernels,
            num_unlisted=self._num_unlisted,
        )

    # --- who works ------------------------------------------------------------------

    def node_started(self, thread: Hashable, task: int, node: int) -> None:
        """What `thread` launches from now on is the node's."""
        self._inside.setdefault(thread, []).append((task, node))

    def node_ended(self, thread: Hashable, task: int, node: int) -> None:
        """It is no longer, nor that of nodes inside it that an interrupt left open."""
        inside = self._inside.get(thread, [])
        if (task, node) in inside:
            del inside[inside.index((task, node)) :]

    def thread_exited(self, thread: Hashable) -> None:
        """The thread evaluates nothing any more."""
        self._inside.pop(thread, None)

    # --- who waits ------------------------------------------------------------------

    def event_recorded(self, stream: str, event: int) -> None:
        """See `Probe.event_recorded`."""
        self._clocks.record(stream, event)

    def stream_waited(
        self, task: int, node: int, stream: str, event: int, location: str
    ) -> None:
        """See `Probe.stream_waited`."""
        is_needed = self._clocks.wait(stream, event)
        marked = self._clocks.marked_by(event)
        # Of what comes after a race nobody can say whether it was needed.
        if is_needed or self._races or marked is None or not marked.number:
            return
        wait = NeedlessWait(
            stream=stream,
            producer=marked.stream,
            location=location,
            task=task,
            node=node,
        )
        if wait in self._waits or len(self._waits) < _MAX_FINDINGS:
            self._waits[wait] += 1

    def event_synchronized(self, event: int) -> None:
        """See `Probe.event_synchronized`."""
        self._clocks.synchronize_event(event)

    def stream_synchronized(self, stream: str) -> None:
        """See `Probe.stream_synchronized`."""
        self._clocks.synchronize_stream(stream)

    def device_synchronized(self, device: str) -> None:
        """See `Probe.device_synchronized`."""
        self._clocks.synchronize_device(device)

    # --- who uses memory ------------------------------------------------------------

    def kernel_launched(
        self, thread: Hashable, kernel: int, stream: str, name: str, location: str
    ) -> None:
        """See `Probe.kernel_launched`."""
        self._num_kernels += 1
        inside = self._inside.get(thread)
        self._kernels[kernel] = _Work(
            name,
            self._clocks.launch(stream),
            inside[-1] if inside else _NOWHERE,
            location,
        )
        if len(self._kernels) > _MAX_KERNELS:
            del self._kernels[next(iter(self._kernels))]

    def array_accessed(
        self, kernel: int, memory: int, layout: str, writes: bool
    ) -> None:
        """See `Probe.array_accessed`."""
        work, extent = self._kernels.get(kernel), parse_extent(layout)
        if work is None or extent is None:
            return
        known = self._memories.get(memory)
        if known is None:
            known = self._memories[memory] = _Memory()
        access = _Past(work, extent, writes)
        kept = []
        for one in known.accesses:
            if work.point.is_after(one.work.point):
                # Whoever is in conflict with it is so with the new access.
                if (writes or not one.writes) and covers(extent, one.extent):
                    continue
            elif (writes or one.writes) and overlap(extent, one.extent):
                self._found(memory, one, access)
                early = one.work.point.stream
                work.point = self._clocks.wait_for_now(work.point, early)
            kept.append(one)
        kept.append(access)
        known.accesses = kept[-_MAX_ACCESSES:]

    def memory_allocated(self, memory: int, stream: str, size_bytes: int) -> None:
        """See `Probe.memory_allocated`."""
        work = _Work("allocation", self._clocks.launch(stream))
        known = self._memories[memory] = _Memory()
        known.accesses.append(_Past(work, whole(size_bytes), True))

    def memory_shared(self, memory: int, stream: str) -> None:
        """See `Probe.memory_shared`."""
        if memory in self._memories:
            self._memories[memory].shared.add(stream)

    def memory_freed(self, memory: int, stream: str) -> None:
        """See `Probe.memory_freed`."""
        known = self._memories.pop(memory, None)
        if known is None:
            return
        free = _Work("free", self._clocks.now(stream))
        latest = {one.work.point.stream: one for one in known.accesses}
        for user, one in latest.items():
            if user not in known.shared and not free.point.is_after(one.work.point):
                self._found(memory, one, _Past(free, one.extent, True))

    # --- what is found ----------------------------------------------------------------

    def _found(self, memory: int, first: _Past, second: _Past) -> None:
        accesses = self._access(first), self._access(second)
        # Of a line in a loop, which may take another stream each time, once.
        key = tuple(
            (one.action, one.writes, one.location or one.stream, one.origin)
            for one in accesses
        )
        if key not in self._races:
            if len(self._races) >= _MAX_FINDINGS:
                self._num_unlisted += 1
                return
            early, late = accesses
            race = Race(
                memory=memory,
                first=early,
                second=late,
                remedy=missing_sync(early, late),
            )
            self._races[key] = race, 0
        race, times = self._races[key]
        self._races[key] = race, times + 1

    def _access(self, past: _Past) -> Access:
        work = past.work
        task, node = work.task_node
        return Access(
            action=work.action,
            stream=work.point.stream,
            writes=past.writes,
            layout=past.extent.layout,
            location=work.location,
            task=task,
            node=node,
            origin=NodeOrigin() if node < 0 else self._origin(node),
        )
