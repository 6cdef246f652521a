"""Sockets beyond the contract of all transports: strangers and silence."""

import os
import pickle
import random
import signal
import socket
import struct
import subprocess
import sys
import threading

import numpy as np
import pytest

from gradviz.distributed.messaging.failures import PeerDownError, RemoteError, RpcError
from gradviz.distributed.messaging.future import completed
from gradviz.distributed.transport import frames, handshake
from gradviz.distributed.transport.frames import Ask, Hello, Reply
from gradviz.distributed.transport.local import LocalTransport, seems_to_run
from gradviz.distributed.transport.rendezvous import Rendezvous
from gradviz.engine.graph.sync import THREADS
from tests.distributed.sockets import KEY, LocalNetwork, free_ports


def written(frame, arrays=(), number=0):
    return b"".join(frames.pieces(number, frames.encode(frame, arrays)))


@pytest.fixture
def victim(tmp_path):
    """Worker 0 of two, and the rendezvous where a test can be worker 1."""
    rendezvous = Rendezvous(2, str(tmp_path), KEY)
    transport = LocalTransport(0, rendezvous)
    transport.start(
        lambda _src, meta, arrays: completed(THREADS, (meta, arrays)),
        lambda *_: None,
    )
    yield transport, rendezvous
    transport.close(graceful=False)
    for thread in threading.enumerate():
        if thread.name.startswith(("worker 0 / link", "worker 0 / timers")):
            thread.join(60)
            assert not thread.is_alive()
    assert not list(tmp_path.iterdir())


def enter(rendezvous, hello=Hello(1, 2), key=KEY):  # noqa: B008 - frozen
    connection, _ = handshake.dial(rendezvous.address(0), key, hello)
    return connection


ONCE = written(Ask(0, {}))


@pytest.mark.parametrize(
    ("data", "words"),
    [
        (b"GET / HTTP/1.1\r\n" + bytes(40), "begins with"),
        (ONCE + ONCE, "message 0 came where number 1 was due"),
        (frames.PREFIX.pack(frames.MAGIC, 5, 0, 2**50) + b"{}", "expected at most"),
        (written(Hello(1, 2)), "Hello came where none is due"),
        (ONCE[:-1], "connection has ended"),
        (written(Reply(99, {})) + b"xxxx" * 9, "begins with"),
    ],
)
def test_a_peer_that_sends_nonsense_is_down_and_says_why(victim, data, words):
    transport, rendezvous = victim
    asked = transport.request(1, {})
    with enter(rendezvous) as connection:
        connection.sendall(data)
        connection.shutdown(1)
        with pytest.raises(PeerDownError, match="node 1 is down") as caught:
            asked.wait(60)
    assert words in str(caught.value)


class Opens:
    """Makes a file where it is unpickled."""

    def __init__(self, path):
        self.path = path

    def __reduce__(self):
        return open, (self.path, "w")


def test_bytes_of_those_who_have_no_key_do_no_harm(victim, tmp_path_factory):
    transport, rendezvous = victim
    trap = tmp_path_factory.mktemp("trap") / "opened"
    pickled = pickle.dumps(Opens(str(trap)))
    chance = random.Random(0)
    noise = [chance.randbytes(chance.randrange(200)) for _ in range(20)]
    sizes = [struct.pack("!i", one) for one in (-1, 0, 257, 2**31 - 1)]
    huge = struct.pack("!i", -1) + struct.pack("!Q", 2**62)
    length = struct.pack("!i", len(pickled))
    for data in [*noise, *sizes, huge, pickled, length + pickled]:
        with socket.socket(socket.AF_UNIX) as stranger:
            stranger.connect(rendezvous.address(0))
            stranger.sendall(data)
    asked = transport.request(1, {"n": 1})
    with LocalNetworkPeer(rendezvous):
        assert asked.wait(60)[0] == {"n": 1}
    assert not trap.exists()


@pytest.mark.parametrize(
    "seed",
    [*range(10), *(pytest.param(s, marks=pytest.mark.stress) for s in range(10, 300))],
)
def test_a_peer_whose_bytes_are_damaged_is_down_or_understood(victim, seed):
    """Bits of messages are changed, some of them left out or said twice."""
    transport, rendezvous = victim
    chance = random.Random(seed)
    sent = b"".join(
        written(Ask(n, {"n": n}), [np.arange(n, dtype="f8")], n) for n in range(5)
    )
    damaged = bytearray(sent)
    for _ in range(chance.randrange(4)):
        damaged[chance.randrange(len(damaged))] ^= 1 << chance.randrange(8)
    if chance.random() < 0.5:
        begin, end = sorted(chance.choices(range(len(damaged)), k=2))
        damaged[begin:end] = damaged[begin:end] * chance.choice([0, 2])
    asked = transport.request(1, {})
    with enter(rendezvous) as connection:
        connection.sendall(damaged)
        connection.shutdown(socket.SHUT_WR)
        with pytest.raises(PeerDownError, match="node 1 is down"):
            asked.wait(60)


