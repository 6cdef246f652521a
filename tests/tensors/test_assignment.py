import numpy as np
import pytest

import gradviz as gv


def test_elements_are_assigned_where_there_is_no_graph():
    x = gv.zeros(2, 2)

    x[0] = gv.tensor([1.0, 2.0])
    x[:, 1] = 5
    x[x == 0] = 7
    x[gv.tensor([1]), 0] = 8

    assert x.tolist() == [[1.0, 5.0], [8.0, 5.0]]


@pytest.mark.parametrize(
    ("index", "name"),
    [
        (0, "CopySlices"),
        (slice(0, 1), "CopySlices"),
        (Ellipsis, "CopyBackwards"),
        (None, "CopySlices"),
        ((0, slice(None)), "CopySlices"),
        (np.array([0]), "IndexPutBackward0"),
        (np.array([[True, False], [False, True]]), "IndexPutBackward0"),
        ((0, np.array([0, 1])), "CopySlices"),
    ],
)
def test_what_is_assigned_joins_the_graph(index, name):
    source = gv.full((2,), 3.0, requires_grad=True)
    x = gv.zeros(2, 2)

    x[index] = source
    (x * x).sum().backward()

    assert x.grad_fn.name() == name
    taken = np.zeros((2, 2))
    taken[index] = 1
    assert source.grad.sum().item() == 6.0 * taken.sum()


def test_what_is_overwritten_gets_no_gradient():
    x = gv.ones(3, requires_grad=True)
    y = x * 2

    y[1] = 7.0
    y.sum().backward()

    assert x.grad.tolist() == [2.0, 0.0, 2.0]


def test_copies_come_from_any_device():
    x = gv.zeros(2)

    x.copy_(gv.ones(2, device="sim:1"))

    assert x.tolist() == [1.0, 1.0]
    assert type(x.array) is np.ndarray


def test_and_gradients_go_back_there():
    source = gv.ones(2, device="sim:1", requires_grad=True)

    gv.zeros(3, 2).copy_(source).sum().backward()

    assert str(source.grad.device) == "sim:1"
    assert source.grad.tolist() == [3.0, 3.0]


def test_a_number_with_an_imaginary_part_is_no_real_number():
    with pytest.raises(RuntimeError, match="cannot be converted to type float"):
        gv.zeros(2)[0] = 1j


@pytest.mark.parametrize(
    ("assign", "error", "message"),
    [
        (lambda x: x.__setitem__(0, [1, 2]), TypeError, "can't assign a list"),
        (lambda x: x.__setitem__(0, "a"), TypeError, "can't assign a str"),
        (lambda x: x.__setitem__(5, 1), IndexError, "index 5 is out of bounds"),
        (
            lambda x: x.__setitem__(slice(0, 2), gv.ones(3)),
            RuntimeError,
            r"The expanded size of the tensor \(2\) must match the existing size \(3\)",
        ),
        (
            lambda x: x.copy_(gv.ones(2)),
            RuntimeError,
            r"The size of tensor a \(3\) must match the size of tensor b \(2\)",
        ),
        (
            lambda x: x.copy_(gv.ones(2, 3)),
            RuntimeError,
            r"output with shape \[3\] doesn't match the broadcast shape \[2, 3\]",
        ),
        (lambda x: x.copy_([1]), TypeError, "must be Tensor, not list"),
        (lambda x: x.fill_(gv.ones(1)), RuntimeError, "only supports 0-dimension"),
        (lambda x: x.fill_("a"), TypeError, "must be Tensor or Number, not str"),
    ],
)
def test_what_cannot_be_assigned_is_named(assign, error, message):
    with pytest.raises(error, match=message):
        assign(gv.zeros(3))
