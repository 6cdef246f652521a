"""Frames that wait to go, and the threads that send them."""

import contextlib
import socket
import threading

import numpy as np
import pytest

from gradviz.distributed.transport.frames import Ask, encode, read_frame
from gradviz.distributed.transport.outbox import Outbox
from gradviz.engine.graph.sync import THREADS
from tests.distributed.waiting import until


class Pair:
    """An outbox over one end of a connection, and the other end.

    Attributes:
        outbox: As it is.
        other: The other end, which has little room.
        num_chunks: How often it was told that much of something large went.
    """

    def __init__(self):
        self.own, self.other = socket.socketpair()
        self.own.setsockopt(socket.SOL_SOCKET, socket.SO_SNDBUF, 2**14)
        self.num_chunks = 0
        self.outbox = Outbox(THREADS, self.count)
        self.writer = threading.Thread(target=self.write, daemon=True)
        self.num_received = 0

    def count(self):
        self.num_chunks += 1

    def write(self):
        with contextlib.suppress(OSError):
            self.outbox.write(self.own)

    def put(self, number, size=1, *, is_wanted=lambda: True):
        frame = encode(Ask(number, {}), [np.full(size, number % 100, np.uint8)])
        self.outbox.put(frame, is_wanted)

    def receive(self):
        """The number of the next frame, whose bytes must be right."""

        def fill(view):
            while view:
                num_bytes = self.other.recv_into(view)
                if not num_bytes:
                    raise EOFError
                view = view[num_bytes:]

        frame, (array,) = read_frame(fill, self.num_received)
        self.num_received += 1
        assert (array == frame.request % 100).all()
        return frame.request


@pytest.fixture
def pair():
    pair = Pair()
    pair.other.settimeout(60)
    with pair.own, pair.other:
        yield pair
        pair.outbox.end()
        pair.other.close()
        if pair.writer.ident is not None:
            pair.writer.join(60)
        assert not pair.writer.is_alive()


def on_another_thread(target):
    thread = threading.Thread(target=target, daemon=True)
    thread.start()
    thread.join(60)
    assert not thread.is_alive()


def test_frames_put_before_the_writer_starts_are_sent_when_it_does(pair):
    for number in range(3):
        pair.put(number)
    on_another_thread(lambda: pair.put(3))
    pair.writer.start()

    assert [pair.receive() for _ in range(4)] == [0, 1, 2, 3]


def test_a_small_frame_is_sent_by_the_thread_that_puts_it(pair):
    pair.writer.start()
    pair.put(0)
    assert pair.receive() == 0
    until(lambda: not pair.outbox._is_owned)  # the writing thread sleeps again

    on_another_thread(lambda: pair.put(1))
    pair.other.setblocking(False)
    assert pair.receive() == 1


def test_the_main_thread_leaves_it_to_the_writing_thread(pair):
    """An interrupt would leave the line without an owner forever."""
    pair.put(0)

    assert not pair.outbox._is_owned
    pair.writer.start()
    assert pair.receive() == 0


def test_putting_frames_waits_neither_for_the_peer_nor_for_large_frames(pair):
    pair.writer.start()
    sizes = [1, 2**21 + 1, 1, *[2**13] * 50, 2**17]

    def put():
        for number, size in enumerate(sizes):
            pair.put(number, size)

    on_another_thread(put)  # nobody receives yet
    assert [pair.receive() for _ in sizes] == [*range(len(sizes))]
    assert pair.num_chunks == 2


def test_frames_of_many_threads_arrive_whole_and_each_threads_in_order(pair):
    pair.writer.start()
    each, sizes = 200, [1, 5000, 2**16 + 1]

    def put(first):
        for number in range(first, first + each):
            pair.put(number, sizes[number % 3])

    threads = [
        threading.Thread(target=put, args=(place * each,), daemon=True)
        for place in range(4)
    ]
    for thread in threads:
        thread.start()
    came = [pair.receive() for _ in range(4 * each)]
    for thread in threads:
        thread.join(60)

    assert sorted(came) == [*range(4 * each)]
    for place in range(4):
        own = [number for number in came if number // each == place]
        assert own == sorted(own)


def test_unwanted_frames_are_not_sent_and_take_no_number(pair):
    pair.put(0, is_wanted=lambda: False)
    pair.put(1, 2**17, is_wanted=lambda: False)
    pair.put(2)
    pair.writer.start()

    assert pair.receive() == 2


def test_after_the_end_nothing_goes_and_all_before_it_does(pair):
    pair.writer.start()

    def put():
        pair.put(0, 2**18)
        pair.put(1)
        pair.outbox.end()
        pair.put(2)

    on_another_thread(put)
    assert [pair.receive(), pair.receive()] == [0, 1]
    with pytest.raises(EOFError):
        pair.receive()
    pair.writer.join(60)
    assert not pair.writer.is_alive()


def test_a_connection_that_has_ended_harms_nobody_who_puts(pair):
    pair.writer.start()
    pair.put(0)
    assert pair.receive() == 0
    pair.other.close()

    on_another_thread(lambda: [pair.put(1, 5000) for _ in range(100)])
    pair.writer.join(60)
    assert not pair.writer.is_alive()
