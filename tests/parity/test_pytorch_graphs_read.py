"""Reading of PyTorch's graphs: each node once, and only what a pass needs."""

import random
import threading
from collections.abc import Callable
from textwrap import dedent, indent
from typing import Any

import pytest

import gradviz as gv
from gradviz.analysis.graphs.backward_graph import build_graph
from gradviz.pytorch.nodes.graph_reader import ID_KEY, _Reader
from gradviz.trace import events as e
from tests.parity.pytorch_recordings import (
    faults,
    leaf,
    of_kind,
    python,
    recorded,
)
from tests.sampled import sampled

torch = pytest.importorskip("torch")

pytestmark = [
    pytest.mark.parity,
    pytest.mark.filterwarnings("ignore:Using backward"),
]


def sizes(recording: Any) -> list[tuple[int, int]]:
    counted = of_kind(recording, e.DependenciesCounted)
    return [(one.num_nodes, one.num_edges) for one in counted]


def started(recording: Any, *, inferred: bool = False) -> list[list[int]]:
    """The nodes that ran in each pass."""
    found: dict[int, list[int]] = {
        one.task: [] for one in of_kind(recording, e.TaskBegun)
    }
    for one in of_kind(recording, e.NodeStarted):
        if one.inferred is inferred:
            found[one.task].append(one.node)
    return list(found.values())


# --- what a pass needs ----------------------------------------------------------------


def inner_steps(num: int, step: Callable[[Any], Any]) -> None:
    history = leaf() * 1.0
    for _ in range(num):
        history = history * 1.0 - 0.1 * step(history)


def of_the_newest_node(history: Any) -> Any:
    w = history * 1.0
    return torch.autograd.grad((w * w).sum(), w, create_graph=True)[0]


def of_a_new_leaf(history: Any) -> Any:
    w = leaf()
    loss = (w * w).sum() + history.sum()
    return torch.autograd.grad(loss, w, create_graph=True)[0]


def into_the_newest_node(history: Any) -> Any:
    w = history * 1.0
    w.retain_grad()
    (w * w * history).sum().backward(inputs=[w], retain_graph=True)
    return w.grad


@pytest.mark.parametrize(
    "step", [of_the_newest_node, of_a_new_leaf, into_the_newest_node]
)
def test_passes_at_the_end_of_a_growing_graph_have_the_same_size(step):
    recording = recorded(lambda: inner_steps(20, step))

    assert len(set(sizes(recording)[2:])) == 1
    assert max(num_nodes for num_nodes, _ in sizes(recording)) <= 8
    assert faults(recording) == []


def test_nodes_beyond_a_pass_are_left_out_of_its_graph():
    recording = recorded(lambda: inner_steps(3, of_the_newest_node))

    for task in recording.trace.tasks:
        names = [node.name for node in build_graph(recording.trace, task).nodes]
        assert names[:3] == ["SumBackward0", "MulBackward0", "MulBackward0"]
        assert "?" not in names


def test_a_path_through_nodes_of_another_thread_is_found():
    """Those have small sequence numbers, though they are newer."""
    made = []
    x = leaf()
    for _ in range(50):
        x = x * 1.0

    thread = threading.Thread(target=lambda: made.append(x.sin().cos()))
    thread.start()
    thread.join()
    recording = recorded(lambda: torch.autograd.grad((made[0] * 2.0).sum(), x))

    names = [recording.trace.nodes[one].name for one in started(recording)[0]]
    assert names == ["SumBackward0", "MulBackward0", "CosBackward0", "SinBackward0"]
    assert faults(recording) == []


