"""Passes of PyTorch's that begin inside of hooks, as they are recorded."""

import random
import threading
from collections.abc import Callable
from typing import Any

import pytest

from gradviz.analysis.findings.check import check_trace
from gradviz.pytorch.nodes.graph_reader import ID_KEY
from gradviz.trace import events as e
from tests.campaigns import IS_FULL
from tests.parity.pytorch_recordings import leaf, of_kind, recorded
from tests.sampled import sampled

torch = pytest.importorskip("torch")

pytestmark = pytest.mark.parity

CHUNK = 50
NUM_PROGRAMS = 100
NUM_STRESS_PROGRAMS = 3_000 if IS_FULL else 1_100

#: PyTorch gives passes that lie deeper than 60 to another thread.
DEEP = 70


class StopHereError(Exception):
    """Error that hooks raise."""


class Program:
    """A random graph with hooks of all kinds, some of which run passes of their own.

    Attributes:
        order: The nodes, in the order in which hooks on every node hear them.
    """

    def __init__(self, seed: int) -> None:
        self.rng = random.Random(seed)
        self.order: list[Any] = []
        self.heard: set[Any] = set()
        self.num_passes = 0
        #: How deep passes lie in each other at most, and whether that is reached.
        self.is_deep = self.rng.random() < 0.03
        self.max_depth = DEEP if self.is_deep else 3
        # PyTorch loses an exception that comes from another thread.
        self.fails = self.rng.random() < 0.2 and not self.is_deep
        self.num_failed = 0
        self.has_failed_hooks = False
        self.leaves = [leaf() for _ in range(self.rng.randint(1, 6))]

    def values(self, max_steps: int, leaves: list[Any]) -> list[Any]:
        """Leaves, and what is computed from them."""
        rng, values = self.rng, list(leaves)
        for _ in range(rng.randint(1, max_steps)):
            one, other = rng.choice(values), rng.choice(values)
            make = rng.choice(
                [
                    lambda a, b: a * b,
                    lambda a, b: a + b,
                    lambda a, b: a.sin() - b,
                    lambda a, b: a.cos(),
                    lambda a, b: torch.stack([a, b]).sum(0),
                ]
            )
            values.append(make(one, other))
        return values

    def run(self, depth: int = 0, max_steps: int = 20) -> None:
        """Build a graph, hook it, and run a pass over it."""
        rng = self.rng
        leaves = [leaf() for _ in range(rng.randint(1, 4))]
        if depth and rng.random() < 0.3:
            leaves += rng.sample(self.leaves, 1)
        with torch.enable_grad():
            values = self.values(max_steps, leaves)
        made = values[len(leaves) :]
        outputs = rng.sample(made, min(len(made), rng.randint(1, 3)))
        nodes = nodes_below(outputs)
        if depth < self.max_depth:
            few = (0,) if self.is_deep else (0, 1, 2, 4)
            for _ in range(rng.choice(few) if depth else rng.randint(1, 5)):
                self.hook(values, nodes, depth)
            if self.is_deep:  # of which it is certain that it runs
                self.hook(outputs[:1], [outputs[0].grad_fn], depth)
        for node in nodes:
            if node not in self.heard:  # as that of a leaf of several graphs may be
                self.heard.add(node)
                node.register_prehook(lambda _, node=node: self.order.append(node))
        self.num_passes += 1
        try:
            self.call(outputs, values)
        except StopHereError:
            self.num_failed += 1

    def call(self, outputs: list[Any], values: list[Any]) -> None:
        ones = [torch.ones_like(output) for output in outputs]
        inputs = self.rng.sample(values, min(len(values), self.rng.randint(1, 3)))
        kind = 0.0 if self.is_deep else self.rng.random()
        if kind < 0.6:
            torch.autograd.backward(outputs, ones)
        elif kind < 0.75:
            torch.autograd.backward(outputs, ones, inputs=inputs)
        else:
            torch.autograd.grad(outputs, inputs, ones, allow_unused=True)

    def hook(self, values: list[Any], nodes: list[Any], depth: int) -> None:
        """Hook something, often with a pass."""
        rng = self.rng

        def hear(*_: Any) -> None:
            for _ in range(1 if self.is_deep else rng.choice((0, 1, 1, 2))):
                self.run(depth + 1, max_steps=3 if self.is_deep else 8)
            if self.fails and rng.random() < 0.2:
                self.has_failed_hooks = True
                raise StopHereError

        kind = rng.randrange(3 if self.is_deep else 5)
        if kind == 0:
            rng.choice(values).register_hook(hear)
        elif kind == 1:  # before the hook that notes the order
            node = rng.choice(nodes)
            if node not in self.heard:
                node.register_prehook(hear)
        elif kind == 2:
            rng.choice(nodes).register_hook(hear)
        elif kind == 3:
            rng.choice(values).retain_grad()
        else:
            found = [value for value in values if value.grad_fn is None]
            rng.choice(found).register_post_accumulate_grad_hook(hear)


def nodes_below(tensors: list[Any]) -> list[Any]:
    found, pending = {}, [one.grad_fn for one in tensors]
    while pending:
        node = pending.pop()
        if node is not None and node not in found:
            found[node] = True
            pending += [after for after, _ in node.next_functions]
    return list(found)


def started_nodes(recording: Any) -> list[int]:
    nodes = recording.trace.nodes
    return [
        event.node
        for event in of_kind(recording, e.NodeStarted)
        if not event.inferred and nodes[event.node].name != "GraphRoot"
    ]


def in_a_thread(run: Callable[[], None]) -> None:
    """Run something on a thread, and so with a queue, of its own."""
    thread = threading.Thread(target=run)
    thread.start()
    thread.join()


def compare_with_hooks(seed: int) -> None:
    program = Program(seed)

    recording = recorded(lambda: in_a_thread(program.run))

    ended = of_kind(recording, e.TaskCompleted, e.TaskFailed)
    assert len(ended) == program.num_passes, f"seed {seed}"
    assert len(of_kind(recording, e.TaskFailed)) == program.num_failed, f"seed {seed}"
    heard = [node.metadata[ID_KEY] for node in program.order]
    assert started_nodes(recording) == heard, f"seed {seed}"
    doubts = [one.text for one in of_kind(recording, e.Unexplained)]
    if program.has_failed_hooks:
        doubts = [text for text in doubts if "failed in a hook" not in text]
    assert not doubts, f"seed {seed}"
    assert not check_trace(recording.trace).history.num_violations, f"seed {seed}"


@pytest.mark.parametrize("first", sampled(range(0, NUM_PROGRAMS, CHUNK), 2))
def test_passes_in_hooks_are_recorded_in_the_order_in_which_hooks_hear_them(first):
    for seed in range(first, first + CHUNK):
        compare_with_hooks(seed)


def test_a_root_whose_hooks_run_first_is_popped_later_by_another_thread():
    """A thread of the pool waits for a root that has hooks before its function."""
    compare_with_hooks(2_730)


@pytest.mark.stress
@pytest.mark.parametrize("first", range(NUM_PROGRAMS, NUM_STRESS_PROGRAMS, 10 * CHUNK))
def test_a_thousand_passes_in_hooks_are_recorded_as_they_are(first):
    for seed in range(first, min(first + 10 * CHUNK, NUM_STRESS_PROGRAMS)):
        compare_with_hooks(seed)
