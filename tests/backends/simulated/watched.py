"""Simulated devices whose program is watched: how often does it wait for them?"""

from collections.abc import Iterator
from contextlib import contextmanager

from gradviz.backends.simulated.devices.machine import machine
from gradviz.backends.simulated.devices.stepping import Stepped
from gradviz.backends.simulated.devices.work import Work


class Watched(Stepped):
    """Carries out work when it is waited for, and counts how often that is."""

    def __init__(self) -> None:
        super().__init__(seed=0)
        self.num_waits = 0

    def wait(self, work: Work) -> None:
        self.num_waits += 1
        super().wait(work)

    def poll(self, work: Work) -> bool:
        self.num_waits += 1
        return super().poll(work)


@contextmanager
def watched() -> Iterator[Watched]:
    """A block whose waits are counted."""
    before, executor = machine.executor, Watched()
    machine.use(executor)
    try:
        yield executor
    finally:
        machine.use(before)
