"""Users' mistakes: the error is clear, and the engine works on (V*, X*)."""

import threading
from typing import Any

import numpy as np
import pytest

from gradviz.backends.device import Device
from gradviz.engine import AccumulateGrad, Edge, Engine, InputMetadata, Node
from gradviz.errors import EngineError
from tests.faults.scene import (
    PLACES,
    Call,
    Leaf,
    new_engine,
    nothing,
    on_thread,
    run,
    run_at,
)


@pytest.mark.parametrize(
    "edges",
    [[("text", 0)], [(3, 0)], [(object(), 0)], [(Node, 0)]],
    ids=["str", "int", "object", "class"],
)
def test_an_edge_to_what_is_no_node_is_an_error(engine: Engine, edges: Any):
    with pytest.raises(TypeError, match="Node"):
        run(engine, Node(edges))


@pytest.mark.parametrize("input_nr", [-1, 1, 7])
def test_an_edge_to_an_input_that_is_not_there_is_an_error(
    engine: Engine, input_nr: int
):
    target = Call(nothing)

    with pytest.raises(IndexError) as caught:
        run(engine, Node([Edge(target, input_nr)]))

    assert f"input {input_nr} of {target!r}, which has 1" in str(caught.value)


def _linked(nodes: list[Call]) -> None:
    """Bend the last node's edge back to the first: no constructor allows that."""
    nodes[-1].next_edges = (Edge(nodes[0], 0),)


@pytest.mark.parametrize("place", PLACES)
def test_a_cycle_is_named(engine: Engine, place: str):
    """A cycle that the root leads into: none of its nodes ever becomes ready."""
    last = Call(nothing)
    middle = Call(nothing, last)
    _linked([middle, last])

    with pytest.raises(RuntimeError, match="cycle") as caught:
        run_at(engine, place, nothing, middle)

    assert repr(middle) in str(caught.value)
    assert repr(last) in str(caught.value)


def test_a_root_in_a_cycle_is_named(engine: Engine):
    last = Call(nothing)
    root = Call(nothing, last)
    _linked([root, last])

    with pytest.raises(RuntimeError, match="cycle"):
        run(engine, root)


def test_a_node_that_leads_to_itself_is_named(engine: Engine):
    node = Call(nothing)
    _linked([node])

    with pytest.raises(RuntimeError, match="cycle"):
        run(engine, node)


@pytest.mark.parametrize(
    "result",
    [5, "text", {1, 2}, iter((1,)), {0: 1}],
    ids=lambda one: type(one).__name__,
)
@pytest.mark.parametrize("place", PLACES)
def test_a_node_must_return_a_sequence(engine: Engine, place: str, result: Any):
    with pytest.raises(TypeError, match="tuple or list"):
        run_at(engine, place, lambda: result, Call(nothing))


@pytest.mark.parametrize("result", [(), (1, 2)])
@pytest.mark.parametrize("place", PLACES)
def test_a_node_must_return_a_gradient_for_each_edge(
    engine: Engine, place: str, result: Any
):
    """V2."""
    with pytest.raises(RuntimeError, match="expected 1, but got"):
        run_at(engine, place, lambda: result, Call(nothing))


class _CannotAdd:
    pass


class _OnlyShape:
    shape = (2,)


@pytest.mark.parametrize("place", PLACES)
def test_gradients_that_cannot_be_added_are_an_error(engine: Engine, place: str):
    join = Call(nothing)

    with pytest.raises(TypeError, match=r"unsupported operand.*\+"):
        run_at(
            engine,
            place,
            lambda: (_CannotAdd(), _CannotAdd()),
            Call(nothing, join),
            Call(nothing, join),
        )


@pytest.mark.parametrize(
    "gradient", [_OnlyShape(), 1.0, "text"], ids=["half", "float", "str"]
)
@pytest.mark.parametrize("place", PLACES)
def test_a_gradient_that_is_no_array_where_one_is_declared_is_an_error(
    engine: Engine, place: str, gradient: Any
):
    node = AccumulateGrad(Leaf(), InputMetadata((2,), np.dtype("float64")))

    with pytest.raises(TypeError, match="expected an array"):
        run_at(engine, place, lambda: (gradient,), node)


@pytest.mark.parametrize(
    ("device", "message"),
    [
        (Device("nowhere", 0), "unknown device 'nowhere:0'"),
        (Device("scene", 99), "no device 'scene:99'"),
    ],
)
def test_a_device_that_is_not_there_is_an_error(
    engine: Engine, device: Device, message: str
):
    with pytest.raises(RuntimeError, match=message):
        run(engine, Call(nothing, Call(nothing, device=device)))


def test_a_stopped_engine_refuses():
    engine = new_engine()
    run_at(engine, "device", nothing)
    engine.stop()
    engine.stop()

    for where in (lambda function: function(), on_thread):
        with pytest.raises(EngineError, match="stopped; make a new Engine"):
            where(lambda: run(engine, Call(nothing)))


def test_a_backward_inside_one_that_stops_its_engine_still_ends(engine: Engine):
    """The pass that is under way is finished, and nothing after it begins."""
    one = new_engine()
    leaf, stopper = Leaf(), threading.Thread(target=one.stop, daemon=True)

    def stop_and_call() -> None:
        stopper.start()
        run(one, Call(nothing, AccumulateGrad(leaf)))

    run(one, Call(stop_and_call))
    stopper.join(60)

    assert leaf.grad == 1
    assert not stopper.is_alive()
    with pytest.raises(EngineError, match="stopped"):
        run(one, Call(nothing))


@pytest.mark.parametrize("name", ["roots", "outputs"])
def test_edges_are_a_sequence_of_pairs(engine: Engine, name: str):
    arguments: dict[str, Any] = {"roots": [Edge(Call(nothing), 0)], "outputs": ()}
    arguments[name] = [3]

    with pytest.raises(TypeError):
        engine.execute(arguments["roots"], [1], outputs=arguments["outputs"])
