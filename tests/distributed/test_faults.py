"""Messages that are late, lost, doubled or out of order, and workers that go."""

import random
import re
from dataclasses import replace
from functools import partial

import pytest

from gradviz.distributed import autograd as dist_autograd
from gradviz.distributed.transport.faulty import Faults, FaultyTransport
from gradviz.testing.scheduler import sleep
from tests.distributed.called import leaf
from tests.distributed.company import Company
from tests.distributed.expressions import evaluate, plan_of, value_of
from tests.distributed.waiting import assert_nothing_is_left, until_done

#: Kinds of errors of a pass or a call, if faults are what goes wrong.
WORDS = re.compile(
    r"^(Error on Node \d: )*("
    r"the distributed backward did not end within 20 s"
    r"|node \d is down: "
    r"|node \d did not answer within "
    r"|gradients came for backward pass \d+ of autograd context \d+, which has ended"
    r"|Could not find autograd context with id: "
    r"|autograd context \d+ was released "
    r"|Autograd context no longer valid!"
    r"|On WorkerInfo\(id=\d, name=worker\d\):)"
)

SLOW = Faults(delay=0.5, reorder=0.2, longest_delay_s=2.0)
TWICE = Faults(delay=0.5, reorder=0.2, duplicate=0.5, longest_delay_s=2.0)
LOSSY = Faults(drop=0.08, drop_answer=0.08, delay=0.3, duplicate=0.3, reorder=0.1)


class Program:
    """A random expression over some workers, and its gradients in one process."""

    def __init__(self, seed, workers):
        generator = random.Random(seed)
        plan = plan_of(generator, workers, 3)
        numbers = [[generator.randint(-3, 3) for _ in range(2)] for _ in range(3)]
        self.plan = plan
        self.leaves = [leaf(*one) for one in numbers]
        expected = [leaf(*one) for one in numbers]
        (value_of(plan, expected) + sum(expected)).sum().backward()
        self.expected = [one.grad.tolist() for one in expected]

    def run(self, timeout=20):
        """Its gradients through the workers."""
        with dist_autograd.context() as context_id:
            total = evaluate(self.plan, [*self.leaves], timeout=10)
            loss = (total + sum(self.leaves)).sum()
            dist_autograd.backward(context_id, [loss], timeout=timeout)
            found = dist_autograd.get_gradients(context_id)
            return [found[one].tolist() for one in self.leaves]


def faulty(seed, faults, **options):
    """A company whose messages have faults."""

    def wrap(inner):
        return FaultyTransport(inner, faults, seed, **options)

    return Company(seed, wrap)


def assert_right_or_refused(program):
    try:
        found = program.run()
    except (RuntimeError, TimeoutError) as error:
        found = str(error)
    assert found == program.expected or WORDS.match(found)


def seeds(few, many):
    return [
        *range(few),
        *(pytest.param(seed, marks=pytest.mark.stress) for seed in range(few, many)),
    ]


@pytest.mark.parametrize("faults", [SLOW, TWICE], ids=["slow", "twice"])
@pytest.mark.parametrize("seed", seeds(3, 60))
def test_messages_late_doubled_or_out_of_order_change_no_gradient(seed, faults):
    size = 2 + seed % 3
    program = Program(seed, range(size))
    company = faulty(seed, faults, heartbeat_seconds=None)

    def main():
        for _ in range(2):
            assert program.run() == program.expected
        sleep(60)
        assert_nothing_is_left(company, range(size))
        done.append(True)

    done = []
    company.run(main, *[until_done(done)] * (size - 1))


@pytest.mark.parametrize("seed", seeds(4, 100))
def test_a_lost_message_is_an_error_or_harmless_and_the_next_pass_is_right(seed):
    size = 2 + seed % 3
    program = Program(seed, range(size))
    company = faulty(seed, Faults(), heartbeat_seconds=None)

    def main():
        for transport in company.transports:
            transport.faults = LOSSY
        for _ in range(2):
            assert_right_or_refused(program)
        for transport in company.transports:
            transport.faults = Faults()
        assert program.run() == program.expected
        sleep(120)
        assert_nothing_is_left(company, range(size))
        done.append(True)

    done = []
    company.run(main, *[until_done(done)] * (size - 1))


@pytest.mark.parametrize("seed", seeds(5, 150))
def test_a_worker_that_goes_at_any_message_leaves_nothing_on_the_others(seed):
    generator = random.Random(seed)
    victim = generator.randrange(3)
    survivors = [rank for rank in range(3) if rank != victim]
    before, after = Program(seed, range(3)), Program(seed + 1, survivors)
    company = faulty(
        seed, SLOW, heartbeat_seconds=None, die=lambda: company.kill(victim)
    )

    def first():
        unlucky = company.transports[victim]
        kill_at = unlucky.num_sent + generator.randrange(1, 12)
        unlucky.faults = replace(SLOW, kill_at=kill_at)
        for _ in range(3):
            assert_right_or_refused(before)
        if not dead:
            company.kill(victim)
        dead.append(victim)

    def last():
        while not dead:
            sleep(10)
        sleep(60)
        assert_nothing_is_left(company, survivors)
        assert after.run() == after.expected
        done.append(True)

    def main(rank):
        if rank == 0:
            first()
        if rank == survivors[0]:
            last()
        elif rank != victim:
            until_done(done)()

    dead, done = [], []
    programs = [partial(main, rank) for rank in range(3)]
    company.run(*programs, dies=(victim,))
