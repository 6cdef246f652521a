"""The cases of PyTorch's tests of distributed autograd, by its groups A to I."""

import random
import re

import pytest

import gradviz as gv
from gradviz.distributed import autograd as dist_autograd
from gradviz.distributed import rpc
from gradviz.distributed.messaging.ids import worker_of
from gradviz.engine import AccumulateGrad
from tests.distributed.called import (
    PARAMETERS,
    add,
    add_on,
    counts,
    double,
    failing,
    failing_on,
    gradients_of_parameters,
    leaf,
    parameter,
    raise_value_error,
    same,
    times_parameter,
)
from tests.distributed.company import Company, idle
from tests.distributed.connected import Connected
from tests.distributed.expressions import evaluate, plan_of, value_of
from tests.distributed.waiting import until

NOTHING = {"num_current_backward_passes": 0, "num_autograd_contexts": 0}


def gradients(context_id, *leaves):
    found = dist_autograd.get_gradients(context_id)
    return [found[one].tolist() for one in leaves]


def num_passes(worker):
    return rpc.rpc_sync(worker, counts)["num_current_backward_passes"]


def sends(context_id):
    worker = rpc.current_worker()
    return [*worker.container.retrieve_context(context_id).send_functions().values()]


# --- A: ids of contexts -----------------------------------------------------------


def test_contexts_are_numbered_by_their_worker_and_gone_after_their_block(company):
    def program():
        rank = rpc.get_worker_info().id
        seen = set()
        for _ in range(200):
            with dist_autograd.context() as context_id:
                assert worker_of(context_id) == rank
                seen.add(context_id)
                dist_autograd.get_gradients(context_id)
            with pytest.raises(
                RuntimeError,
                match=f"Could not find autograd context with id: {context_id}",
            ):
                dist_autograd.get_gradients(context_id)
        assert len(seen) == 200

    company.run(program, program)


def test_a_context_inside_a_context_is_refused_and_the_outer_one_goes_on(company):
    def program():
        with dist_autograd.context() as context_id:
            with (
                pytest.raises(
                    RuntimeError,
                    match="Already have an autograd context id for this thread",
                ),
                dist_autograd.context(),
            ):
                pass
            assert dist_autograd.get_gradients(context_id) == {}

    company.run(program)


@rpc.register
def my_context():
    return rpc.current_worker().container.current_id()


@rpc.register
def my_context_later():
    return rpc.rpc_async(0, my_context).then(
        lambda done: (done.value(), rpc.current_worker().container.current_id())
    )


def test_calls_and_continuations_run_in_the_context_of_their_caller(
    company,
):
    def program():
        with dist_autograd.context() as context_id:
            assert rpc.rpc_sync(1, my_context) == context_id
            assert rpc.rpc_sync(1, my_context_later) == (context_id, context_id)
        assert rpc.rpc_sync(1, my_context) is None

    company.run(program, idle)


# --- B: cleaning up ---------------------------------------------------------------


@pytest.mark.parametrize("needs_grad", [True, False])
def test_a_context_that_ends_is_forgotten_by_everybody_it_came_to(company, needs_grad):
    def program():
        x = gv.tensor([1.0], requires_grad=needs_grad)
        with dist_autograd.context():
            rpc.rpc_sync(1, add_on, ([2], x, x))
            rpc.rpc_sync(1, same)
            assert [
                rpc.rpc_sync(n, counts)["num_autograd_contexts"] for n in (1, 2)
            ] == [
                1,
                1,
            ]
        with pytest.raises(AssertionError):  # the call itself is in no context now
            assert rpc.rpc_sync(1, counts)["num_autograd_contexts"]
        until(lambda: all(rpc.rpc_sync(n, counts) == NOTHING for n in (1, 2)))

    company.run(program, idle, idle)


# --- C: the shape of graphs -------------------------------------------------------


@rpc.register
def shape_here(x, y):
    """A sum, the nodes that it came from, and how many sends there are here."""
    total = x + y
    recvs = {one for one, _ in total.grad_fn.next_edges}
    return total, [one.name() for one in recvs], len(sends(my_context()))


