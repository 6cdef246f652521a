import numpy as np
import pytest

import gradviz as gv
from gradviz.ops.dispatch.in_place import in_place

LEAF = "a leaf Variable that requires grad is being used in an in-place operation."


def test_memory_changes_where_no_graph_is_recorded():
    x = gv.ones(2, requires_grad=True)
    array = x.array

    with gv.no_grad():
        x -= gv.tensor([0.5, 0.25])
        x *= 2

    assert x.array is array
    assert x.tolist() == [1.0, 1.5]
    assert x.is_leaf


def test_memory_changes_under_a_graph_too():
    x = gv.ones(2)
    array = x.array

    x += gv.ones(2, requires_grad=True)

    assert x.array is array
    assert array.tolist() == [2.0, 2.0]
    assert x.grad_fn.name() == "AddBackward0"


@pytest.mark.parametrize(
    "change",
    [
        lambda x: x.add_(1),
        lambda x: x.sub_(1),
        lambda x: x.mul_(2),
        lambda x: x.div_(2),
        lambda x: x.zero_(),
        lambda x: x.fill_(1),
        lambda x: x.copy_(gv.zeros(2)),
        lambda x: x.sin_(),
    ],
)
def test_a_leaf_that_requires_gradients_does_not_change_under_a_graph(change):
    with pytest.raises(RuntimeError) as caught:
        change(gv.ones(2, requires_grad=True))
    assert str(caught.value) == LEAF


def test_an_element_of_a_leaf_that_requires_gradients_cannot_be_assigned():
    x = gv.ones(2, requires_grad=True)

    with pytest.raises(RuntimeError, match="a view of a leaf Variable that requires"):
        x[0] = 1.0


def test_a_sum_that_starts_at_zero_joins_the_graph():
    x = gv.ones(2, requires_grad=True)
    total = gv.zeros(())

    for factor in (1, 2, 3):
        total += (x * factor).sum()
    total.backward()

    assert total.grad_fn.name() == "AddBackward0"
    assert x.grad.tolist() == [6.0, 6.0]


def test_an_op_in_place_saves_a_copy_of_the_old_value():
    x = gv.tensor([2.0], requires_grad=True)
    y = x * 1

    y.sin_()
    y.backward()

    assert x.grad.item() == pytest.approx(np.cos(2.0))


def test_an_op_in_place_shares_its_saved_result_with_the_tensor():
    x = gv.tensor([2.0], requires_grad=True)
    y = (x * 1).exp_()

    assert y.grad_fn._saved_result.array is y.array
    y.mul_(2)

    with pytest.raises(RuntimeError, match="is at version 2; expected version 1"):
        y.backward()


def test_a_change_in_place_of_a_tensor_that_another_op_saved_raises():
    x = gv.tensor([2.0], requires_grad=True)
    y = x * 1
    z = y * y

    y *= 100

    with pytest.raises(RuntimeError, match="modified by an inplace operation"):
        z.sum().backward()


def test_a_function_of_several_ops_works_in_place_too():
    x = gv.tensor([2.0, 3.0], requires_grad=True)
    y = x * 1

    in_place(lambda one: one * one + one)(y[:1])
    y.sum().backward()

    assert y.tolist() == [6.0, 3.0]
    assert x.grad.tolist() == [5.0, 1.0]


def test_an_optimizers_step_reads_as_in_pytorch():
    p, g = gv.ones(2), gv.tensor([1.0, 2.0])

    p.add_(g, alpha=-0.5).mul_(2).sub_(g, alpha=2)

    assert p.tolist() == [-1.0, -4.0]


@pytest.mark.parametrize(
    ("other", "message"),
    [
        (gv.ones(2, 2), "result type Float can't be cast to the desired output type"),
        (0.5, "result type Float can't be cast to the desired output type Long"),
        (gv.tensor([[1], [2]]), "output with shape .2. doesn't match the broadcast"),
    ],
)
def test_a_result_that_does_not_fit_is_an_error(other, message):
    with pytest.raises(RuntimeError, match=message):
        gv.tensor([1, 2]).add_(other)


def test_a_result_that_does_not_fit_is_an_error_under_a_graph_too():
    with pytest.raises(RuntimeError, match="doesn't match the broadcast shape"):
        gv.zeros(2).add_(gv.ones(2, 2, requires_grad=True))


def test_elements_that_share_a_place_are_not_written_to():
    with pytest.raises(RuntimeError, match="refers to a single memory location"):
        gv.zeros(1).expand(3).add_(1)


def test_hooks_stay_with_the_old_value_and_retained_gradients_follow():
    x = gv.ones(1, requires_grad=True)
    y = x * 2
    seen = []
    y.register_hook(lambda grad: seen.append(grad.item()))
    y.retain_grad()

    y.mul_(5)
    y.backward()

    assert seen == [5.0]
    assert y.grad.item() == 1.0


def test_memory_that_is_read_only_is_an_error():
    x = gv.from_numpy(np.frombuffer(b"12345678", np.float64))

    with pytest.raises(RuntimeError, match="is read-only: clone"):
        x.add_(1)


def test_a_view_that_repeats_nothing_may_change_though_numpy_made_it_read_only():
    x = gv.ones(2, 2, requires_grad=True)
    y = x * 2

    y[:, :1].expand(2, 1).mul_(3)
    y.sum().backward()

    assert x.grad.tolist() == [[6.0, 2.0], [6.0, 2.0]]
