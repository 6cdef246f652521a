# ruff: noqa: PLW0108 - makers are looked up when called, for they are replaced
"""Ctrl-C at every bytecode of gradviz and of a program that takes heard locks."""

import contextlib
import gc
import itertools
import queue
import signal
import threading
import traceback

import pytest

import gradviz as gv
from gradviz.compiled_core import compiled
from gradviz.stream_check import thread_handovers
from tests.faults.striking import Strike, interrupting


def block(lock):
    with lock:
        pass


def by_name(lock):
    lock.acquire()
    try:
        pass
    finally:
        lock.release()


def with_a_timeout(lock):
    if lock.acquire(True, 10):
        try:
            pass
        finally:
            lock.release()


def notifying(condition):
    with condition:
        condition.notify()
        condition.notify_all()
        condition.wait_for(lambda: True)


def passing_on(one):
    one.put(1)
    one.get()


def setting(event):
    event.set()
    event.is_set()
    event.wait()


def is_free(thing):
    """Return whether no lock of it is taken, and no place."""
    if isinstance(thing, threading.Semaphore):
        assert is_free(thing._cond)
        return thing._value == 1
    for name in ("_cond", "mutex", "_lock"):
        thing = getattr(thing, name, thing)
    return repr(thing).startswith("<unlocked")


CASES = {
    "lock": (lambda: threading.Lock(), block),
    "reentrant lock": (lambda: threading.RLock(), block),
    "condition": (lambda: threading.Condition(), notifying),
    "condition of a lock": (lambda: threading.Condition(threading.Lock()), block),
    "semaphore": (lambda: threading.Semaphore(), block),
    "semaphore, by name": (lambda: threading.BoundedSemaphore(), by_name),
    "queue": (lambda: queue.Queue(), passing_on),
    "event": (lambda: threading.Event(), setting),
    "barrier": (lambda: threading.Barrier(1), lambda one: one.wait()),
}
if not compiled:  # else as of a lock in C: Python looks for signals after `acquire`
    CASES |= {
        "lock, by name": (lambda: threading.Lock(), by_name),
        "lock, with a timeout": (lambda: threading.Lock(), with_a_timeout),
        "reentrant lock, by name": (lambda: threading.RLock(), by_name),
    }


@pytest.fixture
def ctrl_c():
    former = signal.signal(signal.SIGINT, signal.default_int_handler)
    gc.disable()  # or a finalizer might be struck
    yield
    gc.enable()
    signal.signal(signal.SIGINT, former)


def struck(nth, make, use):
    """Interrupt `use` at its n-th bytecode, of a thing that another thread has used."""
    strike = Strike(nth, interrupting, besides=__file__)
    thing, error = make(), None
    other = threading.Thread(target=use, args=(thing,))
    other.start()
    other.join()
    try:
        try:
            strike.arm()
            use(thing)
        finally:
            strike.disarm()
    except KeyboardInterrupt as interrupt:
        error = interrupt
    return strike.place, thing, error


def is_librarys(error):
    """Return whether code of Python's library raised it: that has holes of its own."""
    innermost = traceback.extract_tb(error.__traceback__)[-1].filename
    return innermost in {threading.__file__, queue.__file__}


@contextlib.contextmanager
def hearing():
    """Hear hand-overs, of which nobody is told: less code to be struck."""
    thread_handovers.listen()
    yield
    thread_handovers.unlisten()


@pytest.mark.parametrize(
    ("make", "use", "listening"),
    [(*case, hearing) for case in CASES.values()]
    + [(*CASES["lock"], gv.check_streams)],
    ids=[*CASES, "lock, in a check of streams"],
)
def test_an_interrupt_anywhere_leaves_nothing_taken(make, use, listening, ctrl_c):
    taken, num_raised = [], 0
    with listening():
        for nth in itertools.count(1):
            place, thing, error = struck(nth, make, use)
            if not place:
                break
            num_raised += error is not None
            if not is_free(thing) and not (error and is_librarys(error)):
                taken.append((nth, place))
    assert taken == []
    assert num_raised > 5
    assert is_free(thing)
