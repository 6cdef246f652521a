"""Several workers as real threads: what a scheduler of tests cannot have."""

import threading

import pytest

import gradviz as gv
from gradviz.distributed import autograd as dist_autograd
from gradviz.distributed import rpc
from tests.distributed.called import leaf
from tests.distributed.company import idle
from tests.distributed.connected import Connected


@pytest.fixture(params=["inproc", "unix"])
def run(request):
    """Runs a program on each of several workers."""
    return Connected(request.param).run


@rpc.register
def bounce(x, times):
    if not times:
        return x * 2
    return rpc.rpc_sync(1 - rpc.get_worker_info().id, bounce, (x, times - 1))


def test_two_hundred_calls_inside_each_other_have_their_gradients(run):
    def program():
        x = leaf(3)
        with dist_autograd.context() as context_id:
            dist_autograd.backward(context_id, [bounce(x, 200).sum()], timeout=60)
            assert dist_autograd.get_gradients(context_id)[x].tolist() == [2.0]

    run(program, idle)


@rpc.register
def on_a_device(x):
    moved = x.to("sim:0")
    return (moved * moved).to("cpu") * 3


@pytest.mark.parametrize("root_is_on_a_device", [True, False])
def test_a_pass_goes_from_the_cpu_to_a_device_and_back(run, root_is_on_a_device):
    def program():
        x = leaf(1, 2)
        for _ in range(3):
            with dist_autograd.context() as context_id:
                y = rpc.rpc_sync(1, on_a_device, (x * 1,))
                loss = (y.to("sim:0") if root_is_on_a_device else y).sum()
                dist_autograd.backward(context_id, [loss], timeout=60)
                found = dist_autograd.get_gradients(context_id)[x]
                assert found.tolist() == [6.0, 12.0]

    run(program, idle)


@rpc.register
def scaled(x, by):
    return x * by


def test_many_threads_of_many_workers_each_have_their_own_gradients(run):
    def hammer(rank):
        def one(number):
            for _ in range(3):
                with dist_autograd.context() as context_id:
                    x = leaf(1)
                    loss = rpc.rpc_sync(0, scaled, (x, number)).sum()
                    dist_autograd.backward(context_id, [loss], timeout=60)
                    found[number] = dist_autograd.get_gradients(context_id)[x].item()

        def program():
            worker = rpc.current_worker()

            def inside(number):
                with worker.entered():
                    one(number)

            numbers = range(rank * 100, rank * 100 + 20)
            threads = [threading.Thread(target=inside, args=(n,)) for n in numbers]
            for thread in threads:
                thread.start()
            for thread in threads:
                thread.join(60)

        return program

    found = {}
    run(idle, *(hammer(rank) for rank in (1, 2, 3)))

    assert len(found) == 60
    assert all(found[number] == number for number in found)


def test_fifty_failed_passes_leave_nothing_that_49_good_ones_could_meet(run):
    def fail(grad):
        if fails[0]:
            raise RuntimeError("Simulate error on backward pass")

    def program():
        x = leaf(1)
        with dist_autograd.context() as context_id:
            near = rpc.rpc_sync(1, scaled, (x, 2))
            near.register_hook(fail)
            loss = rpc.rpc_sync(2, scaled, (near, 3)).sum()
            for _ in range(50):
                with pytest.raises(RuntimeError, match=r"^Error on Node 0: Simulate"):
                    dist_autograd.backward(context_id, [loss], retain_graph=True)
            assert x not in dist_autograd.get_gradients(context_id)
            fails[0] = False
            for count in range(1, 50):
                dist_autograd.backward(context_id, [loss], retain_graph=True)
                total = dist_autograd.get_gradients(context_id)[x].item()
                assert total == 6.0 * count

    fails = [True]
    run(program, idle, idle)


@pytest.mark.stress
def test_a_thousand_backwards_add_up(run):
    def program():
        x = leaf(1)
        with dist_autograd.context() as context_id:
            loss = rpc.rpc_sync(1, scaled, (x, 2)).sum()
            for _ in range(1000):
                dist_autograd.backward(context_id, [loss], retain_graph=True)
            assert dist_autograd.get_gradients(context_id)[x].item() == 2000.0

    run(program, idle)


def test_a_recording_of_workers_is_a_possible_history(run):
    def program():
        x = leaf(1, 2)
        with dist_autograd.context() as context_id:
            loss = rpc.rpc_sync(1, scaled, (x, 3)).sum()
            dist_autograd.backward(context_id, [loss], timeout=60)

    with gv.record() as recording:
        run(program, idle)

    names = {node.name for node in recording.trace.nodes.values()}
    assert {"SendRpcBackward", "RecvRpcBackward"} <= names