def test_a_call_has_a_send_and_a_receive_on_either_side(company):
    def program():
        with dist_autograd.context() as context_id:
            x, y = leaf(1), leaf(2)
            total, recvs, num_sends = rpc.rpc_sync(1, shape_here, (x, y))
            (send,) = sends(context_id)
            assert total.grad_fn.name() == "RecvRpcBackward"
            assert send.name() == "SendRpcBackward"
            ends = [node for node, _ in send.next_edges]
            assert all(isinstance(one, AccumulateGrad) for one in ends)
            assert [one.leaf for one in ends] == [x, y]
            assert recvs == ["RecvRpcBackward"]
            assert num_sends == 0  # its answer had not been sent yet
        with dist_autograd.context() as context_id:
            (total,) = rpc.rpc_sync(1, same, (gv.tensor([1.0]),))
            assert (sends(context_id), total.grad_fn) == ([], None)

    company.run(program, idle)


@rpc.register
def num_sends_here():
    return len(sends(my_context()))


def call_sync(x):
    return rpc.rpc_sync(1, times_parameter, (x,))


def call_async(x):
    return rpc.rpc_async(1, times_parameter, (x,)).wait()


def call_remote(x):
    return rpc.remote(1, times_parameter, (x,)).to_here()


def fetch_parameter(_):
    return rpc.remote(1, parameter).to_here()


def call_itself(x):
    return rpc.rpc_sync(0, double, (x,))


def call_where_the_callee_needs_no_gradient(x):
    return rpc.rpc_sync(1, times_parameter, (x.detach(),))


WAYS = [
    call_sync,
    call_async,
    call_remote,
    fetch_parameter,
    call_itself,
    call_where_the_callee_needs_no_gradient,
]


def test_nothing_is_recorded_outside_of_contexts(company):
    def program():
        assert rpc.rpc_sync(1, double, (leaf(1),)).is_leaf

    company.run(program, idle)


@pytest.mark.parametrize("mode", [gv.no_grad, gv.inference_mode])
@pytest.mark.parametrize("way", WAYS)
def test_a_call_without_grad_mode_is_recorded_on_neither_side(company, way, mode):
    PARAMETERS.clear()
    PARAMETERS.update({1: [leaf(5, 7)]})

    def program():
        x, factor = leaf(1, 2), leaf(3, 4)
        with dist_autograd.context() as context_id:
            with mode():
                y = way(x)
            assert (y.grad_fn, y.requires_grad, y.is_inference()) == (None, True, False)
            assert sends(context_id) == []
            assert rpc.rpc_sync(1, num_sends_here) == 0
            dist_autograd.backward(context_id, [(y * factor).sum()])
            assert gradients(context_id, factor, y) == [y.tolist(), [3.0, 4.0]]
            assert x not in dist_autograd.get_gradients(context_id)
            assert rpc.rpc_sync(1, gradients_of_parameters, (context_id,)) == [None]

    company.run(program, idle)


@pytest.mark.parametrize("way", WAYS)
def test_a_call_without_grad_mode_does_not_hold_up_those_that_are_recorded(
    company, way
):
    PARAMETERS.clear()
    PARAMETERS.update({1: [leaf(5, 7)]})

    def program():
        x = leaf(1, 2)
        with dist_autograd.context() as context_id:
            with gv.no_grad():
                way(x)
            y = call_sync(x)
            with gv.no_grad():
                way(x)
            dist_autograd.backward(context_id, [y.sum()], timeout=20)
            assert gradients(context_id, x) == [[5.0, 7.0]]
            (found,) = rpc.rpc_sync(1, gradients_of_parameters, (context_id,))
            assert found.tolist() == [1.0, 2.0]

    company.run(program, idle)


def test_the_grad_mode_of_the_call_counts_and_not_that_of_the_wait(company):
    def program():
        x = leaf(1)
        with dist_autograd.context():
            with gv.no_grad():
                silent = rpc.rpc_async(1, double, (x,))
                continued = rpc.rpc_async(1, double, (x,)).then(
                    lambda done: done.value() * 3
                )
            recorded = rpc.rpc_async(1, double, (x,))
            assert silent.wait().is_leaf
            assert not continued.wait().requires_grad
            with gv.no_grad():
                assert recorded.wait().grad_fn.name() == "RecvRpcBackward"

    company.run(program, idle)


