"""The memory of a simulated device: blocks, and when each may be reused."""

from collections import deque
from collections.abc import Callable
from functools import partial
from typing import Final

import numpy as np

from gradviz.backends.protocols import MemoryUse
from gradviz.backends.reports import memory_ids
from gradviz.backends.simulated.devices.layouts import LARGE_BYTE, NAN_BYTE, ArrayLayout
from gradviz.backends.simulated.devices.work import LOCK, StreamQueue, Work, new_work
from gradviz.errors import OutOfMemoryError
from gradviz.trace import probe
from gradviz.trace.probe import LISTENERS

#: Sizes of blocks are multiples of it, as those of PyTorch's allocator.
_GRAIN_BYTES: Final = 512

#: The usual streams that use memory besides the one that it was taken for: none.
_NOBODY: Final[frozenset[StreamQueue]] = frozenset()


class MemoryBlock:
    """A piece of memory that serves one array after the other.

    Attributes:
        memory: The bytes.
        size: Number of bytes.
        address: Of the first of them.
        poisons: Function that fills it, for each poison there is.
    """

    __slots__ = ("address", "memory", "poisons", "size")

    def __init__(self, memory: np.ndarray) -> None:
        self.memory = memory
        self.size = memory.nbytes
        self.address: int = memory.__array_interface__["data"][0]
        self.poisons = {
            byte: partial(memory.fill, byte) for byte in (NAN_BYTE, LARGE_BYTE)
        }


class Allocation:
    """A block while it belongs to one array and that array's views.

    Arrays hold it, kernels do not: when the last array is gone so is the allocation,
    and its block goes back, in the order of its stream.

    Attributes:
        id: Unique in the process; a block has another one each time.
        block: The memory.
        queue: The stream that it was taken for.
        used_by: Other streams named by `record_stream`. Replaced, under `LOCK`, by
            whoever has an array in it; read when there is none any more.
        poison: Poison to fill it with once it is free.
    """

    __slots__ = ("_freed", "block", "id", "poison", "queue", "used_by")

    id: int
    block: MemoryBlock
    queue: StreamQueue
    poison: int
    used_by: frozenset[StreamQueue]
    _freed: "deque[Allocation]"

    def __del__(self) -> None:
        # This may run in the middle of anything, whatever lock its thread holds: one
        # atomic call and no more. It lives on in there; Python finalizes it once.
        if (freed := getattr(self, "_freed", None)) is not None:
            freed.append(self)


