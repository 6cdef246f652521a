"""Workers that are stopped or unplugged: nothing says so but their silence."""

import functools
import re

import pytest

from gradviz.distributed import autograd as dist_autograd
from gradviz.distributed import rpc
from gradviz.distributed.transport import base
from gradviz.distributed.transport.faulty import Faults, FaultyTransport
from gradviz.testing.scheduler import sleep
from tests.distributed.called import add_on, double, leaf
from tests.distributed.company import Company, idle
from tests.distributed.waiting import assert_nothing_is_left, until_done

NONE = Faults()


@rpc.register
def take_long(seconds):
    sleep(seconds)
    return "done"


def wired(seed, faults=NONE):
    return Company(seed, lambda inner: FaultyTransport(inner, faults, seed))


@pytest.mark.parametrize("victim", [1, 2])
def test_a_worker_that_is_unplugged_in_mid_backward_is_named_and_leaves_nothing(victim):
    company, done = wired(victim), []

    def program():
        with dist_autograd.context() as context_id:
            x = leaf(1)
            total = rpc.rpc_sync(1, add_on, ([2], x * 2, x))
            total.register_hook(lambda _: company.transports[victim].unplug())
            began_ns = company.scheduler.now_ns()
            with pytest.raises(
                RuntimeError,
                match=rf"^(Error on Node \d: )+node {victim} is down: it gave no sign "
                r"of life for 3 s$",
            ):
                dist_autograd.backward(context_id, [total.sum()])
            assert company.scheduler.now_ns() - began_ns < 5e9
        survivor = 3 - victim
        sleep(10)
        assert_nothing_is_left(company, range(3))  # and the victim has given up, too
        with dist_autograd.context() as context_id:
            loss = rpc.rpc_sync(survivor, double, (x,)).sum()
            dist_autograd.backward(context_id, [loss])
            assert dist_autograd.get_gradients(context_id)[x].tolist() == [2.0]
        company.kill(victim)
        done.append(True)

    programs = [program, until_done(done), until_done(done)]
    company.run(*programs, dies=(victim,))


def test_a_worker_that_computes_for_long_is_not_taken_for_dead():
    company = wired(0)

    def program():
        asked = [rpc.rpc_async(1, take_long, (50,)) for _ in range(3)]
        assert [one.wait() for one in asked] == ["done"] * 3

    company.run(program, idle)


def lost_after(company):
    """Return for how many seconds worker 0 bears the silence of worker 1."""
    found = []

    def program():
        company.transports[1].unplug()
        began_ns = company.scheduler.now_ns()
        with pytest.raises(rpc.RpcError, match="no sign of life") as caught:
            rpc.rpc_sync(1, double, (leaf(1),), timeout=None)
        said = int(re.search(r"for (\d+) s", str(caught.value))[1])
        waited = (company.scheduler.now_ns() - began_ns) / 1e9
        assert said - 1 <= waited <= said + 2  # there is a heartbeat each second
        found.append(said)
        company.kill(1)

    company.run(program, idle, dies=(1,))
    return found[0]


def test_a_silent_worker_whose_process_runs_is_waited_for_longer(monkeypatch):
    assert lost_after(wired(1)) == 3
    monkeypatch.setattr(FaultyTransport, "seems_to_run", lambda _self, _peer: True)
    monkeypatch.setattr(base, "RUNNING_PATIENCE_SECONDS", 30.0)
    assert lost_after(wired(1)) == 30


@pytest.mark.parametrize("is_running", [False, True])
@pytest.mark.parametrize("seconds", [2, 40])
def test_the_patience_of_a_program_counts_whatever_the_system_says(
    monkeypatch, seconds, is_running
):
    init = functools.partial(rpc.init, patience=seconds)
    monkeypatch.setattr(rpc, "init", init)
    monkeypatch.setattr(
        FaultyTransport, "seems_to_run", lambda _self, _peer: is_running
    )
    assert lost_after(wired(1)) == seconds


@pytest.mark.parametrize("patience", [0, -1, float("nan")])
def test_nobody_has_less_patience_than_some(patience):
    with pytest.raises(ValueError, match=r"patience is .* expected more than 0"):
        rpc.init(patience=patience)


def test_a_worker_that_could_not_run_itself_judges_nobody():
    slow = Faults(delay=1.0, kinds=frozenset({"Ping"}))
    company, done = wired(1, slow), []

    def program():
        transport = company.transports[0]
        transport.unplug()
        sleep(1.5)  # pings are on their way
        company.scheduler.fibers.now_ns += 60_000_000_000  # nothing ran meanwhile
        transport._is_unplugged = False
        sleep(10)
        assert rpc.rpc_sync(1, double, (leaf(1),)).tolist() == [2.0]
        done.append(True)

    company.run(program, until_done(done))


def test_signs_of_life_that_are_lost_do_no_harm_while_others_come():
    company = wired(3, Faults(drop=0.05, kinds=frozenset({"Ping"})))

    def program():
        assert rpc.rpc_sync(1, take_long, (50,)) == "done"
        assert all(company.transports[0].alive().values())

    company.run(program, idle)


def test_a_worker_that_was_given_up_is_not_heard_again():
    company = wired(4)

    def program():
        company.transports[0].lose(1, "it seemed so")
        with pytest.raises(rpc.RpcError, match="node 1 is down: it seemed so"):
            rpc.rpc_sync(1, double, (leaf(1),))
        sleep(10)

    def other():
        sleep(5)
        with pytest.raises(
            rpc.RpcError, match="node 0 is down: it takes this node for down"
        ):
            rpc.rpc_sync(0, take_long, (1,))

    company.run(program, other)
