"""The memory of CUDA devices: places of arrays, and their lifetimes."""

import contextlib
from collections import Counter, deque
from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Any, Protocol

import numpy as np

from gradviz.backends.device import Device
from gradviz.backends.protocols import StreamLike
from gradviz.backends.reports import memory_ids
from gradviz.locks import SafeRLock
from gradviz.trace import probe


class Owner(Protocol):
    """The backend as an array needs it; see `gradviz.backends.cuda.CudaBackend`.

    Attributes:
        account: Account of the memory in use.
    """

    account: "Account"

    def stream(self, device: Device) -> StreamLike:
        """The one that is current; not to be entered."""

    def launch(
        self,
        device: Device,
        call: Callable[..., Any],
        args: Sequence[Any],
        kwargs: Mapping[str, Any],
    ) -> Any:
        """Call that on the current stream of `device`."""

    def launch_algebra(
        self,
        device: Device,
        call: Callable[..., Any],
        args: Sequence[Any],
        kwargs: Mapping[str, Any],
    ) -> Any:
        """Launch a function of `np.linalg`, whose failures are errors; see `launch`."""

    def look_at_index(self, device: Device, name: str, index: Any, size: int) -> None:
        """Check the indices of the next op on the device."""

    def begin(self, device: Device) -> Any:
        """Prepare the report of a kernel about to be launched; None if unheard."""

    def report(
        self,
        begun: Any,
        device: Device,
        name: str,
        reads: Iterable[Any],
        writes: Iterable[Any],
    ) -> None:
        """Report a kernel that was launched on the current stream."""

    def upload(self, array: np.ndarray, device: Device) -> Any:
        """An array with the elements of one in host memory."""

    def download(self, array: Any) -> np.ndarray:
        """The elements in host memory; waits for them."""


class Memory:
    """One allocation, that of an array and of its views.

    Attributes:
        owner: The backend.
        stream: That it was taken for.
        block: CuPy's object that has it.
        id: Unique in the process.
        used_by: Other streams whose work uses it, for `record_stream`.
    """

    __slots__ = ("block", "id", "owner", "stream", "used_by")

    def __init__(self, owner: Owner, stream: StreamLike, block: Any) -> None:
        self.owner = owner
        self.stream = stream
        self.block = block
        self.id = next(memory_ids)
        self.used_by: tuple[StreamLike, ...] = ()
        owner.account.taken(self)

    def __del__(self) -> None:
        self.owner.account.freed(self)


class Account:
    """Account of memory in use, and of memory kept alive for pending work.

    Args:
        record: Makes an event after the work that a stream has so far.
    """

    def __init__(self, record: Callable[[StreamLike], Any]) -> None:
        self._record = record
        # An RLock, because memory is freed by finalizers, in the midst of anything.
        self._lock = SafeRLock()
        self._allocated: Counter[Device] = Counter()  # guarded by _lock
        self._peak: Counter[Device] = Counter()  # guarded by _lock
        #: By index of a device and number of a stream: what must live until an event
        #: has happened there, in that order. Plain keys, so that no code of Python runs
        #: while the table changes; entries are never removed. Of a stream's, each is
        #: taken by one thread.
        self._kept: dict[tuple[int, int], deque[tuple[Any, Any]]] = {}

    def taken(self, memory: Memory) -> None:
        """Count memory that is in use from now on."""
        device, size = memory.stream.device, memory.block.size
        with self._lock:
            use = self._allocated[device] = self._allocated[device] + size
            self._peak[device] = max(self._peak[device], use)
        if listener := probe.current:
            listener.memory_allocated(memory.id, str(memory.stream), size)

    def freed(self, memory: Memory) -> None:
        """Count memory that is in use no longer, and keep it as long as streams do.

        CuPy gives a freed block to work of the stream that it was made for; work of
        others may not be done with it.
        """
        for stream in memory.used_by:
            self.keep(memory.block, stream)
        with self._lock:
            self._allocated[memory.stream.device] -= memory.block.size
        if listener := probe.current:
            listener.memory_freed(memory.id, str(memory.stream))

    def keep(self, what: Any, stream: StreamLike) -> None:
        """Let something live until the work that a stream has so far is done."""
        self.drop_kept()
        of_stream = stream.device.number, stream.stream_id
        kept = self._kept.setdefault(of_stream, deque())
        kept.append((self._record(stream), what))

    def drop_kept(self) -> None:
        """Release memory that no stream uses any more; slow streams delay no others."""
        for kept in list(self._kept.values()):
            with contextlib.suppress(IndexError):  # another thread took the last one
                while kept:
                    event, what = kept.popleft()
                    if not event.done:
                        kept.appendleft((event, what))
                        break

    def wait_for_kept(self, device: Device) -> bool:
        """Wait until all that is kept for streams of a device can go, and let it go.

        Returns:
            True if there was anything.
        """
        has_dropped = False
        for (number, _), kept in list(self._kept.items()):
            with contextlib.suppress(IndexError):  # as above
                while number == device.number and kept:
                    event, what = kept.popleft()
                    try:
                        event.synchronize()
                    except BaseException:  # an interrupt: the stream is still at work
                        kept.appendleft((event, what))
                        raise
                    has_dropped = True
        return has_dropped

    def use(self, device: Device) -> tuple[int, int]:
        """Bytes in use, and the most that were since the last reset."""
        with self._lock:
            return self._allocated[device], self._peak[device]

    def reset_peak(self, device: Device) -> None:
        """Begin a new peak."""
        with self._lock:
            self._peak[device] = self._allocated[device]