@rpc.register
def modes_here(x):
    return gv.is_grad_enabled(), gv.is_inference_mode_enabled(), x.requires_grad


@rpc.register
def modes_there(x):
    return rpc.rpc_sync(2, modes_here, (x,))


@pytest.mark.parametrize("mode", [gv.no_grad, gv.inference_mode])
def test_grad_mode_does_not_travel_with_a_call(company, mode):
    def program():
        with dist_autograd.context(), mode():
            assert rpc.rpc_sync(1, modes_here, (leaf(1),)) == (True, False, True)
            assert rpc.rpc_sync(1, modes_there, (leaf(1),)) == (True, False, True)

    company.run(program, idle, idle)


@rpc.register
def give_without_grad_mode(x):
    with gv.no_grad():
        return x * parameter(), parameter()


def test_a_result_made_under_no_grad_needs_no_gradient_but_a_returned_parameter_does(
    company,
):
    PARAMETERS.clear()
    PARAMETERS.update({1: [leaf(5, 7)]})

    def program():
        x = gv.tensor([1.0, 2.0])
        with dist_autograd.context() as context_id:
            made, given = rpc.rpc_sync(1, give_without_grad_mode, (x,))
            assert not made.requires_grad
            dist_autograd.backward(context_id, [(given * made).sum()])
            (found,) = rpc.rpc_sync(1, gradients_of_parameters, (context_id,))
            assert found.tolist() == [5.0, 14.0]

    company.run(program, idle)


def test_lists_keep_their_order_whichever_tensors_need_gradients(company):
    def program():
        values = [leaf(1), gv.tensor([2.0]), leaf(3), gv.tensor([4.0])]
        with dist_autograd.context() as context_id:
            (back,) = rpc.rpc_sync(1, same, (values,))
            assert [one.item() for one in back] == [1, 2, 3, 4]
            assert [one.requires_grad for one in back] == [True, False, True, False]
            dist_autograd.backward(context_id, [(back[0] * 5 + back[2] * 7).sum()])
            assert gradients(context_id, values[0], values[2]) == [[5.0], [7.0]]

    company.run(program, idle)


# --- D: the gradients are those of one process ---------------------------------------


@pytest.mark.parametrize("hops", [[1], [0], [1, 2], [1, 0], [1, 2, 0, 1, 0]])
def test_gradients_come_back_over_every_hop(company, hops):
    def program():
        x, y = leaf(1, 2), leaf(3, 4)
        with dist_autograd.context() as context_id:
            total = rpc.rpc_sync(hops[0], add_on, (hops[1:], x, y * x))
            dist_autograd.backward(context_id, [(total * total).sum()])
            found = gradients(context_id, x, y)
        (x + y * x).pow(2).sum().backward()
        assert found == [x.grad.tolist(), y.grad.tolist()]

    company.run(program, idle, idle)


def test_parameters_elsewhere_have_their_gradients_there(company):
    PARAMETERS.clear()
    PARAMETERS.update({1: [leaf(2, 3)], 2: [leaf(5, 7)]})

    def program():
        x = leaf(1, 1)
        with dist_autograd.context() as context_id:
            y = rpc.rpc_sync(1, times_parameter, (x,))
            loss = rpc.rpc_sync(2, times_parameter, (y,)).sum()
            dist_autograd.backward(context_id, [loss])
            assert gradients(context_id, x) == [[10.0, 21.0]]
            found = [
                rpc.rpc_sync(n, gradients_of_parameters, (context_id,))[0].tolist()
                for n in (1, 2)
            ]
            assert found == [[5.0, 7.0], [2.0, 3.0]]
        assert all(one.grad is None for values in PARAMETERS.values() for one in values)

    company.run(program, idle, idle)


def test_references_are_followed_within_the_graph(company):
    PARAMETERS.clear()
    PARAMETERS.update({1: [leaf(2, 3)]})

    def program():
        with dist_autograd.context() as context_id:
            rref = rpc.remote(1, parameter)
            x = leaf(4, 5)
            dist_autograd.backward(context_id, [(rref.to_here() * x).sum()])
            assert gradients(context_id, x) == [[2.0, 3.0]]
            (found,) = rpc.rpc_sync(1, gradients_of_parameters, (context_id,))
            assert found.tolist() == [4.0, 5.0]

    company.run(program, idle)


