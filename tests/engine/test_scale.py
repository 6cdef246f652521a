"""Graphs that are deep, wide, or used by many at once."""

import gc
import sys
import threading
import weakref

import pytest

from gradviz.engine import AccumulateGrad, Engine, Node
from tests.engine.nodes import (
    PATIENCE_SECONDS,
    SIM_0,
    SIM_1,
    Leaf,
    Pass,
    Sink,
    start_thread,
)


class Step(Node):
    """Adds one: as small as a node can be."""

    __slots__ = ()

    def apply(self, grad: int) -> tuple[int]:
        return (grad + 1,)


def chain(end: Node, length: int) -> Node:
    node = end
    for _ in range(length):
        node = Step([(node, 0)])
    return node


@pytest.fixture
def small_stacks():
    """Threads that begin now have a stack of 512 KiB, as on macOS.

    On Python 3.13 of 1 MiB: with less it crashes while it frees any long chain.
    """
    before = threading.stack_size((1024 if sys.version_info >= (3, 13) else 512) * 1024)
    yield
    threading.stack_size(before)


@pytest.mark.usefixtures("small_stacks")
def test_a_chain_of_100_000_nodes_runs_and_is_freed_on_a_small_stack(engine: Engine):
    """N5, F16: nothing recurses with the depth of a graph."""

    def backward() -> tuple[object, bool]:
        sink = Sink()
        root = chain(sink, 100_000)
        ref = weakref.ref(root)
        engine.execute([(root, 0)], [1])
        del root
        return sink.received, ref() is None

    gc.disable()
    try:
        assert start_thread(backward).result(60) == ([(100_001,)], True)
    finally:
        gc.enable()


def test_a_deep_restricted_pass_needs_no_recursion_either(engine: Engine):
    """I4, N5: exec info of a chain."""
    sink = Sink()

    captured = engine.execute(
        [(chain(sink, 20_000), 0)], [1], accumulate_grad=False, outputs=[(sink, 0)]
    )

    assert captured == (20_001,)


def test_a_deep_cycle_is_found_without_recursion(engine: Engine):
    first = Step()
    root = chain(first, 5_000)
    first.next_edges = root.next_edges

    with pytest.raises(RuntimeError, match="the graph has a cycle"):
        engine.execute([(root, 0)], [1])


@pytest.mark.parametrize("devices", [(), (SIM_0, SIM_1)], ids=["caller", "devices"])
def test_ten_thousand_ways_into_one_leaf_sum_exactly(
    engine: Engine, devices: tuple[object, ...]
):
    """F17: fan-out and fan-in."""
    leaf = Leaf()
    node = AccumulateGrad(leaf)
    ways = [
        Pass(node, factor=number)
        if not devices
        else Pass(node, factor=number, device=devices[number % len(devices)])
        for number in range(10_000)
    ]

    engine.execute([(Pass(*ways), 0)], [1])

    assert leaf.grad == sum(range(10_000))


def test_64_passes_at_once_over_one_graph_sum_exactly(engine: Engine):
    """F18, N4."""
    leaf = Leaf()
    shared = Pass(AccumulateGrad(leaf))
    root = Pass(*(Pass(shared) for _ in range(5)))

    futures = [
        start_thread(lambda: engine.execute([(root, 0)], [1], keep_graph=True))
        for _ in range(64)
    ]
    for future in futures:
        future.result(PATIENCE_SECONDS)

    assert leaf.grad == 64 * 5
