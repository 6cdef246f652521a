"""The order of work on streams: finds accesses to memory that nothing orders.

Theory of operation
~~~~~~~~~~~~~~~~~~~
`stream_clocks` knows for each work on a stream what is done before it begins.
Two accesses to the same bytes, one of them a write, have to be so ordered: the later
one's work begins when the earlier one's is done. Of each allocation those accesses are
remembered that a later one can still be in conflict with: see `memory_accesses`.

* Memory is written by being allocated: whoever had it before may still be at work on
  the stream that it is allocated for.
* Memory is written by being freed, since that stream's next work may get it; but that
  waits for the streams that `memory_shared` has named.
* The host reads and writes memory that devices copy from and to: pinned memory. To free
  that is no write, as nobody gets it before the copies are done.

Note [Threads of the host]
~~~~~~~~~~~~~~~~~~~~~~~~~~
What one thread has waited for, another one does not know, unless it was told: by a
queue, a lock, an event, by being started or by joining. Where those hand-overs are
heard (`handovers_heard`), threads are told apart. Else they count as one: what any of
them has waited for is done before whatever any of them launches later. That hides
races, and makes none up.

A backward pass hands over, too: its nodes run after it has begun, and after each other,
and whoever has called it goes on after all of them. That is so for each task by itself,
except that a node is taken to come after all nodes of its task that have ended so far.

A race is told once: from then on the machine goes on as if the missing wait were there,
so that each further race is another missing wait.

Differs: PyTorch's sanitizer of CUDA streams (torch/cuda/_sanitizer.py) is the model,
but takes each address for one whole and looks at no free.
"""

from collections import Counter
from collections.abc import Callable, Hashable
from typing import Final

from gradviz.analysis.races.byte_ranges import parse_extent, whole
from gradviz.analysis.races.memory_accesses import (
    NOWHERE,
    MemoryAccesses,
    Past,
    StreamWork,
)
from gradviz.analysis.races.race_reports import (
    Access,
    Findings,
    NeedlessWait,
    NodeOrigin,
    Race,
    StreamOrigin,
    missing_sync,
)
from gradviz.analysis.races.stream_clocks import HOST, StreamClocks
from gradviz.trace.probe import Role
from gradviz.trace.reporting.thread_knowledge import EVERYTHING

#: A kernel's accesses are reported right after its launch, other threads' between.
_MAX_KERNELS: Final = 1 << 12

#: Maximum number of different races and needless waits listed.
_MAX_FINDINGS: Final = 1000


