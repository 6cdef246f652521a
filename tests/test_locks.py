"""Locks that no interrupt leaves taken; `tests.faults` strikes those of the engine."""

import signal
import threading

import pytest

from gradviz.locks import InterruptSafeRLock, SafeLock, SafeRLock


class Interrupted(InterruptSafeRLock):
    """A lock whose taker is interrupted once it has it, the `first` time."""

    first = 1

    def acquire(self, *arguments):
        super().acquire(*arguments)
        self.first -= 1
        if not self.first:
            signal.raise_signal(signal.SIGINT)


def is_free(lock):
    """Try it in another thread, which nobody has lent it to."""
    found = []

    def look():
        found.append(lock.acquire(blocking=False))

    thread = threading.Thread(target=look)
    thread.start()
    thread.join()
    return found == [True]


def test_one_that_is_interrupted_as_it_is_taken_is_given_back():
    lock = Interrupted()
    with pytest.raises(KeyboardInterrupt):
        lock.__enter__()
    lock.first = 0

    assert not lock._is_owned()


def test_one_that_was_held_before_is_still_held_once():
    lock = Interrupted()
    lock.first = 2
    with lock:
        with pytest.raises(KeyboardInterrupt):
            lock.__enter__()
        assert lock._is_owned()

    assert not lock._is_owned()


@pytest.mark.parametrize("make", [SafeLock, SafeRLock, InterruptSafeRLock])
def test_it_excludes_other_threads_and_is_free_afterwards(make):
    lock = make()
    with lock:
        assert not is_free(lock)

    assert is_free(lock)


@pytest.mark.parametrize("make", [SafeLock, SafeRLock, InterruptSafeRLock])
def test_an_error_in_its_block_frees_it(make):
    lock = make()
    with pytest.raises(KeyError), lock:
        raise KeyError

    assert is_free(lock)
