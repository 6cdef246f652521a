"""Hooks and callbacks that raise, return nonsense, or change what they belong to."""

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

from gradviz.backends.base import copy_to
from gradviz.backends.device import CPU, Device
from gradviz.engine import AccumulateGrad, Engine, Node
from gradviz.engine.graph.node import NodeHooks
from tests.faults.scene import (
    DEVICES,
    PLACES,
    Call,
    Leaf,
    calling,
    nothing,
    run,
    run_at,
)

#: How each kind of hook is registered, and how one behaves that changes nothing.
KINDS = ("tensor_pre", "retains_grad", "pre", "post", "post_accumulate_grad")

#: Of another dtype than the gradient, and on another device.
SINGLE = np.ones(2, np.float32)
ELSEWHERE = copy_to(np.ones(2), Device("sim", 0))


def hook_on(node: Node, kind: str, hook: Callable[..., Any]) -> None:
    """Add `hook` to those of its kind."""
    if kind == "post_accumulate_grad":
        assert isinstance(node, AccumulateGrad)
        node.post_hooks += (hook,)
        return
    hooks = node.hooks = node.hooks or NodeHooks()
    match kind:
        case "tensor_pre":
            hooks.tensor_pre += ((0, hook),)
        case "retains_grad":
            hooks.retains_grad = {0: hook}
        case "pre":
            hooks.pre += (hook,)
        case "post":
            hooks.post += (hook,)


def run_hooked(
    engine: Engine,
    place: str,
    kind: str,
    hook: Callable[..., Any],
    gradient: Any = 1,
    leaf: Leaf | None = None,
) -> None:
    """A backward to a leaf with a hook, on the given kind of thread."""
    node = AccumulateGrad(
        leaf or Leaf(), device=DEVICES[0] if place == "device" else CPU
    )
    hook_on(node, kind, hook)
    run_at(engine, place, lambda: (gradient,), node)


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("place", PLACES)
def test_an_error_that_a_hook_raises_is_raised_by_the_call(
    engine: Engine, place: str, kind: str
):
    """F07."""
    error = KeyboardInterrupt()

    def fail(*values: Any) -> None:
        raise error

    with pytest.raises(KeyboardInterrupt) as caught:
        run_hooked(engine, place, kind, fail)

    assert caught.value is error


@pytest.mark.parametrize(
    ("kind", "result", "message"),
    [
        ("tensor_pre", np.ones(3), "hook 'wrong' has changed the size of value"),
        ("tensor_pre", SINGLE, "hook 'wrong' has changed the type of value"),
        ("tensor_pre", ELSEWHERE, "hook 'wrong' has changed the type of value"),
        ("retains_grad", SINGLE, "hook 'wrong' has changed the type of value"),
        ("pre", (SINGLE,), "hook 'wrong' has changed the type of value"),
        ("pre", (ELSEWHERE,), "hook 'wrong' has changed the type of value"),
        ("tensor_pre", 1.0, "expected Variable, but hook returned 'float'"),
        ("retains_grad", np.ones(3), "hook 'wrong' has changed the size of value"),
        ("pre", (np.ones(3),), "hook 'wrong' has changed the size of value"),
        ("pre", (), "hook 'wrong' has returned an incorrect number of values"),
        ("post", (1, 2), "hook 'wrong' has returned an incorrect number of values"),
        ("post_accumulate_grad", 0, "post accumulate grad hooks should return None"),
    ],
)
@pytest.mark.parametrize("place", PLACES)
def test_an_invalid_return_value_of_a_hook_is_reported(
    engine: Engine, place: str, kind: str, result: Any, message: str
):
    """F07, G16."""

    def wrong(*values: Any) -> Any:
        return result

    with pytest.raises((RuntimeError, TypeError), match=message):
        run_hooked(engine, place, kind, wrong, gradient=np.ones(2))


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("place", PLACES)
def test_a_hook_may_call_backward(engine: Engine, place: str, kind: str):
    """F07."""
    outer, inner = Leaf(), Leaf()

    def call(*values: Any) -> None:
        run(engine, Call(nothing, AccumulateGrad(inner)), 5)

    run_hooked(engine, place, kind, call, leaf=outer)

    assert (outer.grad, inner.grad) == (1, 5)


@pytest.mark.parametrize("kind", ["tensor_pre", "pre", "post_accumulate_grad"])
@pytest.mark.parametrize("place", PLACES)
def test_a_hook_may_register_another_one_and_remove_itself(
    engine: Engine, place: str, kind: str
):
    """F07, E3: who is called was decided when the first of them was."""
    log: list[str] = []
    node = AccumulateGrad(Leaf(), device=DEVICES[0] if place == "device" else CPU)

    def first(*values: Any) -> None:
        log.append("first")
        if kind == "post_accumulate_grad":
            node.post_hooks = ()
        elif node.hooks is not None:
            node.hooks.tensor_pre = ()
            node.hooks.pre = ()
        hook_on(node, kind, second)

    def second(*values: Any) -> None:
        log.append("second")

    hook_on(node, kind, first)
    run_at(engine, place, nothing, node)
    run_at(engine, place, nothing, node)

    assert log == ["first", "second"]


def _queue(engine: Engine, *callbacks: Callable[[], None]) -> Callable[[], None]:
    """A node's function that queues final callbacks."""

    def function() -> None:
        for callback in callbacks:
            engine.queue_callback(callback)

    return function


@pytest.mark.parametrize("position", [0, 1, 2])
@pytest.mark.parametrize("place", PLACES)
def test_the_first_callback_that_raises_is_the_last_one_called(
    engine: Engine, place: str, position: int
):
    """F09, P4."""
    error, log, leaf = ValueError("callback"), [], Leaf()

    def callback(index: int) -> Callable[[], None]:
        def call() -> None:
            log.append(index)
            if index == position:
                raise error

        return call

    with pytest.raises(ValueError, match="callback") as caught:
        run_at(
            engine,
            place,
            _queue(engine, *map(callback, range(3))),
            AccumulateGrad(leaf),
        )

    assert caught.value is error
    assert log == list(range(position + 1))
    assert leaf.grad == 1


@pytest.mark.parametrize("place", PLACES)
def test_a_pass_whose_node_failed_calls_no_callback(engine: Engine, place: str):
    """F09, R5."""
    log: list[str] = []

    def fail() -> None:
        engine.queue_callback(lambda: log.append("called"))
        raise ValueError("node")

    with pytest.raises(ValueError, match="node"):
        run_at(engine, place, fail)

    assert log == []


@pytest.mark.parametrize("place", PLACES)
def test_a_callback_may_queue_callbacks_and_call_backward(engine: Engine, place: str):
    """F09, P2, G7."""
    log: list[str] = []

    def first() -> None:
        engine.queue_callback(lambda: log.append("queued by the first"))
        run(engine, Call(_queue(engine, lambda: log.append("of a backward in it"))))
        log.append("first")

    run_at(engine, place, _queue(engine, first))

    assert log == ["of a backward in it", "first", "queued by the first"]


@pytest.mark.parametrize("place", PLACES)
def test_a_callback_that_fails_in_a_backward_inside_a_callback_fails_both(
    engine: Engine, place: str
):
    """F09."""
    error = ValueError("inner")

    def fail() -> None:
        raise error

    with pytest.raises(ValueError, match="inner") as caught:
        run_at(
            engine,
            place,
            _queue(engine, calling(run, engine, Call(_queue(engine, fail)))),
        )

    assert caught.value is error
