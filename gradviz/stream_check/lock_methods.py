"""Methods of locks and queues that report how threads hand over by them.

A program calls these in place of methods written in C, in its innermost loops, so they
do nothing else in the usual case, in which a hand-over tells nobody anything: see Note
[Hand-overs that tell nothing] in `thread_knowledge`. The module is compiled where
the core is. The classes with these methods are those of `heard_locks`.
"""

import queue
import threading
from functools import partial
from types import TracebackType
from typing import Any, Final

from gradviz.trace.reporting.thread_knowledge import MeetingPlace

#: Methods of queues in C, looked up once.
_put: Final = queue.SimpleQueue.put
_get: Final = queue.SimpleQueue.get


class LockMethods(MeetingPlace):
    """A lock, in C, with reports of its previous holder.

    The methods of the lock are kept, for to look them up takes as long as to call them.
    An interrupt leaves it as it leaves the lock: see Note [Interrupts at a lock].

    Attributes:
        _acquiring: Takes the lock at each step, and never ends.
    """

    __slots__ = ("__weakref__", "_acquire", "_acquiring", "_release")

    def __init__(self, lock: Any) -> None:  # noqa: ANN401 - either kind of lock
        MeetingPlace.__init__(self)
        self._acquire = lock.acquire
        self._acquiring = iter(lock.acquire, False)  # without arguments it gives True
        self._release = lock.release

    def acquire(self, blocking: bool = True, timeout: float = -1) -> bool:
        """See `threading.Lock`."""
        acquiring = self._acquiring
        if timeout != -1 or blocking is not True:
            acquiring = iter(partial(self._acquire, blocking, timeout), False)
        for _ in acquiring:
            try:
                if self.taken_version.ident != threading.get_ident():
                    self.take()
            except BaseException:
                self._release()
                raise
            return True
        return False

    def release(self) -> None:
        """See `threading.Lock`."""
        try:
            if self.left_version.ident != threading.get_ident():
                self.leave()
        except BaseException:
            self._release()
            raise
        release = self._release  # what is kept in a slot is called faster so
        release()

    def __enter__(self) -> bool:
        for _ in self._acquiring:
            try:
                if self.taken_version.ident != threading.get_ident():
                    self.take()
            except BaseException:
                self._release()
                raise
            break
        return True

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        traceback: TracebackType | None,
    ) -> None:
        try:
            if self.left_version.ident != threading.get_ident():
                self.leave()
        except BaseException:
            self._release()
            raise
        release = self._release  # what is kept in a slot is called faster so
        release()

    def __repr__(self) -> str:
        return repr(self._acquire.__self__)


def put(
    self: Any,  # noqa: ANN401 - a queue with a place
    item: object,
    block: bool = True,
    timeout: float | None = None,
) -> None:
    """See `queue.SimpleQueue`, which ignores `block` and `timeout`, too."""
    del block, timeout
    place = self._place
    if place.left_version.ident != threading.get_ident():
        place.leave()
    _put(self, item)


def get(
    self: Any,  # noqa: ANN401 - a queue with a place
    block: bool = True,
    timeout: float | None = None,
) -> object:
    """See `queue.SimpleQueue`."""
    ident = threading.get_ident()  # now: a call might be interrupted, and lose the item
    if block is True and timeout is None:
        item = _get(self)  # without arguments it takes half as long
    else:
        item = _get(self, block, timeout)
    place = self._place
    if place.taken_version.ident != ident:
        place.take()
    return item
