"""Programs of test workers that are processes of their own."""

import importlib
import itertools
import os
import signal
import sys
import time

import pytest

import gradviz as gv
from gradviz.distributed import autograd as dist_autograd
from gradviz.distributed import rpc
from tests.distributed.called import leaf
from tests.distributed.waiting import until


@rpc.register
def strike(x, how, rank):
    """Double, on a worker whose backward strikes it down."""
    return Strikes.apply(x, how, rank)


class Strikes(gv.autograd.Function):
    """Kills or stops its process in the backward."""

    @staticmethod
    def forward(ctx, x, how, rank):
        ctx.how, ctx.rank = how, rank
        return x * 2

    @staticmethod
    def backward(ctx, grad):
        if ctx.rank == rpc.get_worker_info().id:
            os.kill(os.getpid(), getattr(signal, ctx.how))
            time.sleep(60)
        return grad * 2, None, None


@rpc.register
def doubled(x):
    return x * 2


def backward_of(call, to):
    x = leaf(1, 2)
    with dist_autograd.context() as context_id:
        loss = call(to, x).sum()
        dist_autograd.backward(context_id, [loss], timeout=30)
        return dist_autograd.get_gradients(context_id)[x].tolist()


def good(rank):
    rpc.init()
    if rank == 0:
        for to in range(1, len(rpc.current_worker().infos)):
            found = backward_of(lambda to, x: rpc.rpc_sync(to, doubled, (x,)), to)
            assert found == [2.0, 2.0]
    rpc.shutdown()


def leaving(rank):
    """Worker 1 is gone before it is one."""
    if rank == 1:
        sys.exit(3)
    rpc.init()


def struck(rank, how):
    """Worker 1 is struck down in mid-backward; the others go on."""
    rpc.init()
    if rank == 0:
        began = time.monotonic()
        with pytest.raises(RuntimeError, match="node 1 is down"):
            backward_of(lambda to, x: rpc.rpc_sync(to, strike, (x, how, 1)), 1)
        assert time.monotonic() - began < 25
        found = backward_of(lambda to, x: rpc.rpc_sync(to, doubled, (x,)), 2)
        assert found == [2.0, 2.0]
        assert {*dist_autograd.debug_info().values()} == {0}
    rpc.shutdown()


def killed(rank):
    struck(rank, "SIGKILL")


def stopped(rank):
    struck(rank, "SIGSTOP")


@rpc.register
def end_at_last(x, rank, how):
    """Double, on a worker that comes to an end when all others go back through it."""
    return EndsAtLast.apply(x, rank, how)


class EndsAtLast(gv.autograd.Function):
    """Waits in the backward until all others are there, and ends its worker then."""

    arrived = itertools.count(1)

    @staticmethod
    def forward(ctx, x, rank, how):
        ctx.rank, ctx.how = rank, how
        return x * 2

    @staticmethod
    def backward(ctx, grad):
        if ctx.rank == rpc.get_worker_info().id:
            if next(EndsAtLast.arrived) == len(rpc.current_worker().infos) - 1:
                # The parent of an actor's process is the raylet of its node.
                pid = os.getppid() if ctx.how == "node" else os.getpid()
                os.kill(pid, signal.SIGSTOP if ctx.how == "SIGSTOP" else signal.SIGKILL)
            time.sleep(600)
        return grad * 2, None, None


def serving(rank):
    """A worker that does what others ask, as long as there are any."""
    rpc.init()
    rpc.shutdown(timeout=None)


@rpc.register
def doubled_by(x, rank):
    """Double twice, the second time by calling another worker."""
    return rpc.rpc_sync(rank, doubled, (x * 2,))


@rpc.register
def backward_through(rank):
    """A gradient that came through another worker, of a pass that begins here."""
    return backward_of(lambda to, x: rpc.rpc_sync(to, doubled, (x,)), rank)


@rpc.register
def node_id():
    return importlib.import_module("ray").get_runtime_context().get_node_id()


def spread(rank):
    """Each worker is on another node."""
    rpc.init()
    others = range(len(rpc.current_worker().infos))
    assert len({rpc.rpc_sync(one, node_id) for one in others}) == len(others)
    rpc.shutdown()


def one_ends(rank, how, head):
    """One that is not on the head's node ends in mid-backward of all others."""
    rpc.init()
    ranks = range(len(rpc.current_worker().infos))
    victim = next(one for one in ranks[1:] if rpc.rpc_sync(one, node_id) != head)
    if rank == victim:
        rpc.rpc_sync(rank, forever, timeout=None)
    with pytest.raises(RuntimeError, match=f"node {victim} is down"):  # within 30 s
        backward_of(lambda to, x: rpc.rpc_sync(to, end_at_last, (x, to, how)), victim)
    survivor = next(one for one in ranks if one not in {rank, victim})
    found = backward_of(lambda to, x: rpc.rpc_sync(to, doubled, (x,)), survivor)
    assert found == [2.0, 2.0]
    until(lambda: not any(dist_autograd.debug_info().values()))  # others go on here
    rpc.shutdown()


def raising(rank):
    if rank == 1:
        raise ValueError("no\ud800 luck")


def given(rank, words, factor, argv):
    assert sys.argv == argv
    rpc.init(f"{words} {rank}")
    if rank == 0:
        others = range(1, len(rpc.current_worker().infos))
        found = [
            backward_of(lambda to, x: rpc.rpc_sync(to, doubled, (x,)), to)
            for to in others
        ]
        assert found == [[2.0, 2.0]] * len(others)
        assert factor == [2, "three"]
        assert rpc.get_worker_info(f"{words} 1").id == 1
    rpc.shutdown()


def waiting_for_one_that_raises(rank):
    if rank == 1:
        raise ValueError("no luck")
    with pytest.raises(rpc.PeerDownError, match=r"node 1 is down: .*no luck"):
        rpc.init()


def leaving_without_a_word(rank):
    if rank == 1:
        rpc.init()
        return
    with pytest.raises(RuntimeError, match="node 1 is down: its function ended"):
        meet_and_wait()


def meet_and_wait():
    rpc.init()  # for which it may be too late already
    rpc.rpc_sync(1, forever)


@rpc.register
def forever():
    return rpc.Future(rpc.current_worker().sync)