def test_several_trainers_each_have_their_own_gradients_of_one_parameter(company):
    PARAMETERS.clear()
    PARAMETERS.update({0: [leaf(1, 1)]})

    def trainer():
        me = rpc.get_worker_info().id
        for _ in range(3):
            with dist_autograd.context() as context_id:
                w = rpc.rpc_sync(0, parameter)
                dist_autograd.backward(context_id, [(w * me).sum()])
                (found,) = rpc.rpc_sync(0, gradients_of_parameters, (context_id,))
                assert found.tolist() == [float(me)] * 2

    company.run(idle, trainer, trainer, trainer)


def test_a_gradient_of_no_dimensions_comes_back(company):
    def program():
        x = gv.tensor(3.0, requires_grad=True)
        with dist_autograd.context() as context_id:
            loss = rpc.rpc_sync(1, double, (x,)) / 4
            dist_autograd.backward(context_id, [loss])
            assert gradients(context_id, x) == [0.5]

    company.run(program, idle)


def test_several_roots_and_a_graph_without_calls(company):
    def program():
        x = leaf(2)
        with dist_autograd.context() as context_id:
            dist_autograd.backward(context_id, [(x * 3).sum(), (x * x).sum()])
            assert gradients(context_id, x) == [[7.0]]

    company.run(program)


@pytest.mark.parametrize(
    "seed",
    [
        *range(8),
        119,  # a worker is asked before it knows all others
        *(pytest.param(seed, marks=pytest.mark.stress) for seed in range(8, 119)),
    ],
)
def test_a_random_expression_over_workers_has_the_gradients_of_one_process(seed):
    generator = random.Random(seed)
    size = generator.randint(2, 4)
    plan = plan_of(generator, range(size), 4)
    numbers = [[generator.randint(-3, 3) for _ in range(2)] for _ in range(3)]
    leaves = [leaf(*one) for one in numbers]
    expected = [leaf(*one) for one in numbers]
    (value_of(plan, expected) + sum(expected)).sum().backward()

    def program():
        with dist_autograd.context() as context_id:
            loss = (evaluate(plan, [*leaves]) + sum(leaves)).sum()
            dist_autograd.backward(context_id, [loss], timeout=60)
            assert gradients(context_id, *leaves) == [
                one.grad.tolist() for one in expected
            ]

    Company(seed).run(program, *[idle] * (size - 1))


# --- E: adding up -----------------------------------------------------------------


def test_gradients_of_several_backwards_add_up_in_the_context_alone(company):
    def program():
        x = leaf(1, 2)
        with dist_autograd.context() as context_id:
            loss = rpc.rpc_sync(1, double, (x,)).sum()
            for count in range(1, 4):
                dist_autograd.backward(context_id, [loss], retain_graph=True)
                assert gradients(context_id, x) == [[2.0 * count] * 2]
            dist_autograd.backward(context_id, [loss])
            with pytest.raises(RuntimeError, match="Error on Node 0"):
                dist_autograd.backward(context_id, [loss])
        assert x.grad is None

    company.run(program, idle)


# --- F: hooks ---------------------------------------------------------------------


def test_hooks_of_a_leaf_and_of_its_node_are_called(company):
    def program():
        x, called = leaf(1, 2), []
        x.register_hook(lambda grad: grad * 2)
        x.register_post_accumulate_grad_hook(lambda _: called.append("stored"))
        y = x * 1
        node = y.grad_fn.next_edges[0].node
        node.register_prehook(lambda grads: called.append(("pre", grads[0].tolist())))
        node.register_hook(lambda outputs, grads: called.append((outputs, len(grads))))
        with dist_autograd.context() as context_id:
            loss = rpc.rpc_sync(1, double, (y,)).sum()
            dist_autograd.backward(context_id, [loss])
            assert gradients(context_id, x) == [[4.0, 4.0]]
        assert called == [("pre", [4.0, 4.0]), ((), 1)]

    company.run(program, idle)


