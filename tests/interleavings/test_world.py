import pytest

from gradviz.engine.graph.node import next_sequence_nr
from gradviz.testing.policy import Scripted
from gradviz.testing.scheduler import Scheduler
from tests.interleavings.workload import serial_gradients
from tests.interleavings.world import DEVICES, RuleBroken, World


@pytest.fixture(params=[True, False], ids=["observed", "unobserved"])
def world(request):
    with Scheduler(Scripted({})) as scheduler:
        yield World(scheduler, is_observed=request.param)


def graph(world):
    """A diamond over the caller and a device; its leaf gets 2 * (3 + 5)."""
    leaf = world.leaf()
    left = world.node((3.0, leaf), device=DEVICES[0])
    right = world.node((5.0, leaf))
    return leaf, world.node((2.0, left), (2.0, right))


def test_a_serial_computation_says_what_each_node_receives(world):
    leaf, root = graph(world)

    assert serial_gradients(root, 1.0)[leaf] == 16.0


def test_a_correct_pass_breaks_no_rule(world):
    leaf, root = graph(world)

    world.run(caller=lambda: world.backward(root, 10.0))
    world.finish()

    assert leaf.leaf.grad == 160.0


def test_a_wrong_sum_is_noticed(world):
    leaf, root = graph(world)

    world.run(caller=lambda: world.backward(root))
    leaf.leaf.grad += 1.0

    with pytest.raises(RuleBroken, match=r"has 17.0, expected 16.0"):
        world.finish()


def test_a_node_that_did_not_run_is_noticed(world):
    leaf, root = graph(world)
    skipped = world.node((1.0, leaf))

    def call():
        world.backward(root)
        # As if the pass had begun at a node before the one where it did.
        (account,) = world._accounts.values()
        account.root = world.node((1.0, skipped))

    world.run(caller=call)

    with pytest.raises(RuleBroken, match="did not run"):
        world.finish()


def test_a_thread_whose_state_has_changed_is_noticed(world):
    def tamper():
        world.engine.worker().total_depth += 1

    root = world.node((1.0, world.leaf()), body=tamper)

    def call():
        execute = world.engine.execute

        def execute_and_tamper(*args, **kwargs):
            result = execute(*args, **kwargs)
            tamper()
            return result

        world.engine.execute = execute_and_tamper
        world.backward(root)

    world.run(caller=call)

    with pytest.raises(RuleBroken, match="the thread was"):
        world.finish()


def test_a_lock_that_is_still_held_is_noticed(world):
    def call():
        world.scheduler.lock().__enter__()

    world.run(caller=call)

    with pytest.raises(RuleBroken, match=r"lock \d+ \(caller\) is still held"):
        world.finish()


def test_a_thread_that_does_not_end_is_noticed(world):
    world.run(
        caller=lambda: world.scheduler.spawn(world.scheduler.mailbox().get, "straggler")
    )

    with pytest.raises(RuleBroken, match=r"threads did not end:\n +straggler"):
        world.finish()


def test_a_node_that_runs_twice_in_a_pass_is_noticed(world):
    leaf, root = graph(world)

    def call():
        world.backward(root)
        (account,) = world._accounts.values()
        account.start(leaf, (), now_ns=0)
        account.end(leaf, is_done=True)

    world.run(caller=call)

    with pytest.raises(RuleBroken) as caught:
        world.finish()
    assert "ran twice" in str(caught.value)
    assert "started after the call had ended" in str(caught.value)


def test_an_expectation_of_a_scenario_is_part_of_the_outcome(world):
    world.expect(False, "the moon is made of cheese")

    with pytest.raises(RuleBroken, match="cheese"):
        world.finish()


def test_a_run_does_not_depend_on_what_the_process_did_before(world):
    _, root = graph(world)

    world.run(caller=lambda: world.backward(root))
    first = list(world.scheduler.fibers.decisions)

    for _ in range(700):
        next_sequence_nr()
    with Scheduler(Scripted({})) as scheduler:
        other = World(scheduler, is_observed=world._listener is not None)
        _, root = graph(other)
        other.run(caller=lambda: other.backward(root))
        assert scheduler.fibers.decisions == first
