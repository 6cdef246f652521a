"""An accelerator that only takes notes: what is in order, and what is not.

Of each access to memory it notes what happens before it, by the rules of streams and
events alone, and so it knows of two accesses that nothing orders. There is nothing to
wait for: work counts as done at once, and the host, which launches it, orders nothing.
"""

import itertools
import threading
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import NamedTuple, NoReturn

from gradviz.backends.device import Device
from gradviz.backends.protocols import Array, ArrayTypes, MemoryUse, StreamLike


class Access(NamedTuple):
    """One piece of work that touches some memory.

    Attributes:
        number: Which access it is, of all.
        before: The numbers of all that happen before it, as bits.
        text: For people.
        writes: Whether it writes.
    """

    number: int
    before: int
    text: str
    writes: bool


@dataclass
class Memory:
    """Memory of an array.

    Attributes:
        stream: Whose work may use it again once it is free.
        shared_with: Streams for which it is kept until then.
        accesses: In the order in which they were launched.
    """

    stream: str
    shared_with: set[str] = field(default_factory=set)
    accesses: list[Access] = field(default_factory=list)


class Notebook:
    """Record of the work on the noted devices; any thread may write.

    Attributes:
        told: What the devices were asked for, in order.
        is_broken: Whether they refuse all work.
    """

    def __init__(self) -> None:
        # Reentrant, for memory may be freed whenever garbage is collected. It guards
        # what follows. Nothing of the engine happens while it is held.
        self._lock = threading.RLock()
        self._numbers = itertools.count()
        #: What happens before the next work of a stream.
        self._past: dict[str, int] = {}
        self._memories: list[Memory] = []
        self.told: list[tuple[str, ...]] = []
        self.is_broken = False

    def tell(self, *what: str) -> None:
        """Note what a device is asked for."""
        self.told.append(what)

    def launch(
        self,
        name: str,
        stream: StreamLike,
        reads: Sequence[Memory] = (),
        writes: Sequence[Memory] = (),
    ) -> None:
        """Note work of a stream, by what it reads and writes."""
        self.tell("launch", name, str(stream))
        with self._lock:
            for memory in (*reads, *writes):
                past = self._past.get(str(stream), 0)
                number = next(self._numbers)
                memory.accesses.append(
                    Access(number, past, f"{name} on {stream}", memory in writes)
                )
                self._past[str(stream)] = past | 1 << number

    def allocate(self, stream: StreamLike) -> Memory:
        """Memory for work of a stream."""
        memory = Memory(str(stream))
        with self._lock:
            self._memories.append(memory)
        return memory

    def free(self, memory: Memory) -> None:
        """Note that its stream may use memory again: as if that wrote there, now."""
        with self._lock:
            past = self._past.get(memory.stream, 0)
            for stream in memory.shared_with:
                past |= self._past.get(stream, 0)
            text = f"the free for {memory.stream}"
            memory.accesses.append(Access(next(self._numbers), past, text, writes=True))

    def record(self, stream: StreamLike) -> int:
        """Return a stream's work so far, as bits."""
        self.tell("record", str(stream))
        return self._past.get(str(stream), 0)

    def wait(self, stream: StreamLike, marker: int) -> None:
        """Have what was recorded happen before all later work of a stream."""
        self.tell("wait", str(stream))
        with self._lock:
            self._past[str(stream)] = self._past.get(str(stream), 0) | marker

    def waits(self) -> list[str]:
        """The streams that were made to wait."""
        return [what[1] for what in self.told if what[0] == "wait"]

    def races(self) -> list[str]:
        """Pairs of accesses that touch one memory in no order."""
        return [
            f"nothing orders {one.text} and {other.text}"
            for memory in self._memories
            for one, other in itertools.combinations(memory.accesses, 2)
            if (one.writes or other.writes) and not other.before >> one.number & 1
        ]


class NotedBackend:
    """An accelerator that writes into a notebook.

    Args:
        type: Its name.
        array_types: Classes of arrays, with a ``device`` and a ``memory`` each.
        num_devices: How many devices it has.
        notebook: Where it writes.
        pause: Called before an event is recorded or waited for, and before work is
            launched: there other threads may come in between.
    """

    def __init__(
        self,
        type: str,  # noqa: A002 - as backends have it
        array_types: ArrayTypes,
        num_devices: int,
        notebook: Notebook,
        pause: Callable[[], object] = bool,
    ) -> None:
        self.type = type
        self.array_types = array_types
        self.notebook = notebook
        self._num_devices = num_devices
        self._pause = pause
        self._stream_ids = itertools.count(1)

    def device_count(self) -> int:
        """Return the given number."""
        return self._num_devices

    def is_initialized(self) -> bool:
        """Never: a pass that needs threads says so itself."""
        return False

    def device_of(self, array: Array) -> Device:
        """Return the device that an array names."""
        device: Device = array.device
        return device

    def device_name(self, device: Device) -> str:
        """Not much."""
        return f"notebook {device.number}"

    def new_stream(self, device: Device, priority: int) -> int:
        """One that nobody has yet."""
        del device, priority
        return next(self._stream_ids)

    def make_current(self, stream: StreamLike) -> None:
        """Note on which thread."""
        self.notebook.tell("make current", str(stream), threading.current_thread().name)

    def record(self, stream: StreamLike, enable_timing: bool) -> int:
        """Return the work before the marker.

        Raises:
            RuntimeError: The devices are broken.
        """
        del enable_timing
        self._pause()
        if self.notebook.is_broken:
            raise RuntimeError(f"{stream.device} is lost")
        return self.notebook.record(stream)

    def wait(self, stream: StreamLike, marker: int) -> None:
        """Note it."""
        self._pause()
        self.notebook.wait(stream, marker)

    def record_stream(self, array: Array, stream: StreamLike) -> None:
        """Note it."""
        array.memory.shared_with.add(str(stream))

    def is_idle(self, stream: StreamLike) -> bool:
        """Always."""
        del stream
        return True

    def is_done(self, marker: int) -> bool:
        """Always."""
        del marker
        return True

    def synchronize_stream(self, stream: StreamLike) -> None:
        """There is nothing to wait for."""

    def synchronize_device(self, device: Device) -> None:
        """There is nothing to wait for."""

    def synchronize_marker(self, marker: int) -> None:
        """There is nothing to wait for."""

    def elapsed_ms(self, begin: int, end: int) -> float:
        """No time passes."""
        del begin, end
        return 0.0

    def memory_use(self, device: Device) -> MemoryUse:
        """Nobody counts."""
        del device
        return MemoryUse(0, 0, 0)

    def reset_peak_memory(self, device: Device) -> None:
        """Nobody counts."""

    def empty_cache(self) -> None:
        """There is none."""

    def to_peer(self, array: Array, device: Device) -> Array:
        """Refuse: the kind of arrays is not known here."""
        _refuse(array, device)

    def from_host(
        self, array: Array, device: Device, *, non_blocking: bool = False
    ) -> Array:
        """See `to_peer`."""
        _refuse(array, device, non_blocking)

    def to_host(self, array: Array, *, non_blocking: bool = False) -> Array:
        """See `to_peer`."""
        _refuse(array, non_blocking)

    def pinned_memory(self, size_bytes: int) -> Array:
        """See `to_peer`."""
        _refuse(size_bytes)


def _refuse(*asked: object) -> NoReturn:
    raise NotImplementedError(f"a device that takes notes makes no arrays of {asked}")
