"""Graphs deeper, wider and busier than anybody's (F16-F19)."""

import gc
import math
import sys
import threading
from collections.abc import Callable, Iterator
from typing import Any

import pytest

from gradviz.backends.device import CPU
from gradviz.engine import AccumulateGrad, Engine
from tests.campaigns import IS_FULL
from tests.faults.scene import (
    DEVICES,
    Call,
    Leaf,
    assert_works,
    nothing,
    run,
    run_nested,
)

pytestmark = pytest.mark.stress

MILLION = 1_000_000


@pytest.fixture
def engine() -> Iterator[Engine]:
    """An engine as users have it, with PyTorch's depth limit."""
    one = Engine()
    yield one
    assert_works(one)
    one.stop()


def on_small_stack(function: Callable[[], Any]) -> Any:
    """Run `function` on a thread with a stack of 512 KiB.

    On Python 3.13 of 1 MiB: with less it crashes while it frees any long chain.
    """
    outcome: list[Any] = []
    outer = threading.stack_size((1024 if sys.version_info >= (3, 13) else 512) * 1024)
    try:
        thread = threading.Thread(target=lambda: outcome.append(function()))
        thread.start()
    finally:
        threading.stack_size(outer)
    thread.join()
    return outcome[0]


def chain(length: int, leaf: Leaf) -> Call:
    node: Any = AccumulateGrad(leaf)
    for _ in range(length):
        node = Call(nothing, node)
    return node


def test_a_chain_of_a_million_nodes_runs_and_is_freed_without_recursion(
    engine: Engine,
):
    """F16: by reference counts, on a small stack."""
    leaf = Leaf()

    def backward() -> None:
        root = chain(MILLION, leaf)
        run(engine, root)
        assert repr(root)

    on_small_stack(backward)

    assert leaf.grad == 1


def test_the_collector_frees_a_chain_of_a_million_nodes(engine: Engine):
    """F16: one that is part of a cycle, so that nothing else can free it."""

    class Owner(Leaf):
        root: Any = None

    def backward() -> Any:
        leaf = Owner()
        leaf.root = chain(MILLION, leaf)
        run(engine, leaf.root)
        return leaf.grad

    gc.collect()

    assert on_small_stack(backward) == 1
    assert on_small_stack(gc.collect) > MILLION


def test_ten_thousand_ways_in_and_out_over_five_threads_are_exact(engine: Engine):
    """F17."""
    leaf = Leaf()
    join = AccumulateGrad(leaf)
    places = (CPU, *DEVICES[:4])
    middle = [Call(nothing, join, device=places[i % 5]) for i in range(10_000)]

    for _ in range(3):
        run(engine, Call(nothing, *middle), 7)

    assert leaf.grad == 3 * 70_000


@pytest.mark.parametrize("depth", [59, 60, 61, 62, 121, 1_000, 2_000, 8_193])
def test_nested_backwards_need_a_thread_for_each_sixty_one(engine: Engine, depth: int):
    """F19, G2: and a second run needs no further one."""
    limit = sys.getrecursionlimit()
    leaf = Leaf()

    def nest() -> None:
        run_nested(engine, depth, nothing, AccumulateGrad(leaf))

    sys.setrecursionlimit(100_000)
    try:
        nest()
        num_threads = engine.num_pool_threads
        nest()
    finally:
        sys.setrecursionlimit(limit)

    assert leaf.grad == 2
    assert num_threads == max(0, math.ceil((depth - 60) / 61))
    assert engine.num_pool_threads == num_threads


def test_an_error_at_the_bottom_of_two_thousand_backwards_reaches_the_top(
    engine: Engine,
):
    """F19: on two threads at once."""
    errors: list[BaseException] = []

    def fail() -> None:
        raise ValueError("at the bottom")

    def nest() -> None:
        try:
            run_nested(engine, 2_000, fail)
        except ValueError as error:
            errors.append(error)

    threads = [threading.Thread(target=nest) for _ in range(2)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()

    assert [str(error) for error in errors] == ["at the bottom"] * 2


@pytest.mark.parametrize("repetition", range(1_000 if IS_FULL else 20))
def test_sixty_four_backwards_at_once_on_one_graph_are_exact(
    engine: Engine, repetition: int
):
    """F18."""
    leaf = Leaf()
    join = AccumulateGrad(leaf)
    middle = [Call(nothing, join, device=place) for place in (CPU, *DEVICES[:2])]
    roots = [Call(nothing, *middle) for _ in range(8)]
    together = threading.Barrier(64)

    def backward(index: int) -> None:
        together.wait()
        run(engine, roots[index % 8], index, keep_graph=True)

    threads = [threading.Thread(target=backward, args=(i,)) for i in range(64)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()

    assert leaf.grad == 3 * sum(range(64))
