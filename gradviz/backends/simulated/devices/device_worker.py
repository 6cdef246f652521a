"""The executor of production: a thread for each stream, made when first needed."""

import contextlib
import queue
import sys
import threading
from collections.abc import Callable
from time import sleep
from typing import Final

import numpy as np

from gradviz.backends.simulated.devices.latency import Latency
from gradviz.backends.simulated.devices.work import HERE, StreamQueue, Work

#: Time that a thread sleeps before it looks whether it was forgotten: the main thread
#: hears of Ctrl-C then, a worker of the loss of its device.
_NAP_SECONDS: Final = 0.05


class StreamThreads:
    """Carries out each stream's work in order, on a daemon thread of its own.

    NumPy's kernels release the GIL, so two streams overlap on two cores.

    Args:
        latency: Asked before each kernel how long it takes.
    """

    def __init__(self, latency: Callable[[], Latency | None]) -> None:
        self._latency = latency

    def open(self, stream: StreamQueue) -> "StreamWorker":
        """Return a worker; its thread starts with the first work."""
        return StreamWorker(stream, self._latency)

    def wait(self, work: Work) -> None:
        """Sleep until it is done.

        Raises:
            RuntimeError: On a thread of a stream; see `HERE`.
        """
        HERE.check()
        _sleep_until(work, lambda: False)

    def poll(self, work: Work) -> bool:
        """Return whether the work is done."""
        return work.is_done


class StreamWorker:
    """The thread of one stream and its mailbox."""

    def __init__(
        self, stream: StreamQueue, latency: Callable[[], Latency | None]
    ) -> None:
        self._stream = stream
        self._latency = latency
        #: None ends the thread. `SimpleQueue.put` is one C call that either happened
        #: or did not, whatever interrupts it.
        self._mailbox: queue.SimpleQueue[Work | None] = queue.SimpleQueue()
        #: Post of the worker. The thread that takes the item is the worker: one thread,
        #: even if Ctrl-C made `submit` start two, and no dead one, even if it killed
        #: the first.
        self._post: queue.SimpleQueue[None] = queue.SimpleQueue()
        self._post.put(None)
        #: True once the post is taken. Written by the worker; others may see it late.
        self._is_manned = False
        #: All that were started. Guarded by `LOCK`.
        self._threads: list[threading.Thread] = []

    def submit(self, work: Work | None) -> None:
        """Put work into the mailbox."""
        self._mailbox.put(work)
        if not self._is_manned:
            self._start()

    def close(self) -> None:
        """End the thread after the mailbox's contents, and wait for that."""
        if self._mailbox.empty() and not self._threads:
            return
        self.submit(None)
        for thread in self._threads:
            if thread.ident is not None:
                thread.join()

    def _start(self) -> None:
        if sys.is_finalizing():  # before 3.12, `start` would wait forever
            raise RuntimeError("can't create new thread at interpreter shutdown")
        name = f"gv_{self._stream.text}"
        thread = threading.Thread(target=self._main, name=name, daemon=True)
        self._threads.append(thread)
        thread.start()

    def _main(self) -> None:
        try:
            self._post.get_nowait()
        except queue.Empty:  # another thread is the worker
            return
        self._is_manned = True
        HERE.stream = self._stream.text
        # An accelerator says nothing of a division by zero: the result does.
        np.seterr(all="ignore")
        while work := self._mailbox.get():
            self._carry_out(work)
            del work  # an idle thread keeps nobody's memory

    def _carry_out(self, work: Work) -> None:
        device = self._stream.device
        if work.before is not None:
            _sleep_until(work.before, lambda: bool(device.lost))
        work.carry_out(self._latency(), sleep)


def _sleep_until(work: Work, is_over: Callable[[], bool]) -> None:
    if work.is_done:
        return
    mailbox: queue.SimpleQueue[None] = queue.SimpleQueue()
    work.waiters.append(mailbox.put)
    while not work.is_done and not is_over():
        if sys.is_finalizing():
            raise RuntimeError("the interpreter shuts down: devices do no more work")
        with contextlib.suppress(queue.Empty):
            mailbox.get(timeout=_NAP_SECONDS)
