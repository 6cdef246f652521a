"""Owners of threads in traces of several workers, from the threads' names.

A thread is called after the worker of a distributed program that it began:
``worker 1 / call 2``.
"""

import re
from collections.abc import Iterable, Mapping
from typing import Final, TypeAlias

import msgspec

from gradviz.trace.format.model import ThreadDefinition, Trace
from gradviz.trace.format.table import Table

#: Stands between whose a thread is and what it is called there.
OF: Final = " / "

_DIGITS: Final = re.compile(r"(\d{1,18})")

_OwnerKey: TypeAlias = tuple[bool, list[tuple[str, int]], int]


def worker_label(worker: int) -> str:
    """Return a worker's name as a prefix of other names."""
    return f"worker {worker}"


def called_after_workers(
    threads: Mapping[int, ThreadDefinition], began: Table
) -> dict[int, ThreadDefinition]:
    """Threads, those called after the worker that began on them which are not yet.

    What workers start themselves is. A thread on which several began is nobody's.

    Args:
        threads: By number.
        began: The events ``worker_began``.
    """
    workers: dict[int, set[int]] = {}
    for thread, worker in began.rows("thread", "worker"):
        workers.setdefault(thread, set()).add(worker)
    found = dict(threads)
    for thread, own in workers.items():
        if len(own) == 1 and thread in found and OF not in found[thread].name:
            name = f"{worker_label(*own)}{OF}{found[thread].name}"
            found[thread] = msgspec.structs.replace(found[thread], name=name)
    return found


def owner_of(name: str) -> str:
    """The worker or process that a thread or a queue is called after, or nothing."""
    return name.rpartition(OF)[0]


def by_owner(trace: Trace, threads: Iterable[int]) -> list[int]:
    """Group threads by owner, worker 2 before worker 10, those without one last."""

    def key(thread: int) -> _OwnerKey:
        known = trace.threads.get(thread)
        owner = "" if known is None else owner_of(known.name)
        parts = [*_DIGITS.split(owner), "0"]
        words = list(zip(parts[::2], map(int, parts[1::2]), strict=True))
        return not owner, words, thread

    return sorted(threads, key=key)


def name_at(owner: str, name: str) -> str:
    """Name of something beside the name of its owner."""
    return name.removeprefix(f"{owner}{OF}") if owner else name
