"""The order of a pass, known before it runs."""

from typing import Any

import pytest

from gradviz.engine import AccumulateGrad, Engine, Node
from gradviz.engine.graph.grad_mode import MULTITHREADING_ENABLED
from gradviz.engine.prediction import predicted_order
from gradviz.named_orders import FifoSchedule
from gradviz.trace import probe
from tests.engine.nodes import SIM_0, SIM_1, Call, Leaf, Listener, Pass, Sink


def graph(width: int = 7) -> Node:
    """Leaves that tie, nodes shared by several, and edges that lead nowhere."""
    leaves = [AccumulateGrad(Leaf()) for _ in range(width)]
    middle = [
        Pass(leaf, None, leaves[number // 2]) for number, leaf in enumerate(leaves)
    ]
    return Pass(*middle[::2], Pass(*middle[1::2]), *leaves)


def executed(engine: Engine, root: Node, **settings: Any) -> list[int]:
    listener = Listener()
    with probe.installed(listener):
        engine.execute([(root, 0)], [1], **settings)
    return listener.of("node_started", "node")


def predicted(root: Node, **settings: Any) -> list[int]:
    order = predicted_order([(root, 0)], **settings)
    return [position.node.id for position in order]


@pytest.mark.parametrize("width", range(1, 12))
def test_the_predicted_order_is_the_order_of_execution(engine: Engine, width: int):
    """C2, Q4: ties of leaves included."""
    root = graph(width)

    assert predicted(root) == executed(engine, root)


def test_a_restricted_pass_is_predicted_as_well(engine: Engine):
    """I2-I6."""
    wanted = Sink()
    root = Pass(Pass(wanted), Pass(Sink()), wanted)
    settings = {"outputs": [(wanted, 0)], "accumulate_grad": True}

    assert predicted(root, **settings) == executed(engine, root, **settings)


def test_other_schedules_are_predicted_as_well():
    root = graph()

    order = predicted(root, schedule=FifoSchedule)

    assert order == executed(Engine(schedule="fifo"), root)
    assert order != predicted(root)


def test_several_roots_are_predicted_without_their_graph_root():
    """X6."""
    first, second = Sink(), Sink()

    order = predicted_order([(first, 0), (second, 0)])

    assert [position.node for position in order] == [second, first]


def test_every_position_has_a_reason():
    """C2: why this one and not another."""
    leaf = AccumulateGrad(Leaf())
    older, newer = Pass(), Pass()

    order = predicted_order([(Pass(older, newer, leaf), 0)])

    assert [(position.node, position.reason) for position in order[1:]] == [
        (leaf, "leaves come before all other nodes"),
        (newer, "of 2 ready it was made last in the forward pass"),
        (older, "nothing else is ready"),
    ]


def test_asking_changes_no_sequence_number():
    """Q8."""
    first = Sink()
    predicted_order([(first, 0)])

    assert Sink().sequence_nr == first.sequence_nr + 1


def test_the_order_can_be_asked_for_while_the_pass_runs(engine: Engine):
    """K4: PyTorch's own function fails once a node has run."""
    answers: list[list[Node]] = []

    def look(grad: Any) -> Any:
        order = engine.current_execution_order()
        answers.append([position.node for position in order])
        return (grad,)

    last = Call(lambda grad: look(grad) and ())
    middle = Call(look, last)
    root = Call(look, middle)
    engine.execute([(root, 0)], [1])

    assert answers == [[root, middle, last]] * 3


def test_outside_a_pass_there_is_no_current_order(engine: Engine):
    """K4."""
    with pytest.raises(RuntimeError, match="only be called during the backward pass"):
        engine.current_execution_order()


def test_on_one_thread_it_holds_across_devices(engine: Engine):
    """K4, K5."""
    sink = Sink()
    root = Pass(Pass(sink, device=SIM_0), Pass(sink, device=SIM_1), Pass(sink))
    MULTITHREADING_ENABLED.set(False)
    try:
        assert predicted(root) == executed(engine, root)
    finally:
        MULTITHREADING_ENABLED.set(True)
