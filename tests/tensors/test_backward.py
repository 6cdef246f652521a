import threading

import pytest

import gradviz as gv


def test_gradients_add_up_in_place():
    x = gv.tensor([1.0, 2.0], requires_grad=True)
    (x * x).sum().backward()
    grad = x.grad

    (x * 3).sum().backward()

    assert x.grad is grad
    assert grad.tolist() == [5.0, 7.0]


def test_a_gradient_is_not_shared_between_leaves():
    x, y = gv.ones(2, requires_grad=True), gv.ones(2, requires_grad=True)
    (x + y).backward(gv.ones(2))

    x.grad.zero_()

    assert y.grad.tolist() == [1.0, 1.0]


def test_a_given_gradient_is_not_changed_later():
    x, first = gv.ones(2, requires_grad=True), gv.ones(2)
    (x + 0).backward(first)

    (x + 0).backward(first)

    assert x.grad.tolist() == [2.0, 2.0]
    assert first.tolist() == [1.0, 1.0]


def test_a_shared_leaf_gets_the_sum_of_its_gradients():
    w = gv.tensor([2.0], requires_grad=True)

    (w * w * w).sum().backward()

    assert w.grad.tolist() == [12.0]


def test_several_outputs_start_one_pass():
    x = gv.tensor([1.0, 2.0], requires_grad=True)

    gv.autograd.backward([x.sum(), x * 2], [None, gv.tensor([10.0, 100.0])])

    assert x.grad.tolist() == [21.0, 201.0]


def test_a_leaf_is_an_output_too():
    x = gv.ones((), requires_grad=True)

    x.backward()

    assert x.grad.item() == 1.0


def test_only_the_inputs_asked_for_get_gradients():
    x, y = gv.ones(1, requires_grad=True), gv.ones(1, requires_grad=True)
    product = x * y

    (product * 3).sum().backward(inputs=[x, product])

    assert x.grad.tolist() == [3.0]
    assert product.grad.tolist() == [3.0]
    assert y.grad is None


def test_the_same_accumulator_serves_all_uses_of_a_leaf():
    x = gv.ones(1, requires_grad=True)

    y, z = x * 2, x * 3

    assert y.grad_fn.next_functions[0][0] is z.grad_fn.next_functions[0][0]


def test_a_leaf_used_by_many_threads_at_once_has_one_accumulator():
    x = gv.ones(1, requires_grad=True)
    results, gate = [], threading.Barrier(8)

    def use():
        gate.wait()
        results.append(x * 2)

    threads = [threading.Thread(target=use) for _ in range(8)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()

    assert len({y.grad_fn.next_edges[0].node for y in results}) == 1


def test_a_graph_over_three_devices_gives_the_gradients_of_one():
    def gradients(first, second):
        x = gv.tensor([[1.0, 2.0]], requires_grad=True)
        a = gv.tensor([[1.0], [2.0]], device=first, requires_grad=True)
        b = gv.tensor([[3.0], [4.0]], device=second, requires_grad=True)
        left = (x.to(first) @ a).cpu()
        right = (x.to(second) @ b).cpu()
        (left * right).sum().backward()
        return [one.grad.tolist() for one in (x, a, b)]

    assert gradients("sim:0", "sim:1") == gradients("cpu", "cpu")


@pytest.mark.parametrize(
    ("run", "message"),
    [
        (
            lambda: gv.ones(1).backward(),
            "element 0 of tensors does not require grad and does not have a grad_fn",
        ),
        (
            lambda: gv.ones(2, requires_grad=True).backward(),
            "grad can be implicitly created only for scalar outputs",
        ),
        (
            lambda: gv.ones(2, requires_grad=True).backward(gv.ones(3)),
            r"grad_output\[0\] has a shape of gradviz.Size\(\[3\]\) and output",
        ),
        (
            lambda: gv.ones((), requires_grad=True).backward(inputs=[]),
            r"`inputs` argument to `backward\(\)` cannot be empty\.",
        ),
        (
            lambda: gv.ones((), requires_grad=True).backward(inputs=[gv.ones(1)]),
            "can't retain_grad on Tensor that has requires_grad=False",
        ),
        (
            lambda: gv.autograd.backward([gv.ones((), requires_grad=True)], []),
            "got 1 tensors and 0 gradients",
        ),
    ],
)
def test_a_wrong_call_is_pytorchs_error(run, message):
    with pytest.raises(RuntimeError, match=message):
        run()


def test_a_gradient_must_be_a_tensor():
    with pytest.raises(TypeError, match="either Tensors or None, but got float"):
        gv.autograd.backward([gv.ones((), requires_grad=True)], [1.0])
