"""Servers that tests talk to through sockets."""

import asyncio
import contextlib
import queue
import socket
import threading
from collections.abc import Callable, Iterator
from http import HTTPStatus
from pathlib import Path
from typing import Any, NamedTuple

import pytest

from gradviz.trace.format.frames import FrameType, encode_frame, scan
from gradviz.view.admission import Admission
from gradviz.view.http import ViewRequest, ViewResponse
from gradviz.view.server import USUAL, ServerLimits, ViewServer, listen
from gradviz.view.shelf import Shelf
from gradviz.view.site import Site
from tests.analysis.conftest import Story

#: Nothing here takes as long, unless something hangs.
PATIENCE_S = 30.0

TOKEN = "0123456789abcdef0123456789abcdef"


class Served(NamedTuple):
    """A server that runs.

    Attributes:
        port: Where it is.
        thread: On which it runs.
        end: Ends it, and waits until it has.
    """

    port: int
    thread: threading.Thread
    end: Callable[[], None]

    def connect(self) -> socket.socket:
        return socket.create_connection(("127.0.0.1", self.port), PATIENCE_S)

    def tell(self, raw: bytes) -> bytes:
        """Return the whole answer to these bytes, up to the end of the connection."""
        with self.connect() as connection:
            connection.sendall(raw)
            return everything(connection)

    def ask(self, target: str, *headers: str, method: str = "GET") -> bytes:
        """Return the answer to an admitted browser, unless a header says otherwise."""
        given = {"Host": f"127.0.0.1:{self.port}", "Cookie": self.cookie}
        for one in headers:
            name, _, value = one.partition(": ")
            given[name] = value
        lines = [f"{name}: {value}" for name, value in given.items() if value]
        return self.tell(
            "\r\n".join((f"{method} {target} HTTP/1.1", *lines, "", "")).encode()
        )

    @property
    def cookie(self) -> str:
        return f"gradviz-{self.port}={TOKEN}"


def everything(connection: socket.socket) -> bytes:
    return b"".join(iter(lambda: connection.recv(1 << 16), b""))


def status(answer: bytes) -> int:
    return int(answer.split(b" ", 2)[1])


def body(answer: bytes) -> bytes:
    return answer.partition(b"\r\n\r\n")[2]


def header(answer: bytes, name: str) -> str | None:
    for line in answer.partition(b"\r\n\r\n")[0].decode().splitlines()[1:]:
        key, _, value = line.partition(": ")
        if key.lower() == name.lower():
            return value
    return None


def echo(request: ViewRequest) -> ViewResponse:
    return ViewResponse(HTTPStatus.OK, request.path.encode("utf-8", "replace"))


@pytest.fixture
def serve() -> Iterator[Callable[..., Served]]:
    """Starts a server that gives these answers; it ends with the test."""
    with contextlib.ExitStack() as ends:

        def start(answer=echo, limits: ServerLimits = USUAL, **options) -> Served:
            listening = ends.enter_context(listen(0))
            port = listening.getsockname()[1]
            server = ViewServer(
                listening, Admission(TOKEN, port), answer, limits, **options
            )
            running: queue.SimpleQueue[tuple[asyncio.AbstractEventLoop, Any]]
            running = queue.SimpleQueue()

            async def work() -> None:
                running.put((asyncio.get_running_loop(), asyncio.current_task()))
                with contextlib.suppress(asyncio.CancelledError):
                    await server.serve()

            thread = threading.Thread(target=asyncio.run, args=(work(),))
            thread.start()
            loop, task = running.get()

            def end() -> None:
                with contextlib.suppress(RuntimeError):  # it has ended
                    loop.call_soon_threadsafe(task.cancel)
                thread.join(PATIENCE_S)
                assert not thread.is_alive()

            ends.callback(end)
            return Served(port, thread, end)

        yield start


@pytest.fixture
def show(serve) -> Callable[[Path], Served]:
    """Shows a trace, or a folder of them."""
    return lambda place, **options: serve(Site(Shelf(place)).answer, **options)


def tell_passes(
    num_passes: int, num_ended: int | None = None, name: str = "Pass{}Backward0"
) -> bytes:
    """A trace of passes of one node, which take 100 and begin 1,000 after another."""
    story = Story()
    for task in range(num_passes):
        node, at = story.node(task, name=name.format(task)), 1_000 * task
        story.begin(task, [node], at=at)
        story.take(task, node, at=(at + 10, at + 20, at + 30), until=at + 40)
        if num_ended is None or task < num_ended:
            story.end(task, at=at + 100)
    return story.contents()


def unclosed(data: bytes) -> bytes:
    """A trace whose recorder goes on."""
    frames = [one for one in scan(data) if one.type != FrameType.CLOSED]
    return b"".join(encode_frame(one.type, bytes(one.payload)) for one in frames)
