"""Talking to browsers: one request a connection, within limits of size and time.

Note [Two shares]
~~~~~~~~~~~~~~~~~
Any program of the machine can connect, and as often as it likes. So connections are of
two kinds, and each kind has a share of its own. A connection is a *stranger* until its
request has shown the token, and an admitted one from then on. Too many strangers push
out each other, first those that have their refusal already, then the oldest: a browser
sends its request at once, so it is admitted long before its turn comes. Too many
admitted ones, who all have the token, are told to come later. Strangers never fill
their share.
"""

import asyncio
import contextlib
import errno
import socket
import threading
from collections import OrderedDict
from collections.abc import Callable
from http import HTTPStatus
from typing import Final, NamedTuple

from gradviz.errors import UserError
from gradviz.view.admission import Admission
from gradviz.view.http import (
    BadRequestError,
    ViewRequest,
    ViewResponse,
    format_response,
    parse_request,
    refusal,
)

LOOPBACK: Final = "127.0.0.1"

#: Number of connections that the system hands over at once.
_BACKLOG: Final = 100

#: Number of bytes that a refused browser may still send before the connection is
#: closed.
_TAIL_BYTES: Final = 1 << 16
_TAIL_S: Final = 1.0


class ServerLimits(NamedTuple):
    """Limits on clients.

    Attributes:
        head_bytes: Maximum length of the head of a request.
        head_s: Maximum time for its arrival.
        body_s: Maximum time to fetch the answer.
        connections: Maximum number of open connections with the token.
        strangers: Maximum number of others; more than `_BACKLOG`, or a browser that is
            handed over with them could be pushed out before its request is read.
    """

    head_bytes: int = 16 << 10
    head_s: float = 10.0
    body_s: float = 60.0
    connections: int = 64
    strangers: int = 256


USUAL: Final = ServerLimits()


def listen(port: int) -> socket.socket:
    """A socket that listens on 127.0.0.1, at any free port for 0.

    Raises:
        UserError: The port is taken, or not to be had.
    """
    listening = socket.socket(socket.AF_INET, socket.SOCK_STREAM)
    try:
        listening.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        listening.bind((LOOPBACK, port))
        listening.listen()
    except OSError as error:
        listening.close()
        why = "it is in use" if error.errno == errno.EADDRINUSE else error.strerror
        raise UserError(
            f"cannot listen on port {port} of {LOOPBACK}: {why}; choose another with "
            f"--port, or leave that out for a free one"
        ) from None
    return listening


