import contextlib

import pytest

import gradviz as gv
from gradviz.analysis.nodes.execution_order import execution_order
from gradviz.backends.device import Device
from gradviz.capture.recorded_schedule import recorded
from gradviz.engine import Engine, Node

#: Recorded orders are repeated, whatever they are.
pytestmark = pytest.mark.another_order


class Op(Node):
    def __init__(self, device, *next_nodes):
        super().__init__([(node, 0) for node in next_nodes], device=device)

    def apply(self, grad):
        return (grad,) * len(self.next_edges)


class Raises(Node):
    def apply(self, grad):
        raise ValueError("on purpose")


def layers(width, *devices):
    """A root over `width` nodes, over `width` nodes: many of them ready at once."""
    below = [Op(devices[i % len(devices)]) for i in range(width)]
    middle = [Op(devices[i % len(devices)], *below) for i in range(width)]
    return Op(Device("cpu"), *middle)


def run(engine, *roots):
    """The order in which the passes over `roots` run, as ranks of creation."""
    with gv.record() as recording:
        for root in roots:
            engine.execute([(root, 0)], [1.0])
    engine.stop()
    orders = []
    for task in recording.trace.tasks:
        nodes = [row.node for row in execution_order(recording.trace, task)]
        ranks = {node: rank for rank, node in enumerate(sorted(nodes))}
        orders.append([ranks[node] for node in nodes])
    return recording.trace, orders


CPU = Device("cpu")


def test_the_order_of_a_random_pass_is_repeated():
    trace, orders = run(Engine(schedule="random:3"), layers(6, CPU), layers(5, CPU))
    schedule = recorded(trace)

    _, again = run(Engine(schedule=schedule), layers(6, CPU), layers(5, CPU))

    assert again == orders
    assert again != run(Engine(), layers(6, CPU), layers(5, CPU))[1]
    assert schedule.deviations == []


def test_on_each_device_the_order_is_repeated():
    devices = (Device("sim", 0), Device("sim", 1))
    trace, _ = run(Engine(schedule="random:5"), layers(6, *devices))

    again, _ = run(Engine(schedule=recorded(trace)), layers(6, *devices))

    for device in ("sim:0", "sim:1"):
        assert order_on(again, device) == order_on(trace, device)


def order_on(trace, device):
    (task,) = trace.tasks
    rows = execution_order(trace, task)
    ranks = {node: rank for rank, node in enumerate(sorted(row.node for row in rows))}
    return [ranks[row.node] for row in rows if row.device == device]


def test_another_graph_runs_in_pytorchs_order_and_is_named():
    trace, _ = run(Engine(schedule="random:3"), layers(3, CPU))
    schedule = recorded(trace)

    _, again = run(Engine(schedule=schedule), layers(4, CPU), layers(3, CPU))

    assert again == run(Engine(), layers(4, CPU), layers(3, CPU))[1]
    assert "it has 9 nodes, the recorded one 7" in schedule.deviations[0]
    assert "no further pass was recorded" in schedule.deviations[1]


def test_a_pass_that_failed_when_it_was_recorded_is_not_repeated():
    engine = Engine()
    with gv.record() as recording, contextlib.suppress(ValueError):
        engine.execute([(Raises(), 0)], [1.0])
    schedule = recorded(recording.trace)

    run(Engine(schedule=schedule), Op(CPU))

    assert len(schedule.deviations) == 1
