"""Whose a thread is where a trace is of several workers or processes.

Its name says so: ``worker 1 / call 2``.
"""

import re
from collections.abc import Iterable
from typing import Final, TypeAlias

from gradviz.trace.model import Trace
from gradviz.trace.worker_threads import OF

_DIGITS: Final = re.compile(r"(\d{1,18})")

_OwnerKey: TypeAlias = tuple[bool, list[tuple[str, int]], int]


def owner_of(name: str) -> str:
    """The worker or process that a thread or a queue is called after, or nothing."""
    return name.rpartition(OF)[0]


def by_owner(trace: Trace, threads: Iterable[int]) -> list[int]:
    """Threads of one owner together, worker 2 before worker 10, nobody's last."""

    def key(thread: int) -> _OwnerKey:
        known = trace.threads.get(thread)
        owner = "" if known is None else owner_of(known.name)
        parts = [*_DIGITS.split(owner), "0"]
        words = list(zip(parts[::2], map(int, parts[1::2]), strict=True))
        return not owner, words, thread

    return sorted(threads, key=key)


def name_at(owner: str, name: str) -> str:
    """What something is called beside the name of its owner."""
    return name.removeprefix(f"{owner}{OF}") if owner else name
