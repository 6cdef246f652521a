"""Counting what is left behind."""

import contextlib
import gc
from collections.abc import Callable
from pathlib import Path

from gradviz.backends.device import CPU
from gradviz.engine import AccumulateGrad, Engine
from tests.faults.scene import (
    DEVICES,
    PLACES,
    Call,
    Leaf,
    nothing,
    run,
    run_at,
)

#: So many objects more or less depend on how far a thread has come, not on how many
#: passes there were.
NOISE = 20


def ok_and_failing(engine: Engine) -> None:
    """Passes over every kind of thread, and for each one that fails there.

    Nothing of the test's own refers to itself, so that what does is the engine's.
    """
    leaf = AccumulateGrad(Leaf())
    branches = [Call(nothing, leaf, device=device) for device in (CPU, *DEVICES[:2])]
    run(engine, Call(nothing, *branches))
    for place in PLACES:
        run_at(engine, place, nothing)
        with contextlib.suppress(ValueError):
            run_at(engine, place, fail, leaf)


def fail() -> None:
    raise ValueError("on purpose")


def growth(engine: Engine, passes: Callable[[Engine], None], count: int) -> int:
    """Return the number of objects that `count` times `passes` leave behind.

    The collector must be off: what only it can free counts.
    """
    for _ in range(5):
        passes(engine)
    gc.collect()
    before = len(gc.get_objects())
    for _ in range(count):
        passes(engine)
    return len(gc.get_objects()) - before


def num_files() -> int:
    """Return the number of files that this process has open."""
    return sum(1 for _ in Path("/proc/self/fd").iterdir())


def num_system_threads() -> int:
    """Return the number of threads of this process, even those Python forgot."""
    return sum(1 for _ in Path("/proc/self/task").iterdir())
