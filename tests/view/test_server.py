"""The server, through sockets, as a browser or somebody who wants to do harm."""

import contextlib
import socket
import threading
from http import HTTPStatus

import pytest

from gradviz.errors import UserError
from gradviz.view.http import ViewResponse
from gradviz.view.server import LOOPBACK, ServerLimits, listen
from tests.view.conftest import PATIENCE_S, body, everything, header, status


def test_it_answers_one_request_and_closes(serve):
    answer = serve().ask("/a%20b?c=d")

    assert status(answer) == 200
    assert body(answer) == b"/a b"
    assert header(answer, "Connection") == "close"


def test_a_head_has_the_headers_of_a_get_and_no_body(serve):
    served = serve()

    answer, whole = served.ask("/abc", method="HEAD"), served.ask("/abc")
    assert answer + b"/abc" == whole


def test_it_listens_on_this_machine_only():
    with listen(0) as listening:
        assert listening.getsockname()[0] == LOOPBACK == "127.0.0.1"


def test_a_busy_port_is_one_sentence(serve):
    port = serve().port

    with pytest.raises(
        UserError, match=rf"port {port} of 127.0.0.1: it is in use; cho"
    ):
        listen(port)


@pytest.mark.parametrize(
    "name",
    [
        "Content-Security-Policy",
        "Cross-Origin-Opener-Policy",
        "Cross-Origin-Resource-Policy",
    ],
)
def test_every_answer_says_what_may_become_of_it(serve, name):
    served = serve()

    for answer in (
        served.ask("/"),
        served.ask("/", "Host: evil"),
        served.tell(b"?\r\n\r\n"),
    ):
        assert header(answer, name)
        assert header(answer, "X-Content-Type-Options") == "nosniff"
        assert header(answer, "Cache-Control") == "no-store"
        assert header(answer, "Referrer-Policy") == "no-referrer"
        assert "frame-ancestors 'none'" in header(answer, "Content-Security-Policy")
        assert b"access-control" not in answer.lower()


# --- bad requests -----------------------------------------------------------------


@pytest.mark.parametrize(
    "raw",
    [
        b"\r\n\r\n",
        b"GET\r\n\r\n",
        b"GET / HTTP/2.0\r\n\r\n",
        b"GET / HTTP/1.1 \r\n\r\n",
        b"get / HTTP/1.1\r\n\r\n",
        b"GET http://127.0.0.1/ HTTP/1.1\r\n\r\n",
        b"GET x HTTP/1.1\r\n\r\n",
        b"GET /a b HTTP/1.1\r\n\r\n",
        b"GET /\xff HTTP/1.1\r\n\r\n",
        b"GET / HTTP/1.1\r\nno colon\r\n\r\n",
        b"GET / HTTP/1.1\r\nHost : x\r\n\r\n",
        b"GET / HTTP/1.1\r\n folded: x\r\n\r\n",
        b"GET / HTTP/1.1\r\nHost: a\r\nHost: b\r\n\r\n",
        b"GET / HTTP/1.1\r\nX: a\nY: b\r\n\r\n",
        b"GET / HTTP/1.1\r\nX: \0\r\n\r\n",
        b"GET / HTTP/1.1\r\nContent-Length: 3\r\n\r\nabc",
        b"GET / HTTP/1.1\r\nTransfer-Encoding: chunked\r\n\r\n0\r\n\r\n",
        b"GET /?" + b"&".join(b"a%d=1" % i for i in range(99)) + b" HTTP/1.1\r\n\r\n",
        b"\x16\x03\x01\x02\x00\x01\r\n\r\n",
    ],
)
def test_a_request_that_no_browser_sends_is_refused(serve, raw):
    assert status(serve().tell(raw)) == 400


def test_a_long_head_is_refused(serve):
    answer = serve().ask("/", "X: " + "x" * (17 << 10))

    assert status(answer) == 431


def test_an_endless_head_is_cut_off(serve):
    with serve().connect() as connection:
        try:
            while True:
                connection.sendall(b"X: y\r\n" * 1_000)
        except OSError:
            return


def test_a_head_that_does_not_come_to_its_end_is_given_up(serve):
    served = serve(limits=ServerLimits(head_s=0.05))

    assert status(served.tell(b"GET / HTTP/1.1\r\nHost")) == 408
    assert status(served.tell(b"")) == 408


def test_whoever_says_nothing_keeps_nobody_waiting(serve):
    served = serve()

    with served.connect(), served.connect() as other:
        other.sendall(b"GET ")
        assert status(served.ask("/")) == 200


def head_of(served, target="/"):
    lines = f"GET {target} HTTP/1.1\r\nHost: 127.0.0.1:{served.port}\r\n"
    return f"{lines}Cookie: {served.cookie}\r\n\r\n".encode()