class Allocator:
    """Gives out the memory of one device, and takes it back.

    A block goes back to the stream that it was taken for as soon as its arrays are
    gone: that stream's later work comes after whatever it had launched with it. Where
    other streams were named by `record_stream`, it is held back until they have come
    as far as they were when the arrays went. A stream that was not named finds poison.

    Source: c10/cuda/CUDACachingAllocator.cpp. Differs: blocks are neither split nor
    joined; those given back are poisoned.

    Args:
        device: Name of the device in errors.
        wait: Returns when work is done.
    """

    __slots__ = (
        "_allocated",
        "_device",
        "_free",
        "_held_back",
        "_limit",
        "_peak",
        "_reserved",
        "_wait",
        "freed",
    )

    def __init__(self, device: str, wait: Callable[[Work], None]) -> None:
        self._device = device
        self._wait = wait
        #: Allocations without arrays; finalizers append, `collect` takes.
        self.freed: deque[Allocation] = deque()
        # Guarded by `LOCK`, as is all that follows.
        #: Blocks to use again, by stream and size.
        self._free: dict[tuple[StreamQueue, int], list[MemoryBlock]] = {}
        #: Those that streams still use, and how far these have to come.
        self._held_back: list[tuple[Allocation, list[Work]]] = []
        self._allocated = self._peak = self._reserved = 0
        self._limit: int | None = None

    def allocate(
        self, queue: StreamQueue, layout: ArrayLayout, kernel: str
    ) -> Allocation:
        """Allocate memory for an array that `kernel` of a stream is to write.

        Raises:
            OutOfMemoryError: There is not as much, and none to give back.
        """
        num_bytes = layout.num_bytes
        size = max(-(-num_bytes // _GRAIN_BYTES), 1) * _GRAIN_BYTES
        if self.freed or self._held_back:
            self.collect()
        with LOCK:
            free = self._free.get((queue, size))
            block = free.pop() if free else self._new_block(size, kernel)
            allocation = Allocation.__new__(Allocation)  # when compiled: new
            allocation.id = next(memory_ids)
            allocation.block = block
            allocation.queue = queue
            allocation.poison = layout.poison
            allocation.used_by = _NOBODY
            allocation._freed = self.freed  # the last: without it, it has no memory
            self._allocated += size
            self._peak = max(self._peak, self._allocated)
            if LISTENERS and (listener := probe.current):
                listener.memory_allocated(allocation.id, queue.text, num_bytes)
        return allocation

    def collect(self) -> None:
        """Take back the memory of dropped arrays; called before any launch."""
        while self.freed:
            try:
                allocation = self.freed.popleft()
            except IndexError:  # another thread was faster
                break
            with LOCK:
                self._free_one(allocation)
        if self._held_back:
            with LOCK:
                self._release()

    def record_stream(self, allocation: Allocation, queue: StreamQueue) -> None:
        """Hold a block back, once it is free, until that stream has come so far."""
        if queue is allocation.queue:
            return
        with LOCK:
            allocation.used_by |= {queue}
            if listener := probe.current:
                listener.memory_shared(allocation.id, queue.text)

    def use(self) -> MemoryUse:
        """Return the memory in use."""
        self.collect()
        with LOCK:
            return MemoryUse(self._allocated, self._peak, self._reserved)

    def reset_peak(self) -> None:
        """Begin a new peak."""
        self.collect()
        with LOCK:
            self._peak = self._allocated

    def set_limit(self, num_bytes: int | None) -> None:
        """Have so much memory from now on; None for as much as the host gives."""
        with LOCK:
            self._limit = num_bytes

    def empty_cache(self) -> None:
        """Release free memory to the host."""
        self.collect()
        with LOCK:
            for (_, size), blocks in self._free.items():
                self._reserved -= size * len(blocks)
            self._free.clear()

    def _free_one(self, allocation: Allocation) -> None:
        self._allocated -= allocation.block.size
        queue = allocation.queue
        if queue.device.lost:
            return
        if LISTENERS and (listener := probe.current):
            listener.memory_freed(allocation.id, queue.text)
        if not allocation.used_by:
            self._give_back(allocation)
            return
        markers = [user.mark() for user in allocation.used_by if not user.device.lost]
        if not all(marker.is_done for marker in markers):
            self._held_back.append((allocation, markers))
        else:
            self._give_back(allocation)

    def _give_back(self, allocation: Allocation) -> None:
        block, queue = allocation.block, allocation.queue
        poison = block.poisons[allocation.poison]
        queue.add(new_work(queue, "", poison, None, False, True))
        self._free.setdefault((queue, block.size), []).append(block)

    def _release(self) -> None:
        """Give back those that were held back and are in use no more."""
        held_back, self._held_back = self._held_back, []
        for allocation, markers in held_back:
            if all(marker.is_done for marker in markers):
                self._give_back(allocation)
            else:
                self._held_back.append((allocation, markers))

    def _new_block(self, size: int, kernel: str) -> MemoryBlock:
        if not self._has_room(size):
            self._make_room()
            if not self._has_room(size):
                raise self._out_of_memory(size, kernel)
        try:
            memory = np.empty(size, np.uint8)
        except MemoryError as error:
            raise self._out_of_memory(size, kernel) from error
        memory.fill(NAN_BYTE)
        self._reserved += size
        return MemoryBlock(memory)

    def _has_room(self, size: int) -> bool:
        return self._limit is None or self._reserved + size <= self._limit

    def _make_room(self) -> None:
        for _, markers in self._held_back:
            for marker in markers:
                self._wait(marker)
        self._release()
        self.empty_cache()

    def _out_of_memory(self, size: int, kernel: str) -> OutOfMemoryError:
        capacity = "what the host gives"
        if self._limit is not None:
            free = max(self._limit - self._reserved, 0)
            capacity = f"{_text(self._limit)} of which {_text(free)} is free"
        return OutOfMemoryError(
            f"{self._device} out of memory. Tried to allocate {_text(size)} for "
            f"{kernel!r}. "
            f"{self._device} has a total capacity of {capacity}. "
            f"{_text(self._allocated)} is allocated by arrays, and "
            f"{_text(self._reserved - self._allocated)} is reserved but unallocated. "
            f"Let go of some tensors, or give it more by gv.sim.set_memory_limit()."
        )


def _text(num_bytes: int) -> str:
    """Format a size as PyTorch does: ``20.00 MiB``."""
    for unit, size in (("GiB", 2**30), ("MiB", 2**20), ("KiB", 2**10)):
        if num_bytes >= size:
            return f"{num_bytes / size:.2f} {unit}"
    return f"{num_bytes} bytes"