class HappensBefore:
    """A machine that takes reports and finds unordered accesses.

    Its methods are called as those of a `Probe`, in the order of what happened, by one
    thread at a time. What a thread reports while it evaluates a node is the node's.

    Args:
        origin: Facts known of a node; asked when a race is found.
        stream_origin: Facts known of a stream; asked when a race is found.
        number: The number of a node of a pass in the order of execution, None if it is
            not known; asked when a race is found.
    """

    def __init__(
        self,
        origin: Callable[[int], NodeOrigin],
        stream_origin: Callable[[str], StreamOrigin] = lambda _: StreamOrigin(),
        number: Callable[[int, int], int | None] = lambda *_: None,
    ) -> None:
        self._origin = origin
        self._stream_origin = stream_origin
        self._number = number
        #: Places that called backward, of passes that are not long gone.
        self._tasks: dict[int, str] = {}
        #: Of each thread the passes that it has called and is inside of.
        self._called: dict[Hashable, list[int]] = {}
        #: True if hand-overs between threads are heard; see Note [Threads of the host].
        self.tells_threads_apart = False
        #: Threads that were begun and have not entered yet, by their keys.
        self._begun: dict[int, str] = {}
        #: Names of threads in clocks.
        self._threads: dict[Hashable, str] = {}
        self._num_threads = 0
        #: Threads of the engine, while they are inside of nodes.
        self._workers: set[str] = set()
        self._clocks = StreamClocks()
        self._kernels: dict[int, StreamWork] = {}
        self._memories: dict[int, MemoryAccesses] = {}
        self._inside: dict[Hashable, list[tuple[int, int]]] = {}
        self._races: dict[Hashable, tuple[Race, int]] = {}
        self._waits: Counter[NeedlessWait] = Counter()
        #: Lines whose waits changed something, and streams that waited by none.
        self._needed: set[Hashable] = set()
        self._num_kernels = 0
        self._num_unlisted = 0

    @property
    def findings(self) -> Findings:
        """Return all findings so far."""
        return Findings(
            races=tuple(self._races.values()),
            needless_waits=tuple(
                (wait, times)
                for wait, times in self._waits.items()
                if _place(wait) not in self._needed
            ),
            num_kernels=self._num_kernels,
            num_unlisted=self._num_unlisted,
        )

    # --- who works ------------------------------------------------------------------

    def node_started(self, thread: Hashable, task: int, node: int) -> None:
        """Attribute later launches of `thread` to a node."""
        self._inside.setdefault(thread, []).append((task, node))
        if self.tells_threads_apart:
            name = self._name(thread)
            if not self._clocks.has_begun(name):  # the engine's, not the program's
                self._workers.add(name)
                self._clocks.begin_thread(name)
            self._clocks.take_over(name, (task, "task"))

    def node_ended(self, thread: Hashable, task: int, node: int) -> None:
        """It is no longer, nor that of nodes inside it that an interrupt left open."""
        inside = self._inside.get(thread, [])
        if (task, node) in inside:
            del inside[inside.index((task, node)) :]
        if self.tells_threads_apart:
            name = self._name(thread)
            self._clocks.hand_over(name, (task, "task"))
            if not inside and name in self._workers:
                self._workers.discard(name)
                self._clocks.end_thread(name)

    def thread_exited(self, thread: Hashable, role: Role = Role.DEVICE) -> None:
        """The thread evaluates nothing any more; if it is a caller, it goes on."""
        self._inside.pop(thread, None)
        if role is Role.CALLER:
            for task in self._called.pop(thread, ()):
                self.task_left(thread, task)

    def task_begun(self, thread: Hashable, task: int, location: str) -> None:
        """See `Probe.task_begun`."""
        self._tasks[task] = location
        if len(self._tasks) > _MAX_KERNELS:
            del self._tasks[next(iter(self._tasks))]
        if self.tells_threads_apart:
            self._called.setdefault(thread, []).append(task)
            self.handed_over(thread, (task, "task"))

    def task_completed(self, thread: Hashable, task: int) -> None:
        """See `Probe.task_completed`."""
        self.handed_over(thread, (task, "task"))

    def task_left(self, thread: Hashable, task: int) -> None:
        """The thread that has called the pass goes on."""
        self.taken_over(thread, (task, "task"))

    def handovers_heard(self, thread: Hashable) -> None:
        """See `Probe.handovers_heard`."""
        self.tells_threads_apart = True
        name = self._name(thread)
        self._clocks.begin_thread(name, name)  # which goes on

    def program_thread_begun(self, thread: Hashable, key: int) -> None:
        """See `Probe.program_thread_begun`; it knows what its parent knows."""
        if self.tells_threads_apart:
            name = self._begun[key] = self._new_name()
            self._clocks.begin_thread(name, self._name(thread))

    def program_thread_entered(self, thread: Hashable, key: int) -> None:
        """See `Probe.program_thread_entered`."""
        if key in self._begun:
            self._threads[thread] = self._begun.pop(key)

    def program_thread_left(self, thread: Hashable, key: int) -> None:
        """See `Probe.program_thread_left`."""
        if self.tells_threads_apart:
            self.handed_over(thread, key)
            self._clocks.end_thread(self._name(thread))

    def handed_over(self, thread: Hashable, key: Hashable) -> None:
        """Order later takers of a hand-over after the work of `thread` so far."""
        if self.tells_threads_apart:
            self._clocks.hand_over(self._name(thread), key)

    def taken_over(self, thread: Hashable, key: Hashable) -> None:
        """`thread` goes on after all that was handed over there so far."""
        if not self.tells_threads_apart:
            return
        if key == EVERYTHING:
            self._clocks.take_over_all(self._name(thread))
        else:
            self._clocks.take_over(self._name(thread), key)

    def _name(self, thread: Hashable) -> str:
        if not self.tells_threads_apart:
            return HOST
        name = self._threads.get(thread)
        if name is None:
            name = self._threads[thread] = self._new_name()
        return name

    def _new_name(self) -> str:
        number = self._num_threads
        self._num_threads += 1
        return f"{HOST} ({number})" if number else HOST

    # --- who waits ------------------------------------------------------------------

    def event_recorded(self, stream: str, event: int, thread: Hashable = None) -> None:
        """See `Probe.event_recorded`."""
        self._clocks.record(stream, event, self._name(thread))

    def stream_waited(
        self,
        task: int,
        node: int,
        stream: str,
        event: int,
        location: str,
        thread: Hashable = None,
    ) -> None:
        """See `Probe.stream_waited`."""
        is_needed = self._clocks.wait(stream, event, self._name(thread))
        marked = self._clocks.marked_by(event)
        if marked is None or not marked.number:
            return
        wait = NeedlessWait(
            stream=stream,
            producer=marked.stream,
            location=location,
            task=task,
            node=node,
        )
        if is_needed:
            if task < 0:  # the engine asks for each node anew, at no line
                self._needed.add(_place(wait))
            return
        # Of what comes after a race nobody can say whether it was needed.
        if self._races:
            return
        if wait in self._waits or len(self._waits) < _MAX_FINDINGS:
            self._waits[wait] += 1

    def event_synchronized(self, event: int, thread: Hashable = None) -> None:
        """See `Probe.event_synchronized`."""
        self._clocks.synchronize_event(event, self._name(thread))

    def stream_synchronized(self, stream: str, thread: Hashable = None) -> None:
        """See `Probe.stream_synchronized`."""
        self._clocks.synchronize_stream(stream, self._name(thread))

    def device_synchronized(self, device: str, thread: Hashable = None) -> None:
        """See `Probe.device_synchronized`."""
        self._clocks.synchronize_device(device, self._name(thread))

    # --- who uses memory ------------------------------------------------------------

    def kernel_launched(
        self, thread: Hashable, kernel: int, stream: str, name: str, location: str
    ) -> None:
        """See `Probe.kernel_launched`."""
        self._num_kernels += 1
        inside = self._inside.get(thread)
        self._kernels[kernel] = StreamWork(
            name,
            self._clocks.launch(stream, self._name(thread)),
            inside[-1] if inside else NOWHERE,
            location,
        )
        if len(self._kernels) > _MAX_KERNELS:
            del self._kernels[next(iter(self._kernels))]

    def array_accessed(
        self,
        kernel: int,
        memory: int,
        layout: str,
        writes: bool,
        tensor: str = "",
    ) -> None:
        """See `Probe.array_accessed`; `tensor` is the program's name for it."""
        work, extent = self._kernels.get(kernel), parse_extent(layout)
        if work is None or extent is None:
            return
        self._access(memory, Past(work, extent, writes, tensor))

    def host_accessed(
        self, thread: Hashable, memory: int, layout: str, writes: bool, location: str
    ) -> None:
        """See `Probe.host_accessed`."""
        extent = parse_extent(layout)
        if extent is None:
            return
        point = self._clocks.act(self._name(thread))
        inside = self._inside.get(thread)
        work = StreamWork(HOST, point, inside[-1] if inside else NOWHERE, location)
        self._access(memory, Past(work, extent, writes))

    def memory_allocated(
        self, memory: int, stream: str, size_bytes: int, thread: Hashable = None
    ) -> None:
        """See `Probe.memory_allocated`."""
        work = StreamWork("allocation", self._clocks.launch(stream, self._name(thread)))
        self._memories[memory] = MemoryAccesses()
        self._access(memory, Past(work, whole(size_bytes), True))

    def memory_shared(self, memory: int, stream: str) -> None:
        """See `Probe.memory_shared`."""
        if memory in self._memories:
            self._memories[memory].shared.add(stream)

    def memory_freed(self, memory: int, stream: str) -> None:
        """See `Probe.memory_freed`."""
        known = self._memories.pop(memory, None)
        if known is None or not stream:
            return
        free = StreamWork("free", self._clocks.at_free(stream))
        for one in known.latest():
            user = one.work.point.stream
            if user not in known.shared and not free.point.is_after(one.work.point):
                self._found(memory, one, Past(free, one.extent, True))

    # --- what is found ----------------------------------------------------------------

    def _access(self, memory: int, access: Past) -> None:
        known = self._memories.get(memory)
        if known is None:
            known = self._memories[memory] = MemoryAccesses()
        work = access.work
        for one in known.in_conflict(access):
            self._found(memory, one, access)
            early = one.work.point.stream
            work.point = self._clocks.wait_for_now(work.point, early)
        known.add(access, self._clocks.is_known_to_all)

    def _found(self, memory: int, first: Past, second: Past) -> None:
        accesses = self._access_of(first), self._access_of(second)
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

    def _access_of(self, past: Past) -> Access:
        work = past.work
        task, node = work.task_node
        return Access(
            action=work.action,
            stream=work.point.stream,
            writes=past.writes,
            layout=past.extent.layout,
            tensor=past.tensor,
            location=work.location,
            task=task,
            node=node,
            index=None if node < 0 else self._number(task, node),
            origin=NodeOrigin() if node < 0 else self._origin(node),
            backward=self._tasks.get(task, ""),
            stream_origin=self._stream_origin(work.point.stream),
        )


def _place(wait: NeedlessWait) -> Hashable:
    """Return the removable place of a wait: its line, which may be needed later."""
    return wait.location or (wait.stream, wait.producer)
