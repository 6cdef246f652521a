"""Workers that are processes of one machine: sockets, and no pickle on them.

Each listens at an address of its own and connects to all of lower rank: one connection
a pair, for the whole life of both.
"""

import contextlib
from collections.abc import Callable
from functools import partial
from multiprocessing.connection import Client, Connection, Listener
from pathlib import Path
from typing import Final

from gradviz.distributed.messaging.thread_names import thread_name
from gradviz.distributed.transport.framed import FramedTransport
from gradviz.distributed.transport.frames import (
    Encoded,
    Hello,
)
from gradviz.distributed.transport.handshake import (
    StrangerError,
    admit,
    dial,
    listen,
)
from gradviz.distributed.transport.link import PeerLink
from gradviz.distributed.transport.rendezvous import Rendezvous
from gradviz.engine.graph.sync import THREADS, Empty, Mailbox, Sync

#: Seconds between two attempts to find a worker that is yet to come.
_PAUSE_SECONDS: Final = 0.02

#: Seconds between two looks for workers that will never come.
_LOOK_SECONDS: Final = 1.0

#: Processes share the processors with others: they may be silent for three times that.
_HEARTBEAT_SECONDS: Final = 2.0

#: Maximum number of connections asked for the key at once; more are hung up on.
_MAX_STRANGERS: Final = 64

#: States of a process that is stopped, by a signal or a debugger, or has ended.
#: Source: proc_pid_stat(5).
_NOT_RUNNING: Final = frozenset("TtZXx")


