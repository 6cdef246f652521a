"""One connection between two workers: frames wait to go, others come."""

import contextlib
import io
import socket
from collections.abc import Callable, Sequence
from typing import Final

from gradviz.backends.base import Array
from gradviz.distributed.transport.frames import (
    AnyFrame,
    Bye,
    Encoded,
    FrameError,
    encode,
    pieces,
    read_frame,
)
from gradviz.engine.sync import Mailbox, Sync

#: How much is read at once, and at most copied to go in one piece.
_CHUNK_BYTES: Final = 2**20
_SMALL_BYTES: Final = 2**16


class PeerLink:
    """The way to one peer, which may be yet to come; any thread sends.

    Note [Two threads a connection]
    ~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~
    One reads and one writes. A single one that did both could stand still with that of
    the other end: each waits until the other takes what it sends. Who wants to send
    waits for neither of them.

    Args:
        sync: The seam.
        name: Of the threads.
        on_frame: Called with each frame on the reading thread; must not wait.
        on_end: Called once, with the reason, when nothing comes any more.
        on_bytes: Called whenever something has come, or much of something large went.
    """

    def __init__(
        self,
        sync: Sync,
        name: str,
        on_frame: Callable[[AnyFrame, Sequence[Array]], object],
        on_end: Callable[[str], object],
        on_bytes: Callable[[], object],
    ) -> None:
        self._sync = sync
        self._name = name
        self._on_frame = on_frame
        self._on_end = on_end
        self._on_bytes = on_bytes
        #: What is to go, and whether it is still wanted; None is the end.
        self._outbox: Mailbox[tuple[Encoded, Callable[[], bool]] | None] = (
            sync.mailbox()
        )
        #: One item when the writing thread has ended.
        self._ended: Mailbox[None] = sync.mailbox()
        #: Guards what follows.
        self._mutex = sync.lock()
        self._socket: socket.socket | None = None
        self._is_closed = False

    def put(
        self, encoded: Encoded, is_wanted: Callable[[], bool] = lambda: True
    ) -> None:
        """Have a frame sent, unless nobody wants it any more when its turn comes."""
        self._outbox.put((encoded, is_wanted))

    def say_goodbye(self, reason: str) -> None:
        """Send nothing more, after what is in line already, than that."""
        self.put(encode(Bye(reason)))
        self._outbox.put(None)

    def cut(self) -> None:
        """End it at once; threads that wait for the other end wake up."""
        with self._mutex:
            self._is_closed = True
            connection = self._socket
            if connection is not None:
                with contextlib.suppress(OSError):
                    connection.shutdown(socket.SHUT_RDWR)
        self._outbox.put(None)

    def serve(self, connection: socket.socket) -> None:
        """Send and receive over a connection until it ends; the calling thread reads.

        Raises:
            FrameError: There was one already.
        """
        with self._mutex:
            if self._socket is not None:
                raise FrameError("it has a connection already")
            self._socket = connection
            is_closed = self._is_closed
        with connection:
            if is_closed:
                return
            try:
                self._sync.spawn(lambda: self._write(connection), f"{self._name}_out")
            except RuntimeError as error:
                self._on_end(f"there is no thread for its connection: {error}")
                return
            self._on_end(self._read(connection))
            self.cut()
            self._ended.get()  # the writing thread has left the socket

    def _read(self, connection: socket.socket) -> str:
        """Take what comes; why nothing comes any more."""
        number = 0
        with io.BufferedReader(connection.makefile("rb", 0), _SMALL_BYTES) as stream:
            try:
                while True:
                    frame, arrays = read_frame(self._filler(stream.readinto1), number)
                    if isinstance(frame, Bye):
                        return frame.reason
                    self._on_frame(frame, arrays)
                    del frame, arrays  # nothing that came stays until the next comes
                    number += 1
            except FrameError as error:
                return f"what it sent is not understood: {error}"
            except (EOFError, OSError):
                return "its connection has ended"
            except BaseException as error:  # noqa: BLE001 - whoever waits is told
                return f"what it sent made {type(error).__name__}: {error}"

    def _filler(
        self, read_into: Callable[[memoryview], int]
    ) -> Callable[[memoryview], None]:
        """Fills memory to its end with what comes."""

        def fill(view: memoryview) -> None:
            while view:
                num_bytes = read_into(view[:_CHUNK_BYTES])
                if not num_bytes:
                    raise EOFError
                self._on_bytes()
                view = view[num_bytes:]

        return fill

    def _write(self, connection: socket.socket) -> None:
        """Send what is in line, until its end or that of the connection."""
        number = 0
        try:
            while (item := self._outbox.get()) is not None:
                encoded, is_wanted = item
                if is_wanted():
                    self._send(connection, pieces(number, encoded))
                    number += 1
                del item, encoded, is_wanted  # asleep, it keeps nothing alive
            connection.shutdown(socket.SHUT_WR)
        except OSError:
            pass  # the reading thread finds what has come before, and then the end
        finally:
            self._ended.put(None)

    def _send(self, connection: socket.socket, buffers: Sequence[memoryview]) -> None:
        if len(buffers) > 1 and sum(len(one) for one in buffers) <= _SMALL_BYTES:
            connection.sendall(b"".join(buffers))
            return
        for one in buffers:
            for begin in range(0, len(one), _CHUNK_BYTES):
                connection.sendall(one[begin : begin + _CHUNK_BYTES])
                if begin:  # more than the system keeps for one who does not read
                    self._on_bytes()