class ViewServer:
    """Answers requests until it is canceled, or has served what it was to serve once.

    Args:
        listening: Socket to which browsers connect.
        admission: Conditions under which they may ask.
        answer: Function that answers them; called on another thread, one at a time.
        limits: Limits on what they may take.
        is_last: Test of a response that was fetched, True if it is the last; by default
            none is.
    """

    def __init__(
        self,
        listening: socket.socket,
        admission: Admission,
        answer: Callable[[ViewRequest], ViewResponse],
        limits: ServerLimits = USUAL,
        is_last: Callable[[ViewResponse], bool] = lambda _: False,
    ) -> None:
        self._listening = listening
        self._admission = admission
        self._answer = answer
        self._limits = limits
        self._is_last = is_last
        # See Note [Two shares].
        self._admitted: set[asyncio.StreamWriter] = set()
        #: Those that are pushed out first come first.
        self._strangers: OrderedDict[asyncio.StreamWriter, None] = OrderedDict()

    async def serve(self) -> None:
        """Answer whoever asks."""
        self._done = asyncio.Event()
        self._one_at_a_time = asyncio.Lock()
        server = await asyncio.start_server(
            self._talk,
            sock=self._listening,
            limit=self._limits.head_bytes,
            backlog=_BACKLOG,
        )
        try:
            await self._done.wait()
        finally:
            server.close()
            for one in (*self._admitted, *self._strangers):
                one.transport.abort()
            await asyncio.sleep(0)  # what is aborted closes in the next turn

    async def _talk(
        self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter
    ) -> None:
        """One connection: a request, a response."""
        self._strangers[writer] = None
        if len(self._strangers) > self._limits.strangers:
            first, _ = self._strangers.popitem(last=False)
            first.transport.abort()
        try:
            with contextlib.suppress(
                OSError, TimeoutError, asyncio.IncompleteReadError
            ):
                await self._converse(reader, writer)
        finally:
            self._admitted.discard(writer)
            self._strangers.pop(writer, None)
            writer.close()

    async def _converse(
        self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter
    ) -> None:
        response, has_body = await self._respond(reader, writer)
        if writer in self._strangers:
            self._strangers.move_to_end(writer, last=False)
        is_heard = has_body and not reader.at_eof()  # else the browser has gone
        writer.transport.set_write_buffer_limits(0)  # `drain` waits for all of it
        writer.write(format_response(response, has_body=has_body))
        await asyncio.wait_for(writer.drain(), self._limits.body_s)
        writer.write_eof()
        # Closed with bytes unread, a connection is reset, and the answer lost with it.
        with contextlib.suppress(TimeoutError):
            await asyncio.wait_for(_finish(reader), min(_TAIL_S, self._limits.head_s))
        if is_heard and self._is_last(response):
            self._done.set()

    async def _respond(
        self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter
    ) -> tuple[ViewResponse, bool]:
        """A response to what comes, and whether its body is wanted."""
        try:
            head = await asyncio.wait_for(
                reader.readuntil(b"\r\n\r\n"), self._limits.head_s
            )
            request = parse_request(head)
        except asyncio.LimitOverrunError:
            too_long = HTTPStatus.REQUEST_HEADER_FIELDS_TOO_LARGE
            return refusal(too_long, "the head of the request is too long"), True
        except TimeoutError:
            return refusal(
                HTTPStatus.REQUEST_TIMEOUT, "the request took too long"
            ), True
        except BadRequestError as error:
            return refusal(HTTPStatus.BAD_REQUEST, str(error)), True
        refused = self._admission.answer(request) or self._admit(writer)
        if refused is not None:
            return refused, request.method != "HEAD"
        async with self._one_at_a_time:
            response = await _on_a_thread(lambda: self._answer(request))
        return response, request.method != "HEAD"

    def _admit(self, writer: asyncio.StreamWriter) -> ViewResponse | None:
        """Count a connection among the admitted ones; a refusal if there is no room.

        Raises:
            ConnectionAbortedError: It has been pushed out just now.
        """
        if writer not in self._strangers:
            raise ConnectionAbortedError
        if len(self._admitted) >= self._limits.connections:
            return refusal(HTTPStatus.SERVICE_UNAVAILABLE, "too many connections")
        del self._strangers[writer]
        self._admitted.add(writer)
        return None


async def _finish(reader: asyncio.StreamReader) -> None:
    """Wait until the other side has closed too, or said far too much."""
    left = _TAIL_BYTES
    while left > 0 and (data := await reader.read(left)):
        left -= len(data)


async def _on_a_thread(call: Callable[[], ViewResponse]) -> ViewResponse:
    """Return the result of a call on a thread that does not delay the exit."""
    loop = asyncio.get_running_loop()
    done: asyncio.Future[ViewResponse] = loop.create_future()

    def tell(response: ViewResponse) -> None:
        if not done.done():
            done.set_result(response)

    def run() -> None:
        try:
            response = call()
        except Exception as error:  # noqa: BLE001 - one answer, not all of them
            told = f"internal error: {type(error).__name__}: {error}"
            response = refusal(HTTPStatus.INTERNAL_SERVER_ERROR, told)
        with contextlib.suppress(RuntimeError):  # the loop has ended meanwhile
            loop.call_soon_threadsafe(tell, response)

    threading.Thread(target=run, name="gradviz view", daemon=True).start()
    return await done
