"""Other orders than PyTorch's."""

import pytest

from gradviz.engine import Engine, Node
from gradviz.engine.tasks.graph_task import NodeTask, Shutdown, WakeUp
from gradviz.engine.tasks.policies import Recorded, Step, policy_named
from gradviz.ready_order import Schedule
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

    @pytest.mark.parametrize(
        ("steps", "problem"),
        [
            ([(0, "Pass")] * 5, "it has 6 nodes, the recorded one 5"),
            (
                [(6, "Pass"), *((rank, "Pass") for rank in range(5))],
                "the recorded order names a node 6 that it does not have",
            ),
            (
                [(-1, "Pass"), *((rank, "Pass") for rank in range(5))],
                "the recorded order names a node -1 that it does not have",
            ),
            ([(0, "Pass")] * 6, "the recorded order names a node twice"),
            ([(5, "Other"), *((rank, "Pass") for rank in range(5))], "was Other when"),
        ],
    )
    def test_a_recorded_order_that_does_not_fit_the_graph_is_not_followed(
        self, steps: list[tuple[int, str]], problem: str
    ):
        policy = Recorded([[Step(*step) for step in steps]])

        assert order(Engine(schedule=policy)) == "edcba"
        (deviation,) = policy.deviations
        assert problem in deviation
        assert deviation.endswith("it ran in PyTorch's order")

    def test_a_graph_that_runs_again_has_the_turns_of_its_pass(self):
        """Not those of the pass before, if the new one is not followed."""
        log: list[str] = []
        root = tree(log)
        steps = [Step(rank, "Pass") for rank in (5, 2, 0, 4, 1, 3)]
        engine = Engine(schedule=Recorded([steps]))

        for _ in range(2):
            engine.execute([(root, 0)], [1], keep_graph=True)

        assert "".join(log) == "caebd" + "edcba"

    def test_tasks_without_a_recorded_turn_go_by_priority(self):
        schedule = Recorded([]).schedule()
        work = new_graph_task()
        older, newer = (
            NodeTask(work, node, [None], node.sequence_nr) for node in (Pass(), Pass())
        )

        for task in (older, newer):
            schedule.push(task)

        assert [schedule.pop(), schedule.pop()] == [newer, older]

    def test_a_node_waits_for_its_turn_unless_its_pass_has_failed(self):
        """R3: else the queue of a failed pass would never be empty."""
        first, second = Pass(), Pass()
        policy = Recorded([[Step(0, "Pass"), Step(1, "Pass")]])
        schedule = policy.schedule()
        work = new_graph_task()
        policy.begin(work.id, [(second, 0), (first, 0)])
        task = NodeTask(work, second, [None], 0)

        schedule.push(task)

        assert (len(schedule), list(schedule)) == (1, [task])
        with pytest.raises(IndexError, match="it is nobody's turn"):
            schedule.pop()
        work.outcome.set_error(ValueError(), None)
        assert schedule.pop() is task
        assert (len(schedule), list(schedule)) == (0, [])

    def test_each_queue_has_turns_of_its_own(self):
        """Nodes of several devices do not wait for each other."""
        here, there = Pass(), Pass()
        policy = Recorded([[Step(0, "Pass"), Step(1, "Pass")]])
        policy.begin(0, [(here, 0), (there, 1)])
        schedule, work = policy.schedule(), new_graph_task()
        task = NodeTask(work, there, [None], 0)

        schedule.push(task)

        assert schedule.pop() is task


@pytest.mark.parametrize("name", ["pytorch", "fifo", "random:1"])
def test_a_schedule_counts_and_lists_what_waits(name: str):
    schedule: Schedule = policy_named(name).schedule()
    work = new_graph_task()
    tasks = [NodeTask(work, Pass(), [None], number) for number in range(3)]
    tasks.append(WakeUp(work, ends_pass=True))

    for task in tasks:
        schedule.push(task)

    assert len(schedule) == 4
    assert set(schedule) == set(tasks)
