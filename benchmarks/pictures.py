"""How long pictures of large graphs take, beside Graphviz's ``dot`` on the same graph.

Each picture is drawn in a process of its own (`python -m benchmarks.pictures ENGINE
TRACE`), since the peak of memory is a process's. Every node is drawn, also where the
command would leave some out: what a picture collapses unless it is told otherwise would
be no measure.
"""

import random
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterator
from functools import partial
from pathlib import Path
from typing import Final, NamedTuple

import gradviz as gv
from benchmarks.memory import resident
from gradviz.analysis.graphs.backward_graph import MAX_SIMPLIFIED, build_graph
from gradviz.analysis.graphs.simplification import split_shared_leaves
from gradviz.errors import RenderTimeoutError
from gradviz.render.graph.graph_picture import render_graph
from gradviz.trace.reading.reader import load_trace

#: What ``dot`` is given for a picture.
DOT_S: Final = 100.0

#: Nodes of the backward pass of a transformer's layer, about.
_OF_A_LAYER: Final = 54


class Drawn(NamedTuple):
    """What a picture took.

    Attributes:
        case: Of what.
        num_nodes: How many nodes its graph has.
        took_s: Seconds from the trace to the SVG, loading apart.
        budget_s: The most that it may be.
        peak_bytes: The most memory that the process had.
        dot_s: Seconds of ``dot`` for the same; None if it was stopped.
    """

    case: str
    num_nodes: int
    took_s: float
    budget_s: float | None
    peak_bytes: int
    dot_s: float | None


class Case(NamedTuple):
    """A graph to draw.

    Attributes:
        backward: Runs its backward pass.
        budget_s: The most that its picture may take.
        has_dot: Whether ``dot`` has a chance within `DOT_S`.
    """

    backward: Callable[[], None]
    budget_s: float | None
    has_dot: bool = True


def pictures() -> Iterator[Drawn]:
    """All of them; takes some minutes."""
    with tempfile.TemporaryDirectory() as folder:
        for name, case in CASES.items():
            trace = Path(folder, "large.gvt")
            trace.unlink(missing_ok=True)
            with gv.record(trace):
                case.backward()
            num_nodes, took_s, peak = _drawn("own", trace)
            dot_s = _drawn("dot", trace)[1] if case.has_dot else float("inf")
            dot = dot_s if dot_s < DOT_S else None
            yield Drawn(name, int(num_nodes), took_s, case.budget_s, int(peak), dot)


def rnn(steps: int) -> None:
    """One cell, whose weights every step uses."""
    cell = gv.nn.RNNCell(8, 8)
    h = gv.zeros(1, 8)
    for _ in range(steps):
        h = cell(gv.ones(1, 8), h)
    h.sum().backward()


def transformer(num_nodes: int) -> None:
    """Encoder layers, one after the other."""
    layers = max(1, num_nodes // _OF_A_LAYER)
    model = gv.nn.Sequential(
        *(
            gv.nn.TransformerEncoderLayer(4, 2, 8, dropout=0.0, batch_first=True)
            for _ in range(layers)
        )
    )
    model(gv.ones(1, 2, 4)).sum().backward()


def hubs(num_sums: int) -> None:
    """Sums of random earlier values, each of them times one of five leaves."""
    choose = random.Random(0)
    leaves = [gv.ones(1, requires_grad=True) for _ in range(5)]
    values = list(leaves)
    for _ in range(num_sums):
        one, other = choose.choices(values[-20:], k=2)
        values.append(one * choose.choice(leaves) + other)
    gv.stack(values[-20:]).sum().backward()


CASES: Final = {
    "an RNN of 250 steps": Case(partial(rnn, 250), 1.0),
    "a transformer of 1,000 nodes": Case(partial(transformer, 1_000), None),
    "a transformer of 10,000 nodes": Case(partial(transformer, 10_000), 2.0),
    "a transformer of 100,000 nodes": Case(
        partial(transformer, 100_000), 5.0, has_dot=False
    ),
    "a random graph with hubs, 1,000 nodes": Case(partial(hubs, 600), None),
    "a random graph with hubs, 10,000 nodes": Case(partial(hubs, 6_000), 2.0),
    "a random graph with hubs, 100,000 nodes": Case(
        partial(hubs, 60_000), 5.0, has_dot=False
    ),
}


def _drawn(engine: str, trace: Path) -> tuple[float, float, float]:
    """How many nodes, seconds, and the peak of memory."""
    command = [sys.executable, "-m", "benchmarks.pictures", engine, str(trace)]
    output = subprocess.run(command, check=True, capture_output=True, text=True).stdout
    nodes, took, peak = map(float, output.split())
    return nodes, took, peak


def _draw(engine: str, path: Path) -> None:
    trace = load_trace(path)
    begin = time.perf_counter()
    graph = split_shared_leaves(
        build_graph(trace, next(iter(trace.tasks)), MAX_SIMPLIFIED)
    )
    took = float("inf")
    try:
        render_graph(graph, engine="dot" if engine == "dot" else "own", timeout_s=DOT_S)
        took = time.perf_counter() - begin
    except RenderTimeoutError:
        pass
    print(graph.num_nodes, took, resident("VmHWM"))


if __name__ == "__main__":
    _draw(sys.argv[1], Path(sys.argv[2]))
