import gc
import threading

import numpy as np
import pytest

import gradviz as gv
from gradviz.distributed import rpc
from gradviz.distributed.transport.inproc import Network
from tests.distributed.called import add, double, leaf, raise_value_error, same
from tests.distributed.company import idle


def test_a_function_runs_on_the_worker_that_is_named_by_name_rank_or_info(company):
    def program():
        info = rpc.get_worker_info("worker1")
        for to in ("worker1", 1, info):
            assert rpc.rpc_sync(to, add, (1, 2)) == 3
        assert rpc.rpc_sync(0, "tests.distributed.called.add", ("a", "b")) == "ab"

    company.run(program, idle)


def test_values_of_every_kind_come_back_as_they_went(company):
    values = (
        [None, True, 3, -(2**70), 0.1, "text \u00e9", b"\x00\xff", 2 - 1j],
        {"a": (1, [2]), 3: float("inf"), (4, 5): None},
        (),
    )

    def program():
        back = rpc.rpc_sync("worker1", same, values, {"key": [1.5]})
        assert back == (values, {"key": [1.5]})
        assert np.isnan(rpc.rpc_sync("worker1", same, (float("nan"),))[0])
        (array,) = rpc.rpc_sync("worker1", same, (np.arange(6, dtype="i2"),))
        assert array.dtype == "i2"
        assert array.tolist() == [0, 1, 2, 3, 4, 5]

    company.run(program, idle)


def test_tensors_are_copied_and_keep_whether_they_need_a_gradient(company):
    def program():
        x, y = leaf(1, 2), gv.tensor([[3.0]])
        x_back, y_back = rpc.rpc_sync("worker1", same, (x, y))
        assert x_back.requires_grad
        assert x_back.is_leaf
        assert not y_back.requires_grad
        assert y_back.shape == (1, 1)
        y_back += 1
        assert y.tolist() == [[3.0]]

    company.run(program, idle)


@pytest.mark.parametrize("call", [rpc.rpc_async, rpc.remote])
def test_writes_of_the_caller_after_a_call_do_not_reach_the_callee(company, call):
    def program():
        x = gv.ones(2**20)
        begun = call("worker1", total, (x, [x.array]))
        x.zero_()
        there = begun.wait() if call is rpc.rpc_async else begun.to_here()
        assert there == (2**20, 2**20)

    company.run(program, idle)


def follow(to, function, args):
    return rpc.remote(to, function, args).to_here()


@pytest.mark.parametrize("call", [rpc.rpc_sync, follow])
def test_a_call_that_gets_no_thread_does_not_run_and_can_be_made_again(
    scheduled, monkeypatch, call
):
    ran.clear()

    def refuse(_target, _name):
        raise RuntimeError("can't start new thread")

    def program():
        with monkeypatch.context() as patch:
            patch.setattr(scheduled.scheduler, "spawn", refuse)
            with pytest.raises(rpc.RemoteError, match="can't start new thread"):
                call("worker1", run_once, ("refused",))
        call("worker1", run_once, ("again",))

    scheduled.run(program, idle)

    assert ran == ["again"]


ran = []


@rpc.register
def run_once(word):
    ran.append(word)


@rpc.register
def total(x, arrays):
    return x.sum().item(), arrays[0].sum()


def test_an_error_of_a_remote_function_is_raised_here_with_its_place(company):
    def program():
        with pytest.raises(ValueError, match="worker1") as caught:
            rpc.rpc_sync("worker1", raise_value_error, ("too small",))
        assert isinstance(caught.value, rpc.RemoteError)
        lines = str(caught.value).splitlines()
        assert lines[:2] == [
            "On WorkerInfo(id=1, name=worker1):",
            "ValueError('too small')",
        ]
        assert "in raise_value_error" in str(caught.value)

    company.run(program, idle)


def not_registered():
    pass


@pytest.mark.parametrize(
    ("arguments", "kind", "words"),
    [
        (("worker7", add), RuntimeError, "could not find destination name worker7"),
        ((1, not_registered), TypeError, "'not_registered' is not registered"),
        ((1, "no.such"), LookupError, "no function is registered as 'no.such'"),
        ((1, add, (object(), 1)), TypeError, "builtins.object cannot be sent"),
        ((1, add, (np.array([None]), 1)), TypeError, "dtype object cannot be sent"),
        ((1, add, (1,)), TypeError, "missing 1 required positional argument"),
        ((1, same, ("\ud800",)), TypeError, "it is no Unicode"),
    ],
)
def test_a_call_that_cannot_be_is_refused_in_words(company, arguments, kind, words):
    def program():
        with pytest.raises(kind, match=words):
            rpc.rpc_sync(*arguments)
        assert rpc.rpc_sync(1, add, (1, 1)) == 2

    company.run(program, idle)