def test_a_peer_with_another_key_is_refused_and_one_with_the_right_key_enters(victim):
    transport, rendezvous = victim
    with pytest.raises(handshake.StrangerError, match="not the key"):
        enter(rendezvous, key=bytes(32))
    with pytest.raises(handshake.StrangerError, match="one of 2 workers, expected 3"):
        enter(rendezvous, Hello(1, 3))
    with enter(rendezvous, Hello(7, 2)) as connection:
        assert connection.recv(1) == b""
    asked = transport.request(1, {"n": 1})
    with LocalNetworkPeer(rendezvous):
        assert asked.wait(60)[0] == {"n": 1}


class LocalNetworkPeer:
    """Worker 1 of two, which answers what it is asked."""

    def __init__(self, rendezvous):
        self.transport = LocalTransport(1, rendezvous)
        self.transport.start(
            lambda _src, meta, arrays: completed(THREADS, (meta, arrays)),
            lambda *_: None,
        )

    def __enter__(self):
        return self.transport

    def __exit__(self, *_):
        self.transport.close()


def test_a_second_worker_of_the_same_rank_is_turned_away(victim):
    transport, rendezvous = victim
    with LocalNetworkPeer(rendezvous) as peer:
        assert peer.request(0, {"n": 1}).wait(60)[0] == {"n": 1}
        with LocalNetworkPeer(rendezvous) as other:
            asked = other.request(0, {})
            rendezvous.report_exit(0, "is not at the door any more")
            with pytest.raises(PeerDownError):
                asked.wait(60)
        assert transport.request(1, {"n": 2}).wait(60)[0] == {"n": 2}
    rendezvous._note(0).unlink()


def test_a_place_in_use_is_told_at_once():
    first = free_ports(2)
    rendezvous = Rendezvous(2, f"127.0.0.1:{first}", KEY)
    transport = LocalTransport(0, rendezvous)
    try:
        with pytest.raises(RpcError, match="worker 0 cannot be reached at 127"):
            LocalTransport(0, rendezvous)
    finally:
        transport.close()


def test_large_arrays_go_both_ways_at_once():
    with LocalNetwork(2) as network:
        for transport in network.transports:
            transport.start(
                lambda _src, meta, arrays: completed(THREADS, (meta, arrays)),
                lambda *_: None,
            )
        array = np.arange(2**20)
        asked = [
            network.transports[rank].request(1 - rank, {}, [array, array[::2]])
            for rank in (0, 1, 0, 1)
        ]
        for one in asked:
            whole, half = one.wait(60)[1]
            assert np.array_equal(whole, array)
            assert np.array_equal(half, array[::2])
        asked.clear()


def test_a_message_that_is_too_large_is_the_senders_error_alone():
    with LocalNetwork(2) as network:
        for transport in network.transports:
            transport.start(
                lambda _s, meta, _a: completed(
                    THREADS, ({"a": "x" * 2**24} if meta else {}, ())
                ),
                lambda *_: None,
            )
        ask = network.transports[0].request
        with pytest.raises(ValueError, match="cannot be sent"):
            ask(1, {"a": "x" * 2**24}).wait(60)
        with pytest.raises(RemoteError, match="cannot be sent"):
            ask(1, {"a": "answer"}).wait(60)
        assert ask(1, {}).wait(60)[0] == {}


def test_a_worker_that_will_never_come_is_given_up(victim):
    transport, rendezvous = victim
    asked = transport.request(1, {})
    rendezvous.report_exit(1, "its process ended with exit code 3")
    try:
        with pytest.raises(PeerDownError, match="ended with exit code 3"):
            asked.wait(60)
    finally:
        rendezvous._note(1).unlink()


@pytest.mark.skipif(not sys.platform.startswith("linux"), reason="only Linux has /proc")
def test_a_process_seems_to_run_until_it_is_stopped_or_has_ended():
    with subprocess.Popen(["/bin/cat"], stdin=subprocess.PIPE) as process:
        assert seems_to_run(process.pid)
        process.send_signal(signal.SIGSTOP)
        os.waitid(os.P_PID, process.pid, os.WSTOPPED)
        assert not seems_to_run(process.pid)
        process.kill()
        os.waitid(os.P_PID, process.pid, os.WEXITED | os.WNOWAIT)
        assert not seems_to_run(process.pid)  # nobody has asked how it ended
    assert not seems_to_run(process.pid)


@pytest.mark.skipif(not sys.platform.startswith("linux"), reason="only Linux has /proc")
@pytest.mark.parametrize("pid", [0, -1, 2**70])
def test_an_impossible_process_id_counts_as_not_running(pid):
    assert not seems_to_run(pid)
