"""Locks and queues while somebody listens to hand-overs between threads, and alone.

Python's own are made before anybody listens, so that they stay as they are; the cases
are those in which a hand-over tells nobody anything, as nearly all are.
"""

import queue
import threading
from collections.abc import Callable
from types import ModuleType
from typing import Any

from benchmarks.timing import Contestant, timed
from gradviz.stream_check import thread_handovers

#: Calls of each round: few, so that a busy machine leaves some rounds alone.
NUM_CALLS = 2_000


def in_blocks(lock: Any) -> None:
    """Take and release a lock by ``with``."""
    for _ in range(NUM_CALLS):
        with lock:
            pass


def by_name(lock: Any) -> None:
    """Take and release a lock by its methods."""
    for _ in range(NUM_CALLS):
        lock.acquire()
        lock.release()


def through(one: Any) -> None:
    """Put something into a queue, and get it."""
    for _ in range(NUM_CALLS):
        one.put(None)
        one.get()


def asking(event: Any) -> None:
    """Ask an event that is set."""
    event.set()
    for _ in range(NUM_CALLS):
        event.is_set()


def notifying(condition: Any) -> None:
    """Enter a condition and notify nobody."""
    for _ in range(NUM_CALLS):
        with condition:
            condition.notify()


#: What is done with what, by its title.
CASES: dict[str, tuple[Callable[[Any], None], ModuleType, str]] = {
    "`with lock`": (in_blocks, threading, "Lock"),
    "`lock.acquire()`, `lock.release()`": (by_name, threading, "Lock"),
    "`with rlock`": (in_blocks, threading, "RLock"),
    "`SimpleQueue`: a put and a get": (through, queue, "SimpleQueue"),
    "`Queue`: a put and a get": (through, queue, "Queue"),
    "`with semaphore`": (in_blocks, threading, "Semaphore"),
    "`with condition`": (in_blocks, threading, "Condition"),
    "`with condition`, `notify`": (notifying, threading, "Condition"),
    "`Event.is_set` of one that is set": (asking, threading, "Event"),
}


def heard_and_alone(title: str) -> dict[str, Contestant]:
    """Return the contestants of a case."""
    work, module, name = CASES[title]
    alone = getattr(module, name)()
    thread_handovers.listen()
    heard = getattr(module, name)()
    thread_handovers.unlisten()

    def listened_to() -> float:
        thread_handovers.listen()
        try:
            work(heard)  # what is news to somebody is reported here
            return timed(lambda: work(heard))
        finally:
            thread_handovers.unlisten()

    return {"alone": lambda: timed(lambda: work(alone)), "heard": listened_to}
