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
    read_frame,
)
from gradviz.distributed.transport.outbox import Outbox
from gradviz.engine.graph.sync import Mailbox, Sync

#: Number of bytes read at once of something large, and read ahead.
_CHUNK_BYTES: Final = 2**20
_SMALL_BYTES: Final = 2**16


class PeerLink:
    """The way to one peer, which may be yet to come; any thread sends.

    Note [Two threads a connection]
    ~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~
    One reads and one writes. A single thread for both could deadlock with the one at
    the other end: each waits until the other reads what it sends. A sender waits for
    neither of them; see Note [Who sends].

    Args:
        sync: The seam.
        name: Of the thread that writes.
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
        self._outbox = Outbox(sync, on_bytes)
        #: One item when the writing thread has ended.
        self._ended: Mailbox[None] = sync.mailbox()
        #: Guards what follows.
        self._mutex = sync.lock()
        self._socket: socket.socket | None = None
        self._is_closed = False

    def put(
        self, encoded: Encoded, is_wanted: Callable[[], bool] = lambda: True
    ) -> None:
        """Queue a frame, to be sent unless it is unwanted when its turn comes."""
        self._outbox.put(encoded, is_wanted)

    def say_goodbye(self, reason: str) -> None:
        """Send a goodbye after the queued frames, and nothing more."""
        self.put(encode(Bye(reason)))
        self._outbox.end()

    def cut(self) -> None:
        """End it at once; threads that wait for the other end wake up."""
        with self._mutex:
            self._is_closed = True
            connection = self._socket
            if connection is not None:
                with contextlib.suppress(OSError):
                    connection.shutdown(socket.SHUT_RDWR)
        self._outbox.end()

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
                self._sync.spawn(lambda: self._write(connection), self._name)
            except RuntimeError as error:
                self._on_end(f"there is no thread for its connection: {error}")
                return
            self._on_end(self._read(connection))
            self.cut()
            self._ended.get()  # the writing thread has left the socket

    def _read(self, connection: socket.socket) -> str:
        """Receive frames; return why none comes any more."""
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
        """Return a function that fills memory to its end with received bytes."""

        def fill(view: memoryview) -> None:
            while view:
                num_bytes = read_into(view[:_CHUNK_BYTES])
                if not num_bytes:
                    raise EOFError
                self._on_bytes()
                view = view[num_bytes:]

        return fill

    def _write(self, connection: socket.socket) -> None:
        """Send queued frames, until the end of the queue or of the connection."""
        # The reading thread finds what has come before the end, and then the end.
        try:
            with contextlib.suppress(OSError):
                self._outbox.write(connection)
        finally:
            self._ended.put(None)
