import numpy as np
import pytest

import gradviz as gv


def test_a_tensor_becomes_a_view_of_itself():
    x = gv.arange(6).reshape(2, 3).clone()
    memory = x.array

    assert x.t_() is x
    assert x.tolist() == [[0, 3], [1, 4], [2, 5]]
    assert np.shares_memory(x.array, memory)


def test_gradients_flow_back_through_what_it_became():
    x = gv.ones(2, 3, requires_grad=True)
    y = x * 2

    y.transpose_(0, 1).unsqueeze_(0).squeeze_(0)
    (y * gv.arange(6.0).reshape(3, 2)).sum().backward()

    assert x.grad.tolist() == [[0.0, 4.0, 8.0], [2.0, 6.0, 10.0]]


def test_a_leaf_stays_what_it_is():
    with pytest.raises(RuntimeError, match="a leaf Variable that requires grad"):
        gv.ones(2, 3, requires_grad=True).t_()


def test_becoming_a_view_counts_as_a_change():
    x = gv.zeros(2, 3)

    x.t_()

    assert x._version == 1


def test_a_resized_tensor_keeps_its_first_elements():
    x = gv.arange(4)

    assert x.resize_(2, 3).tolist() == [[0, 1, 2], [3, 0, 0]]
    assert x.resize_(2).tolist() == [0, 1]
    with pytest.raises(RuntimeError, match="cannot resize variables that require grad"):
        gv.ones(2, requires_grad=True).resize_(3)


def test_a_view_transposed_under_no_grad_still_accepts_changes():
    base = gv.ones(2, 3, requires_grad=True).clone()
    view = base.view_as(base)

    with gv.no_grad():
        view.t_()
    view.add_(1)

    assert view.grad_fn.name() != "AddBackward0"
    assert base.grad_fn.name() == "CopySlices"


def test_a_view_from_unbind_unsqueezed_under_no_grad_still_refuses_changes():
    part = gv.ones(2, 3, requires_grad=True).clone().unbind()[0]

    with gv.no_grad():
        part.unsqueeze_(0)
    with pytest.raises(RuntimeError, match="a function that returns multiple views"):
        part.add_(1)
