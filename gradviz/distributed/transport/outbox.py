"""Frames queued for one connection, and the thread that sends them."""

import contextlib
import socket
from collections import deque
from collections.abc import Callable, Sequence
from typing import Final, TypeAlias

from gradviz.distributed.transport.frames import Encoded, pieces
from gradviz.engine.graph.sync import Mailbox, Sync, may_be_interrupted

#: Maximum size of a frame sent in one piece, by the thread that has it; and of a piece
#: of a larger one.
_SMALL_BYTES: Final = 2**16
_CHUNK_BYTES: Final = 2**20

#: Has the system take what it has room for, and not wait; not every system knows it.
_AT_ONCE: Final[int | None] = getattr(socket, "MSG_DONTWAIT", None)

#: A frame, and whether anybody still wants it.
_Waiting: TypeAlias = tuple[Encoded, Callable[[], bool]]


class Outbox:
    """The queue of frames for one peer, perhaps not connected yet.

    Note [Who sends]
    ~~~~~~~~~~~~~~~~
    Waking a sending thread costs more than sending something small. So a thread that
    queues a frame sends it itself, if no other thread is sending, and as far as the
    system takes it at once: meanwhile it *owns* the queue, and sends what others put
    there too. It leaves the rest, large frames, and the end of the queue to the writing
    thread, which owns the queue then. Only that thread may wait for the other end.

    A thread that an interrupt can strike between any two steps never owns the queue,
    which would then have no owner forever: it wakes the writing thread.

    Args:
        sync: The seam.
        on_bytes: Called whenever much of something large went.
    """

    def __init__(self, sync: Sync, on_bytes: Callable[[], object]) -> None:
        self._on_bytes = on_bytes
        #: Anybody adds to it, which is one step; only its owner takes from it. None is
        #: the end.
        self._line: deque[_Waiting | None] = deque()
        #: Number of frames that have gone; its owner counts.
        self._number = 0
        #: For the writing thread: None to see whether there is something in the line;
        #: bytes to send and to own the line from now on.
        self._handed_over: Mailbox[bytes | None] = sync.mailbox()
        #: Guards what follows.
        self._mutex = sync.lock()
        self._connection: socket.socket | None = None
        self._is_owned = False

    def put(self, encoded: Encoded, is_wanted: Callable[[], bool]) -> None:
        """Queue a frame, to be sent unless it is unwanted when its turn comes."""
        self._line.append((encoded, is_wanted))
        if _AT_ONCE is None or may_be_interrupted():
            self._handed_over.put(None)
        elif self._own():
            self._send_at_once(_AT_ONCE)

    def end(self) -> None:
        """Send nothing more, after the queued frames."""
        self._line.append(None)
        self._handed_over.put(None)

    def write(self, connection: socket.socket) -> None:
        """Send queued frames until the end; the writing thread does only that.

        Afterwards nobody touches the connection any more.

        Raises:
            OSError: The connection ended before.
        """
        with self._mutex:
            self._connection = connection
        rest: bytes | None = None
        while True:
            if rest is not None or self._own():
                connection.sendall(rest or b"")
                if not self._send_all():
                    connection.shutdown(socket.SHUT_WR)
                    return
            rest = self._handed_over.get()

    def _own(self) -> bool:
        """Return whether the caller owns the line now.

        A refused caller need not come again: the owner takes all that is there.
        """
        with self._mutex:
            is_refused = self._connection is None or self._is_owned
            self._is_owned |= not is_refused
        return not is_refused

    def _has_next(self) -> bool:
        """Return whether something is in line; if not, the line has no owner."""
        with self._mutex:
            self._is_owned = bool(self._line)
            return self._is_owned

    def _send_at_once(self, flags: int) -> None:
        """Send small frames without waiting, on the calling thread."""
        assert self._connection is not None
        while self._has_next():
            item = self._line[0]
            if item is None or _size(item) > _SMALL_BYTES:
                self._handed_over.put(b"")
                return
            rest = b"".join(self._next())
            del item
            # Without room, or a connection, the writing thread finds out.
            with contextlib.suppress(OSError):
                rest = rest[self._connection.send(rest, flags) :]
            if rest:
                self._handed_over.put(rest)
                return

    def _send_all(self) -> bool:
        """Send queued frames; return whether the queue goes on."""
        assert self._connection is not None
        while self._has_next():
            item = self._line[0]
            if item is None:
                return False
            is_small = _size(item) <= _SMALL_BYTES
            del item  # asleep, the thread keeps nothing alive
            buffers = self._next()
            if is_small:
                self._connection.sendall(b"".join(buffers))
                continue
            for one in buffers:
                self._send_in_chunks(self._connection, one)
        return True

    def _send_in_chunks(self, connection: socket.socket, view: memoryview) -> None:
        for begin in range(0, len(view), _CHUNK_BYTES):
            connection.sendall(view[begin : begin + _CHUNK_BYTES])
            if begin:  # more than the system keeps for one who does not read
                self._on_bytes()

    def _next(self) -> Sequence[memoryview]:
        """Return the bytes of the next frame in the queue; none if it is unwanted."""
        item = self._line.popleft()
        assert item is not None
        encoded, is_wanted = item
        if not is_wanted():
            return ()
        self._number += 1
        return pieces(self._number - 1, encoded)


def _size(item: _Waiting) -> int:
    (header, arrays), _ = item
    return len(header) + sum(int(one.nbytes) for one in arrays)
