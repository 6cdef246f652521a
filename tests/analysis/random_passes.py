"""Passes over random graphs, on the caller's thread and those of simulated devices."""

import contextlib
import random

import pytest

from gradviz import sim
from gradviz.backends.device import Device
from gradviz.capture.session import record
from gradviz.engine import Edge, Engine, Node


class Work(Node):
    """Hands its gradient on, after a while, and perhaps after a pass of its own."""

    fails = False

    def __init__(self, receivers, device, rounds, engine, inner=None):
        super().__init__([Edge(one) for one in receivers], device=device)
        self.rounds, self.engine, self.inner = rounds, engine, inner

    def apply(self, grad):
        if self.fails:
            raise ArithmeticError("it fails")
        sum(range(self.rounds))
        if self.inner is not None:
            self.engine.execute([Edge(self.inner)], [1.0])
            sum(range(self.rounds))
        return (grad,) * len(self.next_edges)


def graph(rng, engine, num_devices, size, depth=0):
    """The root of a random graph of so many nodes."""
    devices = [Device("cpu"), *(Device("sim", number) for number in range(num_devices))]
    nodes = []
    for _ in range(size):
        receivers = rng.sample(nodes[-6:], min(len(nodes), rng.randint(0, 3)))
        inner = None
        if depth < 2 and rng.random() < 0.08:
            inner = graph(rng, engine, num_devices, 5, depth + 1)
        device, rounds = rng.choice(devices), rng.choice((1, 50, 3_000))
        nodes.append(Work(receivers, device, rounds, engine, inner))
    used = {edge.node for node in nodes for edge in node.next_edges}
    loose = [node for node in nodes if node not in used]
    return Work(loose, devices[0], 10, engine)


def random_trace(seed, num_devices, size=40, *, fails=False, path=None):
    """The trace of one pass, and of those inside of it; perhaps one that fails."""
    rng, engine = random.Random(seed), Engine()
    count = sim.device_count()
    sim.set_device_count(max(num_devices, 1))
    try:
        root = graph(rng, engine, num_devices, size)
        if fails:
            below = [root]
            for node in below:
                below += [one.node for one in node.next_edges if one.node not in below]
            rng.choice(below).fails = True
        failing = pytest.raises(ArithmeticError) if fails else contextlib.nullcontext()
        with record(path) as recording, failing:
            engine.execute([Edge(root)], [1.0])
    finally:
        engine.stop()
        sim.set_device_count(count)
    return recording.trace
