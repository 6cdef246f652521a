"""Simulated and CUDA devices: what overlaps, what a wait and the engine cost."""

from collections.abc import Callable
from typing import Any

import numpy as np

import gradviz as gv
from benchmarks.timing import Contestant, timed

#: Kernels in a run of the overlap.
NUM_KERNELS = 8

#: Waits, and nodes, in a run of the costs.
NUM_UNITS = 500


def overlap(device: str, other: str) -> dict[str, Contestant]:
    """The same kernels on one device, and shared by two."""

    def work(devices: tuple[str, ...]) -> Contestant:
        inputs = [gv.tensor(np.arange(200_000.0), device=name) for name in devices]

        def run() -> None:
            for number in range(NUM_KERNELS):
                inputs[number % len(inputs)].sin()
            for name in devices:
                gv.synchronize(name)

        return lambda: timed(run)

    return {"two devices": work((device, other)), "one device": work((device,))}


def launches(device: str) -> Contestant:
    """Kernels that are launched, one after the other, and not waited for."""
    x = gv.tensor(np.ones(4), device=device)

    def run() -> float:
        def launch() -> None:
            for _ in range(NUM_UNITS):
                x.neg()

        seconds = timed(launch)
        gv.synchronize(device)
        return seconds

    return run


def waits(device: str) -> Contestant:
    """One stream waits for another, over and over."""
    streams = gv.Stream(device), gv.Stream(device)

    def run() -> None:
        for number in range(NUM_UNITS):
            streams[number % 2].wait_stream(streams[1 - number % 2])
        gv.synchronize(device)

    return lambda: timed(run)


def backward_of_chain(library: Any, device: str) -> Contestant:
    """The backward of a chain of `sin`: the engine and the kernels."""
    x = library.tensor(np.arange(4.0), device=device, requires_grad=True)
    seed = library.tensor(np.ones(4), device=device)
    synchronize = synchronizing(library, device)

    def run() -> float:
        y = x
        for _ in range(NUM_UNITS):
            y = y.sin()
        synchronize()

        def backward() -> None:
            y.backward(seed)
            synchronize()

        return timed(backward)

    return run


def kernels_of_chain(library: Any, device: str) -> Contestant:
    """The kernels of that backward and nothing else."""
    x = library.tensor(np.arange(4.0), device=device)
    array = x.array if library is gv else x
    cos = np.cos if library is gv else library.cos
    synchronize = synchronizing(library, device)

    def run() -> None:
        gradient = array
        for _ in range(NUM_UNITS):
            gradient = gradient * cos(array)
        synchronize()

    return lambda: timed(run)


def synchronizing(library: Any, device: str) -> Callable[[], object]:
    """Waits for a device."""
    if device.startswith("cpu"):
        return lambda: None
    if library is gv:
        return lambda: gv.synchronize(device)
    return lambda: library.cuda.synchronize(device)
