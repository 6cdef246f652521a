"""Connection of peers: addresses, a key that both ends have, and identities.

`multiprocessing.connection` makes the sockets and asks for the key (HMAC of a random
challenge, either end asks the other). Nothing else of it is used: what it would send as
objects is pickled.
"""

import os
import socket
import struct
from multiprocessing import AuthenticationError
from multiprocessing.connection import (
    Client,
    Connection,
    Listener,
    answer_challenge,
    deliver_challenge,
)
from typing import Final, TypeAlias

from gradviz.distributed.messaging.failures import RpcError
from gradviz.distributed.transport.frames import (
    FrameError,
    Hello,
    encode,
    pieces,
    read_frame,
)

#: A path of a Unix socket, or 127.0.0.1 and a port.
Address: TypeAlias = str | tuple[str, int]

#: Seconds that the other end may take for a step.
PATIENCE_SECONDS: Final = 10


class StrangerError(RpcError):
    """Error of a peer that is no worker of this program."""


def listen(address: Address, rank: int, backlog: int) -> Listener:
    """Be found at an address.

    Raises:
        RpcError: Somebody else is there, or nobody can be.
    """
    try:
        return Listener(address, backlog=backlog)
    except OSError as error:
        where = address if isinstance(address, str) else f"{address[0]}:{address[1]}"
        raise RpcError(
            f"worker {rank} cannot be reached at {where}: {error.strerror or error}; "
            f"is another program of workers there? Choose another place"
        ) from None


def dial(address: Address, key: bytes, hello: Hello) -> tuple[socket.socket, Hello]:
    """Connect to the peer at an address, and learn its identity.

    Raises:
        OSError: Nobody is there.
        EOFError: It has hung up.
        StrangerError: It has another key, or is nothing of ours.
    """
    with Client(address) as connection:
        return _introduced(connection, key, hello, is_dialing=True)


def admit(
    connection: Connection, key: bytes, hello: Hello
) -> tuple[socket.socket, Hello]:
    """Learn the identity of a new peer.

    Raises:
        OSError: It takes too long, or is gone.
        EOFError: It has hung up.
        StrangerError: It has another key, or is nothing of ours.
    """
    with connection:
        return _introduced(connection, key, hello, is_dialing=False)


def _introduced(
    connection: Connection, key: bytes, hello: Hello, *, is_dialing: bool
) -> tuple[socket.socket, Hello]:
    """Exchange keys and identities."""
    ours = socket.socket(fileno=os.dup(connection.fileno()))
    try:
        _limit(ours, PATIENCE_SECONDS)
        try:
            if is_dialing:
                answer_challenge(connection, key)
                deliver_challenge(connection, key)
            else:
                deliver_challenge(connection, key)
                answer_challenge(connection, key)
        except (AuthenticationError, AssertionError, ValueError) as error:
            raise StrangerError(
                f"it has not the key of this program: {error}"
            ) from None
        for piece in pieces(0, encode(hello)):
            ours.sendall(piece)
        try:
            frame, _ = read_frame(lambda view: _fill(ours, view), 0)
        except FrameError as error:
            raise StrangerError(f"it does not say who it is: {error}") from None
        if not isinstance(frame, Hello):
            raise StrangerError("it does not say who it is")
        if frame.world_size != hello.world_size:
            raise StrangerError(
                f"it is one of {frame.world_size} workers, expected {hello.world_size}"
            )
        _limit(ours, 0)
    except BaseException:
        ours.close()
        raise
    return ours, frame


def _limit(connection: socket.socket, seconds: int) -> None:
    """Limit the time of every step of the other end; 0 is forever.

    Set in the system: `Connection` reads past Python's own time limits of sockets.
    """
    limit = struct.pack("@ll", seconds, 0)
    for option in (socket.SO_RCVTIMEO, socket.SO_SNDTIMEO):
        connection.setsockopt(socket.SOL_SOCKET, option, limit)


def _fill(connection: socket.socket, view: memoryview) -> None:
    while view:
        num_bytes = connection.recv_into(view)
        if not num_bytes:
            raise EOFError
        view = view[num_bytes:]
