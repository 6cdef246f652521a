"""The engine against PyTorch's, on graphs that nobody has thought of.

Custom nodes with the same edges in both: what is compared is the engine alone. A seed
that fails is a test of its own: ``compare(seed)``.
"""

import pytest

from gradviz.analysis.nodes.execution_order import execution_order
from gradviz.capture import session
from gradviz.trace.events import TaskCompleted
from tests.campaigns import IS_FULL
from tests.parity.graphs import MAX_FAN, Flaw, Kind, random_graph
from tests.parity.running import Foreseen, run
from tests.parity.worlds import GRADVIZ, TORCH
from tests.sampled import sampled

pytestmark = [
    pytest.mark.parity,
    pytest.mark.filterwarnings("ignore:Using backward"),
]

CHUNK = 40
NUM_GRAPHS = 160
NUM_STRESS_GRAPHS = 2_960 if IS_FULL else 1_360


def compare(seed: int) -> None:
    graph = random_graph(seed)
    theirs, foreseen = run(TORCH, graph)
    ours, predicted = run(GRADVIZ, graph)

    assert ours == theirs, f"seed {seed}"
    assert foresight(predicted) == foresight(foreseen), f"seed {seed}"


def foresight(foreseen: dict[int, Foreseen]) -> dict[int, list[str]]:
    """The orders foreseen of passes with one root; PyTorch errs on several."""
    return {task: one.labels for task, one in foreseen.items() if one.num_roots == 1}


def compare_with_trace(seed: int) -> int:
    """Compare a recorded run with one that is not; returns how many orders it did."""
    graph = random_graph(seed)
    unwatched, _ = run(GRADVIZ, graph)
    with session.record() as recording:
        watched, predicted = run(GRADVIZ, graph)

    assert watched == unwatched, f"seed {seed}"
    if any(step.inner for step in graph.steps):
        return 0  # passes that share a queue change the order of each other's ties
    trace = recording.trace
    completed = {e.task for e in trace.events() if isinstance(e, TaskCompleted)}
    orders = [one for one in predicted.values() if one.task in completed]
    for one in orders:
        rows = execution_order(trace, one.task)
        started = [row.node for row in rows if row.name != "GraphRoot"]
        assert started == [node.id for node in one.nodes], f"seed {seed}"
    return len(orders)


@pytest.mark.parametrize("first", sampled(range(0, NUM_GRAPHS, CHUNK), 2))
def test_a_random_graph_runs_as_in_pytorch(first):
    for seed in range(first, first + CHUNK):
        compare(seed)


@pytest.mark.parametrize("first", sampled(range(0, NUM_GRAPHS, CHUNK), 2))
def test_a_random_graph_runs_as_predicted_and_as_traced(first):
    counts = [compare_with_trace(seed) for seed in range(first, first + CHUNK)]

    assert sum(counts) > CHUNK / 2


@pytest.mark.stress
@pytest.mark.parametrize("first", range(NUM_GRAPHS, NUM_STRESS_GRAPHS, 10 * CHUNK))
def test_a_thousand_random_graphs_run_as_in_pytorch(first):
    for seed in range(first, first + 10 * CHUNK):
        compare(seed)
        compare_with_trace(seed)


def test_random_graphs_are_as_varied_as_they_should_be():
    graphs = [random_graph(seed) for seed in range(NUM_GRAPHS)]
    steps = [step for graph in graphs for step in graph.steps]
    hooks = [hook for graph in graphs for hook in graph.hooks]
    passes = [one for graph in graphs for one in graph.passes]

    assert max(graph.depth() for graph in graphs) >= 50
    assert max(graph.fan_out() for graph in graphs) >= MAX_FAN
    assert {step.flaw for step in steps} == {None, *Flaw}
    assert {hook.kind for hook in hooks} == set(Kind)
    assert any(step.inner and step.inner.borrowed for step in steps)
    assert any(None in step.weights for step in steps)
    assert any(len(one.roots) > 1 for one in passes)
    assert any(one.inputs and not one.is_grad for one in passes)
    assert any(one.create_graph for one in passes)
