"""Workers of one process with sockets between them: what a test can look into."""

import contextlib
import shutil
import socket
import tempfile
from pathlib import Path

from gradviz.distributed.transport.local import LocalTransport
from gradviz.distributed.transport.rendezvous import Rendezvous
from gradviz.engine.graph.sync import THREADS
from tests.distributed.waiting import until

KEY = bytes(range(32))


class LocalNetwork:
    """A `Network` over local sockets.

    Attributes:
        rendezvous: Where they are.
        transports: One for each worker.
    """

    sync = THREADS

    def __init__(self, world_size, kind="unix"):
        self.folder = tempfile.mkdtemp(prefix="gv-")
        place = self.folder if kind == "unix" else f"127.0.0.1:{free_ports(world_size)}"
        self.rendezvous = Rendezvous(world_size, place, KEY)
        self.transports = [
            LocalTransport(rank, self.rendezvous) for rank in range(world_size)
        ]

    def kill(self, rank):
        """Let a worker be gone from one moment to the other, as the system would."""
        victim = self.transports[rank]
        until(lambda: all(one._socket is not None for one in victim._links.values()))
        victim.vanish("nobody hears that")

    def __enter__(self):
        return self

    def __exit__(self, *_):
        for transport in self.transports:
            transport.close(graceful=False)
        assert not list(Path(self.folder).iterdir())
        shutil.rmtree(self.folder)


def free_ports(number):
    """The first of several ports in a row that nobody listens at."""
    while True:
        with (
            contextlib.ExitStack() as held,
            contextlib.suppress(OSError, OverflowError),
        ):
            probe = held.enter_context(socket.create_server(("127.0.0.1", 0)))
            first = probe.getsockname()[1]
            for offset in range(1, number):
                address = ("127.0.0.1", first + offset)
                held.enter_context(socket.create_server(address))
            return first
