"""Reports of work on CUDA devices: nothing is waited for in order to make them.

A kernel is reported when it was launched. When it ran is known from events around it,
which are read once a program has waited for a stream anyway.
"""

import time
from collections import defaultdict, deque
from collections.abc import Callable, Iterable
from typing import Any, Final, NamedTuple

from gradviz.backends.arrays.pinned_array import PinnedArray
from gradviz.backends.cuda.cuda_array import CudaArray
from gradviz.backends.device import Device
from gradviz.backends.reports import kernel_ids
from gradviz.trace import probe
from gradviz.trace.probe import Probe


class Begun(NamedTuple):
    """A kernel about to be launched.

    Attributes:
        listener: Listener that it is reported to.
        event: Before it in its stream; keeps time.
    """

    listener: Probe
    event: Any


class _Timed(NamedTuple):
    """A kernel whose time has not been read yet."""

    listener: Probe
    kernel: int
    began: Any
    ended: Any


class KernelReports:
    """Reports of kernels, and when they ran.

    Args:
        elapsed_ms: Tells the time between two events that have happened.
    """

    def __init__(self, elapsed_ms: Callable[[Any, Any], float]) -> None:
        self._elapsed_ms: Final = elapsed_ms
        #: By device. Appended to by all threads; taken whole by one that reads.
        self._timed: defaultdict[Device, deque[_Timed]] = defaultdict(deque)

    def launched(
        self,
        begun: Begun,
        stream: str,
        device: Device,
        name: str,
        reads: Iterable[CudaArray | PinnedArray],
        writes: Iterable[CudaArray | PinnedArray],
        ended: Any,
    ) -> None:
        """Report a kernel that was launched just now, by the same thread.

        Args:
            begun: Listener and event from before its launch.
            stream: Stream that it was launched on, as text.
            device: Device of the stream.
            name: Of the function.
            reads: Arrays that it reads,
            writes: and writes.
            ended: An event after it, that keeps time.
        """
        listener, kernel = begun.listener, next(kernel_ids)
        listener.kernel_launched(kernel, stream, name)
        for arrays, is_written in ((reads, False), (writes, True)):
            for array in arrays:
                if place := _place(array):
                    listener.array_accessed(kernel, *place, is_written)
        self._timed[device].append(_Timed(listener, kernel, begun.event, ended))

    def read(self, device: Device, record: Callable[[], Any]) -> None:
        """Report when kernels ran, those that are done.

        Args:
            device: Device of the kernels.
            record: Makes an event that keeps time, on a stream that was waited for.
        """
        timed = self._timed.pop(device, None)
        if not timed:
            return
        now = record()
        now.synchronize()
        now_ns = time.perf_counter_ns()
        for one in timed:
            if not one.ended.done:
                self._timed[device].append(one)
            elif one.listener is probe.current:
                began, ended = (
                    now_ns - int(self._elapsed_ms(event, now) * 1e6)
                    for event in (one.began, one.ended)
                )
                one.listener.kernel_ran(one.kernel, began, ended)


def _place(array: CudaArray | PinnedArray) -> tuple[int, str] | None:
    """The memory and which bytes of it."""
    if isinstance(array, PinnedArray):
        return array.place()
    return array.memory.id, array.layout()
