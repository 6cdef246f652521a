"""Other orders than PyTorch's."""

import pytest

from gradviz.engine import Engine, Node
from gradviz.engine.graph_task import NodeTask, Shutdown, WakeUp
from gradviz.engine.policies import Recorded, Step, policy_named
from gradviz.engine.schedule import Schedule
from tests.engine.nodes import SIM_0, Pass, new_graph_task


def tree(log: list[str], **settings: object) -> Node:
    """Five nodes that are ready at once, made in the order a to e."""
    ways = [Pass(log=log, label=label, **settings) for label in "abcde"]
    return Pass(*ways)


def order(engine: Engine, **settings: object) -> str:
    log: list[str] = []
    engine.execute([(tree(log, **settings), 0)], [1])
    return "".join(log)


def test_pytorchs_order_is_the_default(engine: Engine):
    """Q2."""
    assert order(engine) == order(Engine(schedule="pytorch")) == "edcba"


def test_fifo_runs_nodes_in_the_order_they_become_ready():
    assert order(Engine(schedule="fifo")) == "abcde"


def test_a_seed_draws_the_same_order_again():
    orders = [order(Engine(schedule="random:7")) for _ in range(2)]

    assert orders[0] == orders[1]
    assert sorted(orders[0]) == list("abcde")


def test_seeds_draw_different_orders():
    assert len({order(Engine(schedule=f"random:{seed}")) for seed in range(9)}) > 3


@pytest.mark.parametrize("name", ["lifo", "random", "random:x", "fifo:1", ""])
def test_an_unknown_schedule_is_refused(name: str):
    with pytest.raises(ValueError, match="expected 'pytorch', 'fifo' or 'random:SEED'"):
        Engine(schedule=name)


@pytest.mark.parametrize("name", ["pytorch", "fifo", "random:1"])
def test_wake_ups_and_shutdowns_come_before_work_under_every_policy(name: str):
    """Q2: who waits for one must not wait behind work."""
    schedule: Schedule = policy_named(name).schedule()
    work = new_graph_task()
    schedule.push(NodeTask(work, Pass(), [None], work.priority))
    for urgent in (WakeUp(work, ends_pass=True), Shutdown()):
        schedule.push(urgent)
        assert schedule.pop() is urgent
    assert len(schedule) == 1


@pytest.mark.parametrize("name", ["pytorch", "fifo", "random:1"])
def test_an_empty_schedule_says_so(name: str):
    with pytest.raises(IndexError):
        policy_named(name).schedule().pop()


class TestRecorded:
    @pytest.mark.parametrize("settings", [{}, {"device": SIM_0}], ids=["cpu", "device"])
    def test_a_recorded_order_is_repeated(self, settings: dict[str, object]):
        """The root is made last, so its rank is 5."""
        steps = [Step(rank, "Pass") for rank in (5, 2, 0, 4, 1, 3)]
        policy = Recorded([steps])

        assert order(Engine(schedule=policy), **settings) == "caebd"
        assert policy.deviations == []

    def test_another_graph_runs_in_pytorchs_order_and_is_named(self):
        policy = Recorded([[Step(0, "Pass")]])

        assert order(Engine(schedule=policy)) == "edcba"
        (deviation,) = policy.deviations
        assert "it has 6 nodes, the recorded one 1" in deviation

    def test_a_pass_beyond_the_recorded_ones_is_named(self):
        policy = Recorded([])

        assert order(Engine(schedule=policy)) == "edcba"
        assert "no further pass was recorded" in policy.deviations[0]