def test_two_passes_over_one_graph_on_two_threads_share_its_nodes():
    y = leaf()
    for _ in range(200):
        y = y.sin()
    loss = y.sum()
    barrier = threading.Barrier(2)

    def work() -> None:
        barrier.wait()
        loss.backward(retain_graph=True)

    def program() -> None:
        threads = [threading.Thread(target=work) for _ in range(2)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()

    recording = recorded(program)
    first, second = started(recording)
    assert first == second
    assert len(first) == 202
    assert faults(recording) == []


def passes_over_one_graph(seed: int) -> None:
    rng = random.Random(seed)
    values = [leaf() for _ in range(3)]
    order: list[int] = []

    def hear(value: Any) -> None:
        metadata = value.grad_fn.metadata
        value.grad_fn.register_prehook(lambda _: order.append(metadata[ID_KEY]))

    def one_pass() -> None:
        made = [value for value in values if value.grad_fn is not None]
        inputs = rng.sample(values, rng.randint(1, 2))
        output = rng.choice(made[-5:]).sum()
        if rng.random() < 0.5:
            torch.autograd.grad(output, inputs, retain_graph=True, allow_unused=True)
        else:
            inputs = rng.choice([inputs, None])
            output.backward(retain_graph=True, inputs=inputs)

    def program() -> None:
        for _ in range(10):
            for _ in range(5):
                one, other = rng.choice(values), rng.choice(values[-6:])
                values.append((one * other).sin())
                hear(values[-1])
            one_pass()

    recording = recorded(program)
    heard = set(order)
    ran = [one for several in started(recording) for one in several if one in heard]
    assert ran == order, f"seed {seed}"
    assert faults(recording) == [], f"seed {seed}"


@pytest.mark.parametrize("seed", sampled(range(30), 4))
def test_passes_over_one_growing_graph_are_as_hooks_hear_them(seed):
    passes_over_one_graph(seed)


# --- once -----------------------------------------------------------------------------


@pytest.fixture
def reads(monkeypatch: pytest.MonkeyPatch) -> list[Any]:
    """The nodes that are read."""
    found: list[Any] = []
    describe = _Reader._describe

    def noted(self: Any, function: Any, metadata: Any, node: Any) -> None:
        found.append(node)
        describe(self, function, metadata, node)

    monkeypatch.setattr(_Reader, "_describe", noted)
    return found


@pytest.mark.parametrize(
    "step", [of_the_newest_node, of_a_new_leaf, into_the_newest_node]
)
def test_no_node_is_read_twice(step, reads):
    recorded(lambda: inner_steps(20, step))

    assert len(reads) > 20
    assert len({node.id for node in reads}) == len(reads)


def test_a_node_that_was_drawn_before_it_ran_still_gets_its_module():
    net = torch.nn.Sequential(torch.nn.Linear(3, 3))

    def program() -> None:
        loss = net(torch.ones(3)).sum()
        gv.pytorch.graph(loss)
        loss.backward()

    nodes = recorded(program).trace.nodes.values()
    assert any(node.module.endswith(".0") for node in nodes)
    assert {name for node in nodes for name in node.parameters}


def test_an_interrupted_reading_is_made_up_for(monkeypatch):
    y = leaf()
    for _ in range(10):
        y = y.sin()
    describe, calls = _Reader._describe, iter(range(100))

    def interrupted(*args: Any) -> None:
        if next(calls) == 4:
            raise KeyboardInterrupt
        describe(*args)

    monkeypatch.setattr(_Reader, "_describe", interrupted)
    loss = y.sum()
    with pytest.raises(KeyboardInterrupt):
        gv.pytorch.graph(loss)
    recording = recorded(loss.backward)

    assert sizes(recording) == [(12, 11)]
    assert faults(recording) == []


# --- deep and wide --------------------------------------------------------------------

DEEP = dedent("""
    import threading, torch, gradviz as gv
    torch.set_num_threads(1)
    class Fails(torch.autograd.Function):
        @staticmethod
        def forward(ctx, x): return x * 1
        @staticmethod
        def backward(ctx, grad): raise ValueError("no")
    def deep(x):
        y = x.clone()
        for _ in range(DEPTH):
            y = y * 1.0
        return y
    def wide(x):
        return torch.stack([x * 1.0 for _ in range(DEPTH // 2)]).sum(0)
    def run(y, **options):
        with gv.pytorch.record() as recording:
            y.sum().backward(**options)
        assert recording.counts.tasks == 1
    x = torch.ones(2, requires_grad=True)
""")


PROGRAMS = {
    "run": "run(deep(x))",
    "wide": "run(wide(x))",
    "drawn": "gv.pytorch.graph(deep(x))",
    "create_graph": "run(deep(x), create_graph=True); x.grad = None",
    "retain_graph": "y = deep(x); run(y, retain_graph=True); run(y); del y",
    "raises": """
        try:
            run(deep(Fails.apply(x)))
        except ValueError:
            pass
        """,
    "exit": "y = deep(x); gv.pytorch.graph(y)  # freed as the process ends",
}


def test_deep_graphs_are_read_and_freed_on_a_small_stack(tmp_path):
    lines = "\n".join(map(dedent, PROGRAMS.values()))
    program = f"""DEPTH = 10_000
{DEEP}
def work():
{indent(lines, "    ")}
threading.stack_size(256 << 10)
thread = threading.Thread(target=work)
thread.start()
thread.join()
print("freed")
"""
    result = python(tmp_path, program)

    assert (result.exit_code, result.output) == (0, "freed\n"), result.errors


@pytest.mark.stress
@pytest.mark.parametrize("name", PROGRAMS)
def test_very_deep_graphs_are_read_and_freed(tmp_path, name):
    lines = f"DEPTH = 200_000\n{DEEP}\n{dedent(PROGRAMS[name])}\nprint('freed')"
    result = python(tmp_path, lines)

    assert (result.exit_code, result.output) == (0, "freed\n"), result.errors
