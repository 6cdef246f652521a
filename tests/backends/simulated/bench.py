"""Launches for tests of simulated devices, and their reports."""

import threading
from collections.abc import Iterator
from contextlib import contextmanager

import numpy as np

from gradviz.backends.base import copy_to
from gradviz.backends.device import Device
from gradviz.backends.simulated.devices.machine import machine
from gradviz.backends.simulated.devices.work import new_work
from gradviz.backends.stream import Stream
from gradviz.trace.probe import Probe

SIM0, SIM1 = Device("sim", 0), Device("sim", 1)

#: A test that waits in vain fails after so long.
PATIENCE_S = 30


def on(device, data):
    """An array on a device."""
    return copy_to(np.array(data), device)


def queue_of(stream: Stream):
    """A stream as its device sees it."""
    return machine.device(stream.device).queue(stream.stream_id)


def put(stream: Stream, run, name="test"):
    """Put a kernel of the test's own into a stream."""
    queue = queue_of(stream)
    work = new_work(queue, name, run)
    queue.put(work)
    return work


@contextmanager
def held(*streams: Stream) -> Iterator[None]:
    """A block in which streams are busy."""
    gate = threading.Event()
    try:
        for stream in streams:
            put(stream, lambda: gate.wait(PATIENCE_S))
        yield
    finally:
        gate.set()


class Ear(Probe):
    """Keeps what is reported, by the names of methods."""

    def __init__(self):
        self.heard = []

    def __getattribute__(self, name):
        if name in vars(Probe) and not name.startswith("_"):
            heard = object.__getattribute__(self, "heard")
            return lambda *args: heard.append((name, *args))
        return object.__getattribute__(self, name)

    def of(self, name):
        """The arguments of all reports of a kind."""
        return [args for kind, *args in self.heard if kind == name]
