"""Passes that fail, come late, begin anew or meet another one."""

import warnings
from functools import partial

import pytest

import gradviz as gv
from gradviz.distributed import autograd as dist_autograd
from gradviz.distributed import rpc
from gradviz.distributed.transport.faulty import Faults, FaultyTransport
from gradviz.testing.scheduler import sleep
from tests.distributed.called import add_on, double, leaf
from tests.distributed.company import Company, idle
from tests.distributed.waiting import assert_nothing_is_left, until_done

#: What nodes of tests do in their backward, by name: seconds to take, or an error.
BEHAVIOR = {}


class Behaves(gv.autograd.Function):
    """The same, forward and backward, unless it is told to misbehave."""

    @staticmethod
    def forward(ctx, x, name):
        ctx.name = name
        return x * 1

    @staticmethod
    def backward(ctx, grad):
        match BEHAVIOR.get(ctx.name):
            case float(seconds):
                sleep(seconds)
            case str(words):
                raise RuntimeError(words)
            case _:
                pass
        return grad, None


@rpc.register
def behaves(x, name):
    return Behaves.apply(x, name)


@rpc.register
def forget_the_answer_of(worker, x):
    rpc.rpc_sync(worker, double, (x,))
    return x * 3


@rpc.register
def backward_here(context_id, x):
    """Begin a pass in a context of another worker; the words of its error."""
    try:
        dist_autograd.backward(context_id, [(x * 1).sum()])
    except RuntimeError as error:
        return str(error)
    return None


class Listening(FaultyTransport):
    """Remembers what it was refused."""

    def __init__(self, inner):
        super().__init__(inner, Faults(), 0, heartbeat_seconds=None)
        self.refused = []

    def _hear(self, answer, future):
        if answer.error is not None:
            self.refused.append(str(answer.error))
        super()._hear(answer, future)


def gradient(context_id, x):
    found = dist_autograd.get_gradients(context_id).get(x)
    return 0.0 if found is None else found.item()


def test_a_gradient_that_comes_after_its_pass_has_failed_is_refused_30_times():
    """PyTorch: it begins the failed pass anew, 29 times of 30."""
    for seed in range(30):
        company = Company(seed, Listening)
        company.run(partial(fail_and_retry, company), idle, idle)
        late = company.transports[2].refused
        assert len(late) == 1
        assert "which has ended" in late[0]


def fail_and_retry(company):
    # A gradient takes its time, and the news of the failure more.
    company.transports[2].faults = Faults(
        delay=1.0, longest_delay_s=4.0, kinds=frozenset({"PropagateGradients"})
    )
    company.transports[0].faults = Faults(drop=1.0, kinds=frozenset({"AbortPass"}))
    BEHAVIOR.clear()
    x = leaf(1)
    with dist_autograd.context() as context_id:
        bad = rpc.rpc_sync(1, behaves, (x, "bad"))
        slow = rpc.rpc_sync(2, double, (x,))
        loss = (bad + slow).sum()
        BEHAVIOR["bad"] = "Simulate error on backward pass"
        with pytest.raises(RuntimeError, match="Node 1: Simulate error"):
            dist_autograd.backward(context_id, [loss], retain_graph=True)
        BEHAVIOR.clear()
        assert company.transports[2].refused == []
        dist_autograd.backward(context_id, [loss], retain_graph=True)
        assert gradient(context_id, x) == 3.0
        sleep(5)
        assert gradient(context_id, x) == 3.0


def test_a_pass_begins_where_nodes_of_an_earlier_one_still_run_when_those_have_ended():
    company = Company(0, Listening)
    BEHAVIOR.clear()

    def program():
        company.transports[0].faults = Faults(drop=1.0, kinds=frozenset({"AbortPass"}))
        x = leaf(1)
        with dist_autograd.context() as context_id:
            bad = rpc.rpc_sync(1, behaves, (x, "bad"))
            slow = rpc.rpc_sync(2, behaves, (x, "slow"))
            loss = (bad + slow * 4).sum()
            BEHAVIOR.update(bad="no", slow=20.0)
            with pytest.raises(RuntimeError, match="Error on Node 1: no"):
                dist_autograd.backward(context_id, [loss], retain_graph=True)
            BEHAVIOR.clear()
            assert company.workers[2].dist_engine.num_backward_passes() == 1
            dist_autograd.backward(context_id, [loss], retain_graph=True)
            assert company.scheduler.now_ns() >= 20e9
            assert gradient(context_id, x) == 5.0

    company.run(program, idle, idle)


