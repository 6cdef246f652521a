"""Steps of a training with the garbage collector at work, as it is in programs.

All other cases run without it, so that a collection does not fall upon whoever comes
first. But a graph in Python is objects that the collector knows, and a recording's wait
to be written: what that costs is seen here only.
"""

import contextlib
import gc
from types import ModuleType

import numpy as np

import gradviz
from benchmarks.cases import as_tensor, mlp
from benchmarks.timing import Contestant, timed

#: Steps of each round; in so many there are a few full collections.
STEPS = 100

#: Nodes of the chain.
NUM_NODES = 300


def chain(library: ModuleType) -> Contestant:
    """Forward and backward of 300 `sin` on 4 numbers."""
    x = as_tensor(library, np.arange(4.0), wants_grad=True)
    seed = as_tensor(library, np.ones(4), wants_grad=False)

    def step() -> None:
        y = x
        for _ in range(NUM_NODES):
            y = y.sin()
        y.backward(seed)

    return lambda: timed(step)


def small_mlp(library: ModuleType) -> Contestant:
    """The case of that name."""
    return mlp(library, batch=8, width=16, layers=50)


#: What is done, and how it is called.
STEPS_OF = {"chain of 300, a step": chain, "small MLP, a step": small_mlp}


def collecting(step: Contestant, *, is_recorded: bool = False) -> Contestant:
    """The mean of many steps with the collector at work, all in one recording if so."""

    def contestant() -> float:
        with gradviz.record() if is_recorded else contextlib.nullcontext():
            gc.enable()
            try:
                return sum(step() for _ in range(STEPS)) / STEPS
            finally:
                gc.disable()

    return contestant
