"""How a pass ends: final callbacks, and errors in them."""

from typing import Any

import pytest

from gradviz.engine import Engine
from gradviz.engine.grad_mode import GRAD_ENABLED
from tests.engine.nodes import (
    PLACES,
    SIM_0,
    Call,
    Pass,
    Sink,
    raiser,
    run_at,
)


def queueing(engine: Engine, *callbacks: Any) -> Any:
    """What a node runs that queues `callbacks`."""

    def apply(grad: Any) -> Any:
        for callback in callbacks:
            engine.queue_callback(callback)
        return ()

    return apply


def logging(log: list[str], text: str) -> Any:
    return lambda: log.append(text)


def test_a_callback_runs_after_the_last_node_and_before_the_call_returns(
    engine: Engine,
):
    """P2, G7."""
    log: list[str] = []
    older = Pass(log=log, label="older")
    newer = Call(queueing(engine, logging(log, "callback")))

    engine.execute([(Pass(older, newer), 0)], [1])

    assert log == ["older", "callback"]


@pytest.mark.parametrize("place", PLACES)
def test_callbacks_run_in_the_order_they_were_queued(engine: Engine, place: str):
    """P2: on every kind of thread."""
    log: list[str] = []

    run_at(
        engine, place, queueing(engine, logging(log, "first"), logging(log, "second"))
    )

    assert log == ["first", "second"]


def test_a_callback_may_queue_another_which_runs_as_well(engine: Engine):
    """P2, G7: the list may grow while it is walked."""
    log: list[Any] = []

    def first() -> None:
        log.append(engine.current_graph_task)
        engine.queue_callback(lambda: log.append(engine.current_graph_task))

    root = Call(queueing(engine, first))
    engine.execute([(root, 0)], [1])

    assert log[0] is log[1] is not None
    assert engine.current_graph_task is None


def test_callbacks_belong_to_the_pass_that_queued_them(engine: Engine):
    """P3, G7, T6: the inner one's runs when the inner pass ends."""
    log: list[str] = []

    def apply(grad: Any) -> Any:
        engine.queue_callback(logging(log, "outer callback"))
        inner = Call(queueing(engine, logging(log, "inner callback")))
        engine.execute([(inner, 0)], [1])
        log.append("inner returned")
        return ()

    engine.execute([(Call(apply), 0)], [1])

    assert log == ["inner callback", "inner returned", "outer callback"]


def test_outside_a_backward_nothing_can_be_queued(engine: Engine):
    """P3."""
    with pytest.raises(RuntimeError) as caught:
        engine.queue_callback(lambda: None)

    assert str(caught.value) == (
        "Final callbacks can only be installed during backward pass."
    )


def test_no_callback_runs_when_a_node_failed(engine: Engine):
    """R5, G7."""
    log: list[str] = []
    failing = Call(raiser(ValueError("mine")))
    newer = Call(queueing(engine, logging(log, "callback")))

    with pytest.raises(ValueError, match="mine"):
        engine.execute([(Pass(failing, newer), 0)], [1])

    assert log == []


@pytest.mark.parametrize("place", PLACES)
@pytest.mark.parametrize("kind", [ValueError, KeyboardInterrupt, SystemExit])
def test_an_error_of_a_callback_reaches_the_caller_and_ends_the_rest(
    engine: Engine, place: str, kind: type[BaseException]
):
    """P4, F09: from every kind of thread, and the engine works afterwards."""
    log: list[str] = []
    error = kind("mine")

    with pytest.raises(kind) as caught:
        run_at(
            engine,
            place,
            queueing(
                engine, logging(log, "first"), raiser(error), logging(log, "third")
            ),
        )

    assert caught.value is error
    assert log == ["first"]
    sink = Sink(device=SIM_0)
    engine.execute([(sink, 0)], [1])
    assert sink.received == [(1,)]


@pytest.mark.parametrize("place", PLACES)
def test_a_callback_may_call_backward(engine: Engine, place: str):
    """F09."""
    sink = Sink()

    run_at(
        engine, place, queueing(engine, lambda: engine.execute([(Pass(sink), 0)], [5]))
    )

    assert sink.received == [(5,)]


@pytest.mark.parametrize("place", PLACES)
@pytest.mark.parametrize("create_graph", [True, False])
def test_gradient_mode_in_a_callback_is_that_of_the_pass(
    engine: Engine, place: str, create_graph: bool
):
    """P2: with the state of the pass's nodes restored."""
    modes: list[bool] = []
    out = Sink()

    def apply(grad: Any) -> Any:
        engine.queue_callback(lambda: modes.append(GRAD_ENABLED.get()))
        return (grad,)

    def grad_of_out(grad: Any) -> Any:
        node = Call(apply, out)
        if place == "device":
            node.runs_on = SIM_0
        engine.execute(
            [(node, 0)],
            [1],
            create_graph=create_graph,
            accumulate_grad=False,
            outputs=[(out, 0)],
        )
        return ()

    if place == "pool":
        run_at(engine, place, grad_of_out)
    else:
        grad_of_out(1)

    assert modes == [create_graph]
    assert GRAD_ENABLED.get() is True


def test_a_callback_sees_the_results_of_the_whole_pass(engine: Engine):
    """P2: also those that came from devices."""
    seen: list[Any] = []
    on_device = Sink(device=SIM_0)
    root = Call(
        lambda grad: (
            engine.queue_callback(lambda: seen.extend(on_device.received)) or (grad,)
        ),
        on_device,
    )

    engine.execute([(root, 0)], [7])

    assert seen == [(7,)]