# --- G: errors --------------------------------------------------------------------


@pytest.mark.parametrize(
    ("roots", "kind", "words"),
    [
        (lambda x: [], RuntimeError, "No tensors provided for gradient computation."),
        (lambda x: [x.sum().detach()], RuntimeError, "requires_grad not set on root"),
        (
            lambda x: [x * 2],
            RuntimeError,
            "is not a scalar, all roots need to be scalar",
        ),
        (
            lambda x: [leaf(1)],
            RuntimeError,
            "does not have a valid gradient function.",
        ),
        (lambda x: None, TypeError, "expected a sequence of tensors"),
        (lambda x: x.sum(), TypeError, "expected a sequence of tensors"),
        (lambda x: [1], TypeError, "expected a tensor"),
    ],
)
def test_an_invalid_root_is_refused_and_leaves_nothing(company, roots, kind, words):
    def program():
        with dist_autograd.context() as context_id:
            with pytest.raises(kind, match=re.escape(words)):
                dist_autograd.backward(context_id, roots(leaf(1, 2)))
            assert dist_autograd.debug_info() == {**NOTHING, "num_autograd_contexts": 1}

    company.run(program)


def test_an_unknown_context_is_refused(company):
    def program():
        with pytest.raises(
            RuntimeError, match="Could not find autograd context with id: 5"
        ):
            dist_autograd.backward(5, [leaf(1).sum()])

    company.run(program)


@pytest.mark.parametrize(
    ("hops", "chain"),
    [
        ([0], "Error on Node 0: "),
        ([1], "Error on Node 0: Error on Node 1: "),
        ([1, 2], "Error on Node 0: Error on Node 1: Error on Node 2: "),
    ],
)
def test_an_error_names_all_nodes_on_its_way_and_leaves_no_pass(company, hops, chain):
    def program():
        x = leaf(1)
        with dist_autograd.context() as context_id:
            loss = failing_on(hops if hops != [0] else [], x).sum()
            for _ in range(3):
                with pytest.raises(RuntimeError) as caught:
                    dist_autograd.backward(context_id, [loss], retain_graph=True)
                assert str(caught.value) == chain + "Simulate error on backward pass"
            until(lambda: not any(num_passes(n) for n in (1, 2)))

    company.run(program, idle, idle)


def test_an_error_in_the_forward_leaves_no_context(company):
    def program():
        with pytest.raises(ValueError, match="no"), dist_autograd.context():
            rpc.rpc_sync(1, raise_value_error, ("no",))

    company.run(program, idle)


def check_that_what_is_not_used_is_named(company):
    def program():
        with dist_autograd.context() as context_id:
            rpc.rpc_sync(1, double, (leaf(1),))
            used = rpc.rpc_sync(1, add, (leaf(1), leaf(2)))
            with pytest.raises(
                RuntimeError,
                match=r"did not end within 5 s; no gradients came for message 0 to "
                r"node 1 \(function tests.distributed.called.double\); node 1 waits "
                r"for those of message \d+ to node 0 \(function \S+called.double\)$",
            ):
                dist_autograd.backward(context_id, [used.sum()], timeout=5)
            assert dist_autograd.debug_info()["num_current_backward_passes"] == 0

    company.run(program, idle)


def test_a_tensor_that_was_sent_and_not_used_is_named_when_time_is_over(scheduled):
    check_that_what_is_not_used_is_named(scheduled)


@pytest.mark.stress
def test_a_tensor_that_was_sent_over_a_socket_and_not_used_is_named():
    check_that_what_is_not_used_is_named(Connected())


def test_a_local_backward_through_what_came_from_elsewhere_says_what_to_call(company):
    def program():
        with dist_autograd.context():
            loss = rpc.rpc_sync(1, double, (leaf(1),)).sum()
            with pytest.raises(RuntimeError, match=r"distributed\.autograd\.backward"):
                loss.backward()

    company.run(program, idle)


# --- better than the original ---------------------------------------------------------