class LocalTransport(FramedTransport):
    """One worker's way to the others of its machine.

    Args:
        rank: This worker.
        rendezvous: Rendezvous at which all of them are found.
        sync: The seam.

    Raises:
        RpcError: Its address is in use.
    """

    def __init__(
        self,
        rank: int,
        rendezvous: Rendezvous,
        sync: Sync = THREADS,
    ) -> None:
        super().__init__(rank, rendezvous.world_size, sync, _HEARTBEAT_SECONDS)
        self._rendezvous = rendezvous
        self._hello = Hello(rank, self.world_size, sync.process_id())
        #: By rank. Each is set once, by the thread that meets the worker.
        self._pids: dict[int, int] = {}
        self._is_closed = sync.flag()
        #: One item for each thread that has ended.
        self._ended: Mailbox[None] = sync.mailbox()
        #: Wakes those that wait before the next attempt.
        self._wake: Mailbox[None] = sync.mailbox()
        #: Guarded by `_mutex`: how many threads there are, and how many of them do not
        #: yet know whom they speak with.
        self._num_threads = 0
        self._num_strangers = 0
        self._links = {peer: self._link(peer) for peer in self._others()}
        self._listener: Listener | None = None
        #: Those of higher rank who are yet to come.
        self._awaited = {*range(rank + 1, self.world_size)}
        if self._awaited:
            self._listener = listen(rendezvous.address(rank), rank, self.world_size)
            self._spawn(partial(self._accept, self._listener), "door")
        for peer in range(rank):
            self._spawn(partial(self._find, peer), f"link from {peer}")
        if self.world_size > 1:
            self._look_around()

    # --- what every transport does ------------------------------------------------

    def send(
        self, peer: int, encoded: Encoded, is_wanted: Callable[[], bool] = lambda: True
    ) -> None:
        """Put a frame in the line of its connection."""
        self._links[peer].put(encoded, is_wanted)

    def seems_to_run(self, peer: int) -> bool:
        """Ask the system, which is the peer's own."""
        return seems_to_run(self._pids.get(peer, 0))

    def lose(self, peer: int, reason: str) -> None:
        """Take note of a worker that is gone, and hang up."""
        self._links[peer].cut()
        if not self._is_closed.value:
            super().lose(peer, reason)

    def vanish(self, reason: str, *, timeout: float = 0.0) -> None:
        """Say goodbye, give the others time to hear it, and hang up."""
        with self._mutex:
            self._handler = None
            is_closed, self._is_closed.value = self._is_closed.value, True
        if is_closed:
            return
        self._close_door()
        for link in self._links.values():
            self._wake.put(None)
            if timeout:
                link.say_goodbye(reason)
            else:
                link.cut()
        self._join(timeout)
        for link in self._links.values():
            link.cut()
        self.give_up("this worker has been shut down")
        self._join(timeout + 1)
        if self._listener is not None:
            self._listener.close()

    # --- finding each other -------------------------------------------------------

    def _others(self) -> list[int]:
        return [peer for peer in range(self.world_size) if peer != self.rank]

    def _link(self, peer: int) -> PeerLink:
        return PeerLink(
            self.sync,
            thread_name(self.rank, f"link to {peer}"),
            partial(self.receive, peer),
            partial(self.lose, peer),
            partial(self.heard, peer),
        )

    def _find(self, peer: int) -> None:
        """Connect to a worker of lower rank, as soon as it is there."""
        address = self._rendezvous.address(peer)
        while not self._is_closed.value:
            try:
                connection, hello = dial(address, self._rendezvous.key, self._hello)
            except StrangerError as error:
                self.lose(peer, str(error))
                return
            except (OSError, EOFError):
                if (reason := self._rendezvous.exit_reason(peer)) is not None:
                    self.lose(peer, reason)
                    return
                with contextlib.suppress(Empty):
                    self._wake.get(timeout=_PAUSE_SECONDS)
                continue
            if hello.rank != peer:
                connection.close()
                self.lose(peer, f"at its address is worker {hello.rank}")
                return
            self._pids[peer] = hello.pid
            self._links[peer].serve(connection)
            return

    def _accept(self, listener: Listener) -> None:
        """Let workers of higher rank in, until all are there."""
        with contextlib.suppress(OSError):
            while self._awaited and not self._is_closed.value:
                connection = listener.accept()
                with self._mutex:
                    if self._is_closed.value or not self._awaited:
                        connection.close()
                        break
                    is_crowded = self._num_strangers >= _MAX_STRANGERS
                    self._num_strangers += not is_crowded
                if is_crowded or not self._spawn_admission(connection):
                    connection.close()
        listener.close()

    def _spawn_admission(self, connection: Connection) -> bool:
        """Start a thread for a new connection; False if the system refuses one."""
        try:
            self._spawn(partial(self._admit, connection), "link")
        except RuntimeError:
            with self._mutex:
                self._num_strangers -= 1
            return False
        return True

    def _admit(self, connection: Connection) -> None:
        """Learn a peer's identity, and serve it until it leaves."""
        try:
            admitted, hello = admit(connection, self._rendezvous.key, self._hello)
        except (OSError, EOFError, StrangerError):
            return  # whoever it is, it knows better why
        finally:
            with self._mutex:
                self._num_strangers -= 1
        with self._mutex:
            is_awaited = hello.rank in self._awaited
            self._awaited.discard(hello.rank)
            is_last = is_awaited and not self._awaited
        if not is_awaited:
            admitted.close()
            return
        if is_last:
            self._close_door()
        self._pids[hello.rank] = hello.pid
        self._links[hello.rank].serve(admitted)

    def _look_around(self) -> None:
        """Give up peers that will never connect."""
        with self._mutex:
            awaited = sorted(self._awaited)
        for peer in awaited:
            if (reason := self._rendezvous.exit_reason(peer)) is not None:
                with self._mutex:
                    self._awaited.discard(peer)
                    is_last = not self._awaited
                if is_last:
                    self._close_door()
                self.lose(peer, reason)
        self.timers.after(_LOOK_SECONDS, self._look_around)

    def _close_door(self) -> None:
        """Wake the accepting thread, which stops when no peer is expected."""
        if self._listener is not None:
            with contextlib.suppress(OSError, EOFError):
                Client(self._rendezvous.address(self.rank)).close()

    # --- threads ------------------------------------------------------------------

    def _spawn(self, target: Callable[[], None], name: str) -> None:
        def run() -> None:
            try:
                target()
            finally:
                self._ended.put(None)

        with self._mutex:
            self._num_threads += 1
        try:
            self.sync.spawn(run, thread_name(self.rank, name))
        except BaseException:
            with self._mutex:
                self._num_threads -= 1
            raise

    def _join(self, timeout: float) -> None:
        """Wait until the threads have ended, but no longer than that."""
        deadline_ns = self.sync.now_ns() + int(timeout * 1e9)
        while True:
            with self._mutex:
                num_threads = self._num_threads
            if not num_threads:
                return
            left = (deadline_ns - self.sync.now_ns()) / 1e9
            if left <= 0:
                return
            try:
                self._ended.get(timeout=left)
            except Empty:
                return
            with self._mutex:
                self._num_threads -= 1


def seems_to_run(pid: int) -> bool:
    """Return True if a process of this machine is there and not stopped.

    False where that cannot be known: only Linux tells it without asking for long.
    """
    try:
        # Its name stands before it in parentheses, and may have some of its own.
        text = Path(f"/proc/{pid}/stat").read_text("ascii", "replace")
    except (OSError, ValueError):
        return False
    fields = text.rpartition(")")[2].split()
    return bool(fields) and fields[0] not in _NOT_RUNNING
