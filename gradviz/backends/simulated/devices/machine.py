"""The simulated devices, and the executor of their work."""

from collections import deque
from typing import Final

from gradviz.backends.device import Device
from gradviz.backends.simulated.devices.device_worker import StreamThreads
from gradviz.backends.simulated.devices.latency import Latency
from gradviz.backends.simulated.devices.memory import Allocator
from gradviz.backends.simulated.devices.stepping import Stepped
from gradviz.backends.simulated.devices.work import (
    HERE,
    LOCK,
    WAITED_UNTIL_NS,
    Executor,
    StreamQueue,
    Work,
)
from gradviz.backends.stream import CHOSEN
from gradviz.posix import at_fork

#: Streams of each priority in the pool of a device, as in PyTorch.
_POOL: Final = 32

_FORKED: Final = (
    "Cannot re-initialize sim in forked subprocess. To use sim with multiprocessing, "
    "you must use the 'spawn' start method"
)


class SimulatedDevice:
    """A device from its first use, or its last reset, to its loss.

    Attributes:
        device: Its name.
        lost: Reason why it does nothing any more; empty while it does. Written once.
        failures: Work that raised and that nobody was told of. Workers append, whoever
            waits next takes; atomic.
        memory: Its memory.
    """

    __slots__ = (
        "_first_id",
        "_machine",
        "_num_taken",
        "_queues",
        "device",
        "failures",
        "lost",
        "memory",
    )

    def __init__(self, device: Device, machine: "Machine", generation: int) -> None:
        self.device = device
        self.lost = ""
        self.failures: deque[Work] = deque()
        self._machine = machine
        self._first_id = 2 * _POOL * generation + 1
        # Guarded by `LOCK`; the queues may be read without it, and only grow.
        self._num_taken = [0, 0]  # from the pool of low priority, and of high
        #: By stream id.
        self._queues: dict[int, StreamQueue] = {}
        self.memory = Allocator(str(device), machine.wait)

    def __str__(self) -> str:
        return str(self.device)

    def new_stream(self, priority: int) -> int:
        """The next stream of a pool, in turn."""
        self.check()
        is_high = priority < 0
        with LOCK:
            taken = self._num_taken[is_high]
            self._num_taken[is_high] += 1
            stream_id = self._first_id + is_high * _POOL + taken % _POOL
            self._make(stream_id)
        return stream_id

    def queue(self, stream_id: int) -> StreamQueue:
        """A stream's.

        Raises:
            RuntimeError: The stream is of before the device was reset, or the calling
                thread is one of a stream's.
        """
        if HERE.stream:
            HERE.check()
        queue = self._queues.get(stream_id)
        if queue is not None:
            return queue
        self.check()
        if stream_id != 0:
            raise RuntimeError(
                f"stream {self}/{stream_id} is gone: {self} was reset or removed after "
                f"the stream was made; make another one"
            )
        with LOCK:
            return self._make(0)

    def current_queue(self) -> StreamQueue:
        """Return the queue of the calling context's current stream.

        Raises:
            RuntimeError: As `queue`.
        """
        # As `stream_id_for` has it, without the call: each launch comes here.
        chosen = CHOSEN.get().get(self.device)
        return self.queue(0 if chosen is None else chosen.stream_id)

    def queues(self) -> list[StreamQueue]:
        """Those of all streams so far."""
        with LOCK:
            return list(self._queues.values())

    def check(self) -> None:
        """Raise an error that has not been reported yet.

        Raises:
            RuntimeError: The device is lost, or a kernel has failed.
        """
        if self.lost:
            raise RuntimeError(self.lost)
        if self.failures:
            self._raise_failure()

    def synchronize(self) -> None:
        """Wait for all work; do not raise its errors."""
        HERE.check()
        self.memory.collect()
        for marker in [queue.mark() for queue in self.queues()]:
            self._machine.wait(marker)

    def close(self) -> None:
        """Drop all work and end all threads; after `lost` was set."""
        for queue in self.queues():
            queue.lane.close()

    def _make(self, stream_id: int) -> StreamQueue:
        queue = self._queues.get(stream_id)
        if queue is None:
            queue = StreamQueue(self, stream_id, self._machine.executor)
            self._queues[stream_id] = queue
        return queue

    def _raise_failure(self) -> None:
        try:
            first = self.failures.popleft()
        except IndexError:  # another thread tells of it
            return
        self.failures.clear()  # what failed later may well have failed for that
        where = first.launched_at()
        launched = f", launched at {where}" if where else ""
        raise RuntimeError(
            f"kernel {first.name!r} failed on stream {first.queue.text}{launched}: "
            f"{type(first.error).__name__}: {first.error}. Errors of kernels are "
            f"reported at a later call, so the stack trace may be of another one; what "
            f"it was to write is undefined"
        ) from first.error