def test_a_second_root_of_the_same_worker_is_refused_while_the_first_goes_on(scheduled):
    BEHAVIOR.clear()

    def program():
        x, words, worker = leaf(1), [], rpc.current_worker()
        with dist_autograd.context() as context_id:
            loss = rpc.rpc_sync(1, behaves, (x, "slow")).sum()
            BEHAVIOR["slow"] = 10.0

            def second():
                sleep(5)
                with worker.entered(), pytest.raises(RuntimeError) as caught:
                    dist_autograd.backward(context_id, [loss], retain_graph=True)
                words.append(str(caught.value))

            scheduled.scheduler.spawn(second, "second")
            dist_autograd.backward(context_id, [loss], retain_graph=True)
            assert gradient(context_id, x) == 1.0
            assert words == [
                "Cannot set GraphTask multiple times for the same autograd context"
            ]

    scheduled.run(program, idle)


def test_a_root_of_another_worker_is_refused_while_the_first_goes_on(scheduled):
    """PyTorch fails an internal assertion, or waits until the call times out."""
    BEHAVIOR.clear()

    def program():
        x, y, worker = leaf(1), leaf(1), rpc.current_worker()
        words = []
        with dist_autograd.context() as context_id:
            loss = rpc.rpc_sync(1, behaves, (x, "slow")).sum()
            BEHAVIOR["slow"] = 10.0

            def second():
                sleep(5)
                with worker.entered():
                    words.append(rpc.rpc_sync(1, backward_here, (context_id, y)))

            scheduled.scheduler.spawn(second, "second")
            dist_autograd.backward(context_id, [loss])
            assert gradient(context_id, x) == 1.0
            assert words == [
                "Cannot set GraphTask multiple times for the same autograd context"
            ]

    scheduled.run(program, idle)


def test_a_context_is_forgotten_although_the_news_are_lost_at_first():
    company, done = Company(0, Listening), []

    def program():
        for transport in company.transports:
            transport.faults = Faults(drop=1.0, kinds=frozenset({"ReleaseContext"}))
        with dist_autograd.context():
            rpc.rpc_sync(1, add_on, ([2], leaf(1), leaf(2)))
        sleep(12)
        counts = [
            company.workers[n].dist_engine.debug_info()["num_autograd_contexts"]
            for n in range(3)
        ]
        assert counts[0] == 0
        assert counts[2] == 1
        for transport in company.transports:
            transport.faults = Faults()
        sleep(30)
        assert_nothing_is_left(company, [0, 1, 2])
        done.append(True)

    company.run(program, until_done(done), until_done(done))


@pytest.mark.parametrize("context_was_lost", [False, True])
def test_a_context_is_forgotten_although_who_would_have_said_so_is_gone(
    context_was_lost,
):
    company, done = Company(0, Listening), []

    def program():
        with dist_autograd.context():
            rpc.rpc_sync(1, add_on, ([2], leaf(1), leaf(2)))
            if not context_was_lost:
                company.kill(1)
                sleep(1)
            else:  # its end reaches the one that goes, and not the last one
                company.transports[1].faults = Faults(drop=1.0)
        sleep(1)
        if context_was_lost:
            assert len(company.workers[2].container) == 1
            company.kill(1)
            sleep(1)
        assert_nothing_is_left(company, [0, 2])
        done.append(True)

    company.run(program, idle, until_done(done), dies=(1,))


def test_a_pass_that_waits_without_a_limit_names_missing_gradients_on_every_worker():
    company = Company(0)

    def program():
        with dist_autograd.context() as context_id, warnings.catch_warnings():
            warnings.simplefilter("error")
            loss = rpc.rpc_sync(1, forget_the_answer_of, (2, leaf(1))).sum()
            with pytest.raises(
                UserWarning,
                match=r"^a distributed backward goes on; no gradients came for "
                r"message 0 to node 1 \(function \S+\.forget_the_answer_of\); node 1 "
                r"waits for those of message \d+ to node 2 \(function \S+\.double\)$",
            ):
                dist_autograd.backward(context_id, [loss])
            assert company.scheduler.now_ns() >= 30e9
            assert dist_autograd.debug_info()["num_current_backward_passes"] == 0

    company.run(program, idle, idle)


def test_a_warning_of_what_a_pass_waits_for_does_not_end_it_and_is_not_repeated():
    company = Company(0)
    BEHAVIOR.clear()
    BEHAVIOR["slow"] = 100.0

    def program():
        x = leaf(1)
        with dist_autograd.context() as context_id:
            loss = rpc.rpc_sync(1, behaves, (x * 1, "slow")).sum()
            with pytest.warns(UserWarning, match="no gradients came for") as told:
                dist_autograd.backward(context_id, [loss])
            assert gradient(context_id, x) == 1.0
            assert len(told) == 1

    company.run(program, idle)


