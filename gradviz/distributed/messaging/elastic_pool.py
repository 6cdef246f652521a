"""Threads for jobs that may wait: as many as there are jobs at once."""

import contextvars
from collections.abc import Callable
from typing import Final

from gradviz.engine.graph.sync import Mailbox, Sync

#: Maximum number of threads.
MAX_THREADS: Final = 512


class ElasticPool:
    """Runs jobs at once, on a thread that is free or a new one.

    A function that is called from afar may call afar itself and wait. With a fixed
    number of threads a chain of calls that is longer than that would stand still.

    Args:
        sync: The seam.
        name: Of the threads.
    """

    def __init__(self, sync: Sync, name: str) -> None:
        self._sync = sync
        self._name = name
        self._jobs: Mailbox[Callable[[], object] | None] = sync.mailbox()
        #: Guards what follows.
        self._mutex = sync.lock()
        self._num_threads = 0
        self._num_free = 0
        self._is_closed = False

    def submit(self, job: Callable[[], object]) -> None:
        """Have `job` run on another thread; it must not raise.

        Raises:
            RuntimeError: The pool is closed, or the system refuses a thread. The job
                does not run then, not even later.
        """
        with self._mutex:
            if self._is_closed:
                raise RuntimeError("the worker has been shut down")
            must_spawn = not self._num_free and self._num_threads < MAX_THREADS
            if must_spawn:
                self._num_threads += 1
            elif self._num_free:
                self._num_free -= 1
            number = self._num_threads
        if must_spawn:
            self._spawn([job], number)
        else:
            self._jobs.put(job)

    def _spawn(self, first: list[Callable[[], object]], number: int) -> None:
        """Start a thread with its first job, which no other thread can take.

        Args:
            first: The job. Guarded by `_mutex`: either the new thread takes it, or this
                one takes it back when it gets no thread.
            number: Of the thread.
        """
        try:
            self._sync.spawn(lambda: self._work(first), f"{self._name} {number}")
        except BaseException:
            with self._mutex:
                if first:  # an interrupt can strike after the thread has begun
                    first.clear()
                    self._num_threads -= 1
            raise

    def close(self) -> None:
        """End the threads as soon as they are free; does not wait for them."""
        with self._mutex:
            self._is_closed = True
            num_threads = self._num_threads
        for _ in range(num_threads):
            self._jobs.put(None)

    def _work(self, first: list[Callable[[], object]]) -> None:
        with self._mutex:
            job = first.pop() if first else None
        while job is not None:
            contextvars.Context().run(job)
            del job  # asleep, the thread must not keep alive what it did last
            with self._mutex:
                self._num_free += 1
            job = self._jobs.get()