def test_a_connection_that_has_not_asked_yet_makes_room_for_one_that_asks(serve):
    served = serve(limits=ServerLimits(strangers=2))

    with served.connect() as first, served.connect() as second:
        for one in (first, second):
            one.sendall(b"GET ")
        assert status(served.ask("/")) == 200
        with contextlib.suppress(ConnectionResetError):
            assert first.recv(1) == b""
        second.sendall(head_of(served)[len("GET ") :])
        assert status(everything(second)) == 200


def test_only_so_many_may_wait_for_answers(serve):
    asked, may_go = threading.Semaphore(0), threading.Event()

    def answer(_):
        asked.release()
        may_go.wait(PATIENCE_S)
        return ViewResponse(HTTPStatus.OK)

    served = serve(answer, ServerLimits(connections=1))
    with served.connect() as connection:
        connection.sendall(head_of(served))
        assert asked.acquire(timeout=PATIENCE_S)
        assert status(served.ask("/")) == 503
        may_go.set()
        assert status(everything(connection)) == 200


def test_strangers_leave_those_with_the_token_their_share(serve):
    served = serve(limits=ServerLimits(connections=1, strangers=20))

    with contextlib.ExitStack() as lingering:
        for _ in range(20):
            for raw in (b"GET / HTTP/1.1\r\n\r\n", b"GET "):
                stranger = lingering.enter_context(served.connect())
                stranger.sendall(raw)
            assert status(served.ask("/")) == 200


def test_strangers_that_were_refused_make_room_first(serve):
    served = serve(limits=ServerLimits(strangers=2))

    with served.connect() as asking, served.connect() as refused:
        asking.sendall(b"GET ")
        refused.sendall(b"GET / HTTP/1.1\r\n\r\n")
        assert refused.recv(12) == b"HTTP/1.1 403"
        assert status(served.ask("/")) == 200
        asking.sendall(head_of(served)[len("GET ") :])
        assert status(everything(asking)) == 200


def test_a_connection_that_closes_makes_room(serve):
    served = serve(limits=ServerLimits(strangers=1))

    for _ in range(5):
        with served.connect() as connection:
            connection.sendall(b"GET / HTTP/1.1\r\n\r\n")
            assert status(everything(connection)) == 403


def test_whoever_leaves_before_the_answer_harms_nobody(serve):
    served = serve(lambda _: ViewResponse(HTTPStatus.OK, b"x" * (8 << 20)))

    with served.connect() as connection:
        lines = f"GET / HTTP/1.1\r\nHost: 127.0.0.1:{served.port}\r\n"
        connection.sendall(f"{lines}Cookie: {served.cookie}\r\n\r\n".encode())
        connection.recv(10)
    assert len(body(served.ask("/"))) == 8 << 20


def test_whoever_does_not_read_is_given_up(serve):
    served = serve(
        lambda _: ViewResponse(HTTPStatus.OK, b"x" * (64 << 20)),
        ServerLimits(body_s=0.05),
    )

    with served.connect() as connection:
        connection.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 1 << 12)
        lines = f"GET / HTTP/1.1\r\nHost: 127.0.0.1:{served.port}\r\n"
        connection.sendall(f"{lines}Cookie: {served.cookie}\r\n\r\n".encode())
        assert status(served.ask("/x", "Host: evil")) == 403
        served.end()


# --- ending ----------------------------------------------------------------------


def test_an_error_in_an_answer_is_reported_in_one_line(serve):
    def fail(_):
        raise ValueError("<b>")

    answer = serve(fail).ask("/")
    assert status(answer) == 500
    assert body(answer) == b"internal error: ValueError: <b>\n"
    assert header(answer, "Content-Type").startswith("text/plain")


def test_it_ends_at_once_while_somebody_waits_for_an_answer(serve):
    asked, ended = threading.Event(), threading.Event()

    def answer(_):
        asked.set()
        ended.wait(30)
        return ViewResponse(HTTPStatus.OK)

    served = serve(answer)
    with served.connect() as connection:
        lines = f"GET / HTTP/1.1\r\nHost: 127.0.0.1:{served.port}\r\n"
        connection.sendall(f"{lines}Cookie: {served.cookie}\r\n\r\n".encode())
        assert asked.wait(30)
        served.end()
        ended.set()


def test_it_ends_by_itself_after_the_last_response(serve):
    served = serve(is_last=lambda response: response.body == b"/last")

    assert status(served.ask("/first")) == 200
    assert status(served.ask("/last")) == 200
    served.thread.join(PATIENCE_S)
    assert not served.thread.is_alive()


def test_a_response_that_nobody_got_is_not_the_last(serve):
    asked, may_go = threading.Semaphore(0), threading.Event()

    def answer(_):
        asked.release()
        may_go.wait(PATIENCE_S)
        return ViewResponse(HTTPStatus.OK, b"/last")

    served = serve(answer, is_last=lambda response: response.body == b"/last")
    with served.connect() as connection:
        connection.sendall(head_of(served))
        assert asked.acquire(timeout=PATIENCE_S)
    may_go.set()
    assert status(served.ask("/", method="HEAD")) == 200
    assert status(served.ask("/")) == 200
    served.thread.join(PATIENCE_S)
    assert not served.thread.is_alive()