class Machine:
    """All simulated devices of the process.

    Attributes:
        executor: Executor that carries out work.
        latency: Time that kernels take; None for their actual time. Replaced as a
            whole.
    """

    def __init__(self) -> None:
        self.latency: Latency | None = None
        self.executor: Executor = StreamThreads(lambda: self.latency)
        # Guarded by `LOCK`, as is `executor`; all may be read without it.
        self._devices: dict[Device, SimulatedDevice] = {}
        self._num_resets: dict[Device, int] = {}
        self._limits: dict[Device, int | None] = {}
        #: True if this process was forked from one that had used a device.
        self._is_forked = False
        at_fork(
            before=LOCK.acquire,
            after_in_parent=LOCK.release,
            after_in_child=self._forget_threads,
        )

    def device(self, device: Device) -> SimulatedDevice:
        """A device, made when first used."""
        found = self._devices.get(device)
        return self._make(device) if found is None else found

    def devices(self) -> list[SimulatedDevice]:
        """Return the devices that have been used."""
        return list(self._devices.values())

    def wait(self, work: Work) -> None:
        """Return when work is done; do not raise its errors."""
        if not work.is_done:
            self.executor.wait(work)
        if self.latency is not None and work.ended_ns > WAITED_UNTIL_NS[0]:
            WAITED_UNTIL_NS[0] = work.ended_ns

    def use_threads(self) -> None:
        """Have a thread for each stream from now on."""
        self.use(StreamThreads(lambda: self.latency))

    def use_steps(self, seed: int) -> None:
        """Have no threads from now on; see `Stepped`."""
        self.use(Stepped(seed, lambda: self.latency))

    def use(self, executor: Executor) -> None:
        """Have another executor, once all that there is to do is done."""
        with LOCK:
            self.executor = executor
            queues = [queue for device in self.devices() for queue in device.queues()]
            for queue in queues:
                queue.lane.close()
            for queue in queues:
                queue.lane = executor.open(queue)

    def set_memory_limit(self, device: Device, num_bytes: int | None) -> None:
        """Have so much memory on a device; None for as much as the host gives."""
        with LOCK:
            self._limits[device] = num_bytes
            self.device(device).memory.set_limit(num_bytes)

    def lose(self, device: Device, reason: str) -> None:
        """Drop all work of a device: it does nothing until it is reset."""
        lost = self.device(device)
        lost.lost = lost.lost or (
            f"{device} is lost: {reason}; gv.sim.reset({str(device)!r}) makes a new one"
        )
        lost.close()

    def reset(self, device: Device) -> None:
        """Drop all work of a device and have a new one of its name.

        Raises:
            RuntimeError: The process is a fork of the one that has the device.
        """
        self._end(
            self.device(device),
            f"an array, stream or event of {device} is of before {device} was reset: "
            f"make another one",
        )

    def keep(self, count: int) -> None:
        """Drop all work of the devices that are not among the first `count`.

        Raises:
            RuntimeError: The process is a fork of the one that has such a device.
        """
        for device in self.devices():
            if device.device.number >= count:
                self._end(
                    device,
                    f"no device {str(device)!r} any more: gv.sim.set_device_count("
                    f"{count}) removed it, with its arrays, streams and events; "
                    f"ask for more devices, and make them anew",
                )

    def _end(self, old: SimulatedDevice, reason: str) -> None:
        """Drop all work of a device; its next user gets a new one.

        Raises:
            RuntimeError: The process is a fork of the one that has the device.
        """
        if self._is_forked:
            raise RuntimeError(_FORKED)
        old.lost = old.lost or reason
        old.close()
        device = old.device
        with LOCK:
            self._num_resets[device] = self._num_resets.get(device, 0) + 1
            self._devices.pop(device, None)

    def _make(self, device: Device) -> SimulatedDevice:
        with LOCK:
            found = self._devices.get(device)
            if found is None:
                found = SimulatedDevice(device, self, self._num_resets.get(device, 0))
                found.memory.set_limit(self._limits.get(device))
                if self._is_forked:
                    found.lost = _FORKED
                self._devices[device] = found
        return found

    def _forget_threads(self) -> None:
        """In a forked child: the threads of the parent's devices were not copied."""
        LOCK.release()
        self._is_forked = bool(self._devices)
        for device in self._devices.values():
            device.lost = _FORKED


#: Of this process.
machine: Final = Machine()