def test_an_innocent_node_is_not_left_waiting_when_another_one_fails(company):
    """PyTorch issue 27643: what was sent to the node that fails is never fed."""

    def program():
        with dist_autograd.context() as context_id:
            x = rpc.rpc_sync(2, double, (leaf(1),))
            bad = rpc.rpc_sync(1, failing, (x,))
            good = rpc.rpc_sync(2, double, (x,))
            with pytest.raises(RuntimeError, match="Error on Node 1: Simulate error"):
                dist_autograd.backward(context_id, [(bad + good).sum()])
            until(lambda: not any(num_passes(n) for n in range(3)))

    company.run(program, idle, idle)


def test_good_passes_after_failed_ones_have_the_right_gradients(company):
    """PyTorch: a late gradient begins the failed pass anew, 29 times of 30."""

    def program():
        x, fails = leaf(1), [True]

        def fail(grad):
            if fails[0]:
                raise RuntimeError("Simulate error on backward pass")

        with dist_autograd.context() as context_id:
            y = rpc.rpc_sync(1, double, (x,))
            y.register_hook(fail)
            slow = rpc.rpc_sync(2, double, (rpc.rpc_sync(1, double, (x,)),))
            loss = (y + slow).sum()
            for _ in range(5):
                fails[0] = True
                with pytest.raises(RuntimeError, match="Simulate error"):
                    dist_autograd.backward(context_id, [loss], retain_graph=True)
                fails[0] = False
                before = dist_autograd.get_gradients(context_id).get(x)
                start = 0.0 if before is None else before.item()
                dist_autograd.backward(context_id, [loss], retain_graph=True)
                (total,) = gradients(context_id, x)
                assert total[0] - start == 6.0

    company.run(program, idle, idle)


def test_releasing_a_context_elsewhere_fails_the_pass_and_leaves_nothing(company):
    def program():
        released = []

        def release(grad):
            if not released:
                released.append(my_context())
                container = rpc.current_worker().container
                container.release_context_if_present(context_id)

        with dist_autograd.context() as context_id:
            x = leaf(1)
            y = x * 2
            y.register_hook(release)
            loss = rpc.rpc_sync(1, double, (y,)).sum()
            with pytest.raises(RuntimeError, match="released during backward"):
                dist_autograd.backward(context_id, [loss])

    company.run(program, idle)


def test_a_call_that_comes_after_the_end_of_its_context_makes_none(company):
    def program():
        with dist_autograd.context() as context_id:
            pass
        container = rpc.current_worker().container
        with pytest.raises(RuntimeError, match="released before a call"):
            container.get_or_create_context(context_id)

    company.run(program)


# --- H: workers that die ------------------------------------------------------------


@pytest.mark.parametrize("victim", [1, 2])
def test_a_worker_that_dies_in_mid_backward_makes_the_root_raise(company, victim):
    def program():
        with dist_autograd.context() as context_id:
            x = leaf(1)
            y = x * 2

            def die(grad):
                company.kill(victim)

            total = rpc.rpc_sync(1, add_on, ([2], y, y))
            total.register_hook(die)
            with pytest.raises(
                RuntimeError, match=f"Error on Node 0: .*node {victim} is down"
            ):
                dist_autograd.backward(context_id, [total.sum()])
            survivor = 3 - victim
            until(lambda: not num_passes(survivor))
            again = rpc.rpc_sync(survivor, double, (x,)).sum()
            with pytest.raises(RuntimeError, match=f"node {victim} is down"):
                dist_autograd.backward(context_id, [again])
        with dist_autograd.context() as context_id:
            loss = rpc.rpc_sync(3 - victim, double, (x,)).sum()
            dist_autograd.backward(context_id, [loss])
            assert gradients(context_id, x) == [[2.0]]

    company.run(program, idle, idle, dies=(victim,))


def test_a_call_in_a_context_whose_maker_is_gone_is_refused(company):
    done = []

    def lose_one():
        rpc.rpc_sync(1, counts)
        company.transports[0].lose(1, "it seemed so")
        until(lambda: done)

    def maker():
        until(lambda: not company.transports[0].alive()[1])
        with (
            dist_autograd.context(),
            pytest.raises(RuntimeError, match="node 1 is down, which has made auto"),
        ):
            rpc.rpc_sync(2, add_on, ([0], leaf(1), leaf(2)))
        done.append(True)

    company.run(lose_one, maker, lambda: until(lambda: done))