@pytest.mark.parametrize("loser", [0, 1])
def test_gradients_that_are_lost_fail_the_pass_and_are_named(loser):
    """Those of the root begin it on the next worker; the others go on with it."""
    company = Company(0, Listening)
    lossy = Faults(drop=1.0, kinds=frozenset({"PropagateGradients"}))

    def program():
        x = leaf(1)
        with dist_autograd.context() as context_id, warnings.catch_warnings():
            warnings.simplefilter("ignore")
            loss = rpc.rpc_sync(1, double, (x,)).sum()
            company.transports[loser].faults = lossy
            with pytest.raises(
                RuntimeError,
                match=rf"^lost on their way: gradients for message \d+ to node "
                rf"{loser} \(function \S+\.double\)$",
            ):
                dist_autograd.backward(context_id, [loss], retain_graph=True)
            assert company.scheduler.now_ns() < 70e9
            company.transports[loser].faults = Faults()
            dist_autograd.backward(context_id, [loss])
            assert gradient(context_id, x) == 2.0

    company.run(program, idle)


def test_an_answer_that_is_lost_fails_the_pass_and_says_whose_it_was():
    company = Company(0, Listening)

    def program():
        x = leaf(1)
        with dist_autograd.context() as context_id:
            loss = rpc.rpc_sync(1, double, (x,)).sum()
            company.transports[0].faults = Faults(
                drop_answer=1.0, kinds=frozenset({"PropagateGradients"})
            )
            with pytest.raises(
                RuntimeError,
                match=r"^lost on their way: the answer of node 1 to gradients for its "
                r"message \d+$",
            ):
                dist_autograd.backward(context_id, [loss], retain_graph=True)
            company.transports[0].faults = Faults()
            dist_autograd.backward(context_id, [loss])

    company.run(program, idle)
    assert_nothing_is_left(company, [0, 1])


def test_nobody_waits_for_the_answer_to_gradients_that_go_back_to_who_waits():
    """See Note [Who waits for whom]."""
    company = Company(0, Listening)

    def program():
        x = leaf(1)
        with dist_autograd.context() as context_id:
            loss = rpc.rpc_sync(1, double, (x,)).sum()
            company.transports[1].faults = Faults(
                drop_answer=1.0, kinds=frozenset({"PropagateGradients"})
            )
            for _ in range(2):
                dist_autograd.backward(context_id, [loss], retain_graph=True)
            assert gradient(context_id, x) == 4.0
            assert company.scheduler.now_ns() < 1e9

    company.run(program, idle)
    assert_nothing_is_left(company, [0, 1])


def test_gradients_that_take_long_are_not_taken_for_lost():
    company = Company(0, Listening)

    def program():
        x = leaf(1)
        with dist_autograd.context() as context_id, warnings.catch_warnings():
            warnings.simplefilter("ignore")
            loss = rpc.rpc_sync(1, double, (x,)).sum()
            for transport in company.transports:
                transport.faults = Faults(
                    delay=1.0,
                    longest_delay_s=28.0,
                    kinds=frozenset({"PropagateGradients"}),
                )
            dist_autograd.backward(context_id, [loss])
            assert gradient(context_id, x) == 2.0

    company.run(program, idle)


def test_large_gradients_may_take_a_second_a_megabyte_before_they_are_lost():
    company = Company(1, Listening)
    num_bytes = 100_000_000

    def program():
        x = gv.zeros(num_bytes // 4, requires_grad=True)  # float32
        with dist_autograd.context() as context_id, warnings.catch_warnings():
            warnings.simplefilter("ignore")
            loss = rpc.rpc_sync(1, double, (x,)).sum()
            company.transports[1].faults = Faults(
                delay=1.0,
                longest_delay_s=200.0,
                kinds=frozenset({"PropagateGradients"}),
            )
            dist_autograd.backward(context_id, [loss], retain_graph=True)
            took_s = company.scheduler.now_ns() / 1e9
            assert (
                70 < took_s < 100
            )  # longer than two looks, shorter than a second each
            company.transports[1].faults = Faults(
                drop=1.0, kinds=frozenset({"PropagateGradients"})
            )
            with pytest.raises(RuntimeError, match="lost on their way: gradients"):
                dist_autograd.backward(context_id, [loss], retain_graph=True)
            assert 100 < company.scheduler.now_ns() / 1e9 - took_s < 170
            company.transports[1].faults = Faults()

    company.run(program, idle)
