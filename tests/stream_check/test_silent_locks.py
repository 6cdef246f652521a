import queue
import sys
import threading
from functools import partial

import pytest

import gradviz as gv
from gradviz.stream_check.silent_locks import has_silent_lock


class Holder:
    """Has something, and runs code when it is asked for what it has not."""

    def __init__(self, held):
        self.held = held

    def __getattr__(self, name):
        raise AssertionError(name)


def closure(lock):
    def call():
        return lock

    return call


HIDING = {
    "variable": lambda lock: lock,
    "attribute": Holder,
    "attributes of attributes": lambda lock: Holder(Holder(Holder(lock))),
    "list": lambda lock: [[lock]],
    "dict": lambda lock: {"a": {"b": lock}},
    "closure": closure,
    "partial": lambda lock: partial(print, lock),
    "method": lambda lock: Holder(lock).__init__,
    "class": lambda lock: type("Model", (), {"lock": lock}),
}


def looks_like(hidden):
    assert hidden is not None
    return has_silent_lock(sys._getframe())


@pytest.mark.parametrize("make", [threading.Lock, threading.RLock, queue.SimpleQueue])
def test_a_lock_is_seen(make):
    assert looks_like(make())


@pytest.mark.parametrize("hide", HIDING.values(), ids=HIDING)
def test_a_lock_is_seen_wherever_it_is_hidden(hide):
    assert looks_like(hide(threading.Lock()))


def test_a_name_of_its_own_for_what_makes_locks_is_one():
    assert looks_like(threading.Lock)


@pytest.mark.parametrize(
    "make",
    [
        queue.Queue,
        threading.Event,
        threading.Condition,
        threading.Thread,
        gv.check_streams,
        lambda: threading,
        lambda: [1, "a", (2.5, None)],
    ],
)
def test_an_object_of_a_library_is_no_silent_lock(make):
    assert not looks_like(make())


def test_a_program_too_large_to_look_at_has_one():
    assert looks_like([[[] for _ in range(999)] for _ in range(999)])


def test_a_queue_of_before_the_block_tells_threads_apart():
    box = queue.Queue()
    x = gv.zeros(4, device="sim:0")
    gv.synchronize("sim:0")

    def work():
        with gv.Stream("sim:0"):
            x.add_(1)
        box.put(None)

    with gv.sim.stepped(), gv.check_streams(raise_error=False) as check:
        thread = threading.Thread(target=work)
        thread.start()
        box.get()
        gv.synchronize("sim:0")
        x.add_(1)
        thread.join()

    assert check.races == ()
    assert check._machine.tells_threads_apart
