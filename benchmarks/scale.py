"""What a node takes in large graphs: time, and memory.

Each case runs in a process of its own (`python -m benchmarks.scale LIBRARY CASE`), for
memory that one has taken is there for the next. Linux only.
"""

import gc
import importlib
import json
import os
import subprocess
import sys
from collections.abc import Callable
from typing import Any, Final, NamedTuple

import numpy as np

from benchmarks.memory import resident
from benchmarks.timing import timed

#: A node in a large graph takes at most so many times what one in a small graph takes.
BUDGET: Final = 1.5

#: Large graphs, each with the small one that it is compared with.
LARGE: Final = {"long": "short", "wide": "narrow"}


class Graph(NamedTuple):
    """A graph to measure.

    Attributes:
        title: For the table.
        num_nodes: How many it has.
        build: Makes it, of a library and a leaf; returns its root.
        rounds: How often it is built; the fastest counts.
    """

    title: str
    num_nodes: int
    build: Callable[[Any, Any], Any]
    rounds: int = 1


class Cost(NamedTuple):
    """What each node of a graph took.

    Attributes:
        forward: Seconds.
        backward: Seconds.
        num_bytes: What the process grew by in the forward; each result is an array of
            four numbers, which most nodes keep.
    """

    forward: float
    backward: float
    num_bytes: float


def _chain(length: int, op: Callable[[Any], Any]) -> Callable[[Any, Any], Any]:
    def build(library: Any, x: Any) -> Any:
        del library
        for _ in range(length):
            x = op(x)
        return x.sum()

    return build


def _fan(width: int) -> Callable[[Any, Any], Any]:
    def build(library: Any, x: Any) -> Any:
        return library.stack([x.sin() for _ in range(width)]).sum()

    return build


GRAPHS: Final = {
    "short": Graph("chain of 2,000 sin", 2_000, _chain(2_000, lambda x: x.sin()), 10),
    "long": Graph("chain of 1,000,000 sin", 10**6, _chain(10**6, lambda x: x.sin())),
    "narrow": Graph("fan of 2,000 sin", 2_000, _fan(2_000), 10),
    "wide": Graph("fan of 100,000 sin", 100_000, _fan(100_000)),
    "one-edge": Graph("chain of 300,000 -x", 300_000, _chain(300_000, lambda x: -x)),
    "two-edges": Graph(
        "chain of 300,000 x + x", 300_000, _chain(300_000, lambda x: x + x)
    ),
}


def cost(library: str, graph: str) -> Cost:
    """Measure one graph, in a process of its own."""
    output = subprocess.run(
        [sys.executable, "-m", "benchmarks.scale", library, graph],
        env=os.environ | {"OMP_NUM_THREADS": "1", "OPENBLAS_NUM_THREADS": "1"},
        check=True,
        capture_output=True,
        text=True,
    ).stdout
    return Cost(*json.loads(output))


def _measure(library: Any, graph: Graph) -> Cost:
    x = library.tensor(np.ones(4)).requires_grad_()
    (x.sin() + -x).sum().backward()  # loads what is needed once
    costs = [_once(library, graph, x) for _ in range(graph.rounds)]
    return Cost(
        min(one.forward for one in costs),
        min(one.backward for one in costs),
        costs[0].num_bytes,  # the others find what the first has freed
    )


def _once(library: Any, graph: Graph, x: Any) -> Cost:
    gc.collect()
    gc.disable()  # or both libraries' times would be those of the collector
    try:
        before = resident("VmRSS")
        made: list[Any] = []
        forward = timed(lambda: made.append(graph.build(library, x)))
        held = resident("VmRSS") - before
        backward = timed(made.pop().backward)
    finally:
        gc.enable()
    each = graph.num_nodes
    return Cost(forward / each, backward / each, held / each)


if __name__ == "__main__":
    print(
        json.dumps(_measure(importlib.import_module(sys.argv[1]), GRAPHS[sys.argv[2]]))
    )
