import numpy as np
import pytest

import gradviz as gv

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
        lambda x: x.__setitem__(0, 1.0),
    ],
)
def test_a_leaf_that_requires_gradients_does_not_change_under_a_graph(change):
    with pytest.raises(RuntimeError) as caught:
        change(gv.ones(2, requires_grad=True))
    assert str(caught.value) == LEAF


def test_a_sum_that_starts_at_zero_joins_the_graph():
    x = gv.ones(2, requires_grad=True)
    total = gv.zeros(())

    for factor in (1, 2, 3):
        total += (x * factor).sum()
    total.backward()

    assert total.grad_fn.name() == "AddBackward0"
    assert x.grad.tolist() == [6.0, 6.0]


def test_what_was_saved_before_stays_as_it_was():
    x = gv.tensor([2.0], requires_grad=True)
    y = x * 1
    z = y * y

    y *= 100
    z.sum().backward()

    assert x.grad.tolist() == [4.0]


def test_a_view_does_not_join_a_graph_without_its_base():
    base = gv.zeros(2)
    row = base[:1]

    with pytest.raises(RuntimeError, match="in-place operation on a view"):
        row += gv.ones(1, requires_grad=True)


def test_elements_are_not_assigned_under_a_graph():
    x = gv.zeros(2)

    with pytest.raises(RuntimeError, match="build the result with where, cat or stack"):
        x[0] = gv.ones((), requires_grad=True)


def test_elements_are_assigned_where_there_is_none():
    x = gv.zeros(2, 2)

    x[0] = gv.tensor([1.0, 2.0])
    x[:, 1] = 5
    x[x == 0] = 7
    x[gv.tensor([1]), 0] = 8

    assert x.tolist() == [[1.0, 5.0], [8.0, 5.0]]


def test_an_optimizers_step_reads_as_in_pytorch():
    p, g = gv.ones(2), gv.tensor([1.0, 2.0])

    p.add_(g, alpha=-0.5).mul_(2).sub_(g, alpha=2)

    assert p.tolist() == [-1.0, -4.0]


@pytest.mark.parametrize("other", [gv.ones(2, 2), 0.5])
def test_a_result_that_does_not_fit_is_an_error(other):
    with pytest.raises(RuntimeError, match="add in place does not fit a tensor"):
        gv.tensor([1, 2]).add_(other)


def test_a_result_that_does_not_fit_is_an_error_under_a_graph_too():
    with pytest.raises(RuntimeError, match="doesn't match the broadcast shape"):
        gv.zeros(2).add_(gv.ones(2, 2, requires_grad=True))


def test_copies_come_from_any_device():
    x = gv.zeros(2)

    x.copy_(gv.ones(2, device="sim:1"))

    assert x.tolist() == [1.0, 1.0]
    assert type(x.array) is np.ndarray
