"""Threads are called after the worker of a distributed program that they began."""

from collections.abc import Mapping
from typing import Final

import msgspec

from gradviz.trace.model import ThreadDefinition
from gradviz.trace.table import Table

#: Stands between whose a thread is and what it is called there.
OF: Final = " / "


def worker_label(worker: int) -> str:
    """What a worker is called where something is called after it."""
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
