"""Futures: results to come from another worker, or from a thread of this one."""

import contextvars
from collections.abc import Callable, Sequence
from typing import Any, Generic, TypeVar

from gradviz.engine.graph.sync import Empty, Mailbox, Sync

T = TypeVar("T")
S = TypeVar("S")


class Future(Generic[T]):
    """A value that is there later, or the error that came instead of it.

    Any thread may ask and any may answer; the first answer counts. Waiting threads and
    callbacks go through the engine's seam, so that a test can put them in any order.

    Args:
        sync: The seam.

    Source: torch.futures.Future.
    """

    def __init__(self, sync: Sync) -> None:
        self._sync = sync
        self._mutex = sync.lock()
        #: Functions to be called; None once there is an answer. Guarded by `_mutex`.
        self._callbacks: list[Callable[[], object]] | None = []
        self._value: Any = None
        self._error: BaseException | None = None

    def done(self) -> bool:
        """Return whether there is an answer."""
        with self._mutex:
            return self._callbacks is None

    @property
    def error(self) -> BaseException | None:
        """The error in place of a value; None before the answer, too."""
        return self._error

    def set_result(self, value: T) -> bool:
        """Answer with a value; returns whether that was the first answer."""
        return self._answer(value, None)

    def set_error(self, error: BaseException) -> bool:
        """Answer with an error; returns whether that was the first answer."""
        return self._answer(None, error)

    def value(self) -> T:
        """The answer, which must be there.

        Raises:
            RuntimeError: It is not.
            BaseException: An error that came instead of a value.
        """
        if not self.done():
            raise RuntimeError("the future has no value yet: wait for it")
        if self._error is not None:
            raise self._error
        value: T = self._value
        return value

    def wait(self, timeout: float | None = None) -> T:
        """The answer, once it is there.

        Args:
            timeout: Number of seconds to wait at most; None is forever.

        Raises:
            TimeoutError: It did not come in time; it may still come later.
            BaseException: An error that came instead of a value.
        """
        if not self.settled(timeout):
            raise TimeoutError(f"no answer within {timeout:g} s")
        return self.value()

    def settled(self, timeout: float | None = None) -> bool:
        """Wait for the answer, whatever it is; returns whether it came in time."""
        box: Mailbox[None] = self._sync.mailbox()

        def wake() -> None:
            box.put(None)

        self.add_done_callback(wake)
        try:
            box.get(timeout=timeout)
        except Empty:
            return False
        finally:
            self._remove_callback(wake)
        return True

    def add_done_callback(self, callback: Callable[[], object]) -> None:
        """Have `callback` called when there is an answer, or now if there is one.

        It runs on whichever thread answers, and must neither raise nor wait.
        """
        with self._mutex:
            if self._callbacks is not None:
                self._callbacks.append(callback)
                return
        callback()

    def _remove_callback(self, callback: Callable[[], object]) -> None:
        """Do not call `callback`, unless the answer is there already."""
        with self._mutex:
            if self._callbacks is not None:
                self._callbacks.remove(callback)

    def then(self, callback: "Callable[[Future[T]], S]") -> "Future[S]":
        """Return the future of the result of `callback`, called with this one.

        The callback runs on whichever thread answers, with the context variables of
        this one: so it is in the same autograd context.
        """
        result: Future[S] = Future(self._sync)
        context = contextvars.copy_context()

        def call() -> None:
            try:
                value = context.run(callback, self)
            except BaseException as error:  # noqa: BLE001 - whoever waits is told
                result.set_error(error)
            else:
                result.set_result(value)

        self.add_done_callback(call)
        return result

    def _answer(self, value: T | None, error: BaseException | None) -> bool:
        with self._mutex:
            callbacks = self._callbacks
            if callbacks is None:
                return False
            self._value, self._error = value, error
            self._callbacks = None
        for callback in callbacks:
            callback()
        return True


def completed(sync: Sync, value: T) -> Future[T]:
    """A future that has its value already."""
    future: Future[T] = Future(sync)
    future.set_result(value)
    return future


def failed(sync: Sync, error: BaseException) -> Future[Any]:
    """A future that has its error already."""
    future: Future[Any] = Future(sync)
    future.set_error(error)
    return future


def when_all(sync: Sync, futures: Sequence[Future[Any]]) -> Future[None]:
    """Done when all of them are; with the error of the first of them that has one."""
    result: Future[None] = Future(sync)
    left = [len(futures)]
    mutex = sync.lock()

    def count() -> None:
        with mutex:
            left[0] -= 1
            is_last = left[0] == 0
        if is_last:
            errors = [one.error for one in futures if one.error is not None]
            if errors:
                result.set_error(errors[0])
            else:
                result.set_result(None)

    for future in futures:
        future.add_done_callback(count)
    if not futures:
        result.set_result(None)
    return result
