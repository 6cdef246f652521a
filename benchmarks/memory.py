"""How much memory a backward needs on top of what the forward left.

Each library runs in a process of its own (`python -m benchmarks.memory LIBRARY`), since
the peak of a process cannot be told apart by who caused it. Linux only: elsewhere
nobody resets the peak.
"""

import importlib
import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import numpy as np

#: How many tanh are in the chain.
LENGTH = 30

#: Elements of the tensor, 4 bytes each.
SIZE = 1 << 20

#: Freed blocks of this size and more go back to the system at once, so that resident
#: memory is what is in use.
_RETURN_FREED = {"MALLOC_MMAP_THRESHOLD_": "65536"}


def extra_tensors(library: str) -> float:
    """The peak of the backward above the forward's end, in tensors of the chain."""
    output = subprocess.run(
        [sys.executable, "-m", "benchmarks.memory", library],
        env=os.environ | _RETURN_FREED,
        check=True,
        capture_output=True,
        text=True,
    ).stdout
    return float(output) / (4 * SIZE)


def _measure(library: Any) -> int:
    """Run the chain; returns the bytes by which the backward's peak was higher."""
    x = library.tensor(np.ones(SIZE, np.float32)).requires_grad_()
    for _ in range(2):  # the first loads and allocates what is needed once
        y = x
        for _ in range(LENGTH):
            y = y.tanh()
        loss = y.sum()
        x.grad = None
        before = resident("VmRSS")
        Path("/proc/self/clear_refs").write_text("5")  # the peak starts here
        loss.backward()
        peak = resident("VmHWM")
    return peak - before


def resident(field: str) -> int:
    """A field of this process's status, in bytes."""
    for line in Path("/proc/self/status").read_text().splitlines():
        name, _, value = line.partition(":")
        if name == field:
            return int(value.split()[0]) * 1024
    raise RuntimeError(f"/proc/self/status has no {field}")


if __name__ == "__main__":
    print(_measure(importlib.import_module(sys.argv[1])))