def test_a_value_that_contains_itself_is_refused(company):
    circle = []
    circle.append(circle)

    def program():
        with pytest.raises(rpc.ValueNotSentError, match="contains itself"):
            rpc.rpc_sync(1, same, (circle,))

    company.run(program, idle)


def test_calls_do_not_wait_for_each_other(company):
    def program():
        futures = [rpc.rpc_async(1, double, (n,)) for n in range(20)]
        assert [one.wait() for one in futures] == [2 * n for n in range(20)]
        assert rpc.rpc_async(1, add, (1, 2)).then(lambda f: f.value() + 1).wait() == 4

    company.run(program, idle)


@rpc.register
def down_and_up(depth):
    if not depth:
        return 0
    other = 1 - rpc.get_worker_info().id
    return 1 + rpc.rpc_sync(other, down_and_up, (depth - 1,))


def test_workers_ask_each_other_to_any_depth(company):
    company.run(lambda: down_and_up(12), idle)


@rpc.register
def num_kept():
    return len(rpc.current_worker().kept)


def test_a_reference_stays_with_its_owner_until_nobody_has_it(company):
    def program():
        rref = rpc.remote("worker1", double, ([1, 2],))
        assert rref.to_here() == [1, 2, 1, 2]
        assert rpc.rpc_sync(1, num_kept) == 1
        del rref
        gc.collect()
        assert rpc.rpc_sync(1, num_kept) == 0

    company.run(program, idle)


def test_a_reference_knows_its_owner(company):
    def program():
        rref = rpc.remote("worker1", double, ([1, 2],))
        assert not rref.is_owner()
        assert rref.owner_name() == "worker1"
        with pytest.raises(RuntimeError, match="non-local reference"):
            rref.local_value()

    company.run(program, idle)


@rpc.register
def value_of(rref):
    return rref.local_value() if rref.is_owner() else rref.to_here()


def test_a_reference_can_be_sent_to_its_owner_and_to_others(company):
    def program():
        rref = rpc.remote("worker1", double, (4,))
        assert rpc.rpc_sync("worker1", value_of, (rref,)) == 8
        assert rpc.rpc_sync("worker2", value_of, (rref,)) == 8
        mine = rpc.remote("worker0", double, (5,))
        assert mine.local_value() == 10
        assert rpc.rpc_sync("worker2", value_of, (mine,)) == 10

    company.run(program, idle, idle)


def test_following_a_reference_raises_what_making_it_raised(company):
    def program():
        rref = rpc.remote("worker1", raise_value_error, ("never",))
        with pytest.raises(ValueError, match="never"):
            rref.to_here()

    company.run(program, idle)


def test_a_worker_that_is_gone_is_named(company):
    has_met_all = threading.Event()

    def program():
        rpc.rpc_sync(1, add, (1, 1))
        assert has_met_all.wait(60)  # or worker 2 would miss worker 1
        company.kill(1)
        with pytest.raises(rpc.PeerDownError, match="node 1 is down: it"):
            rpc.rpc_sync(1, add, (1, 1))
        assert rpc.rpc_sync(2, add, (1, 1)) == 2

    company.run(program, idle, has_met_all.set, dies=(1,))


def test_a_worker_is_made_once_and_of_its_own_transport(company):
    def program():
        transport = company.network.transports[0]
        with pytest.raises(RuntimeError, match="already initialized"):
            rpc.init("again", 0, 2, transport=transport)

    company.run(program, idle)
    with pytest.raises(ValueError, match="worker 0 of 1, not of worker 1 of 2"):
        rpc.init("w", 1, 2, transport=Network(1).transports[0])


def test_a_call_from_a_process_that_is_no_worker_raises():
    with pytest.raises(RuntimeError, match="RPC has not been initialized"):
        rpc.rpc_sync("worker0", add, (1, 2))


def test_a_worker_that_does_not_come_is_waited_for_no_longer_than_told():
    with pytest.raises(rpc.RpcTimeoutError, match=r"node 1 .* within 0.01 s"):
        rpc.init("alone", 0, 2, transport=Network(2).transports[0], timeout=0.01)


def test_another_function_of_the_same_name_is_refused():
    with pytest.raises(ValueError, match="another function is registered"):
        rpc.register(not_registered, name="tests.distributed.called.add")
