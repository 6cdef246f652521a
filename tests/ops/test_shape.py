import numpy as np
import pytest

import gradviz as gv


def test_reshaping_shares_memory_where_that_is_possible():
    x = gv.zeros(2, 3)

    assert np.shares_memory(x.reshape(3, 2).array, x.array)
    assert not np.shares_memory(x.T.reshape(6).array, x.array)


@pytest.mark.parametrize("shape", [(4,), (0, -1), (5, -1)])
def test_a_shape_that_does_not_fit_is_named(shape):
    with pytest.raises(RuntimeError) as caught:
        gv.zeros(2, 3).reshape(shape)
    assert str(caught.value) == f"shape '{list(shape)}' is invalid for input of size 6"


def test_only_one_length_can_be_inferred():
    with pytest.raises(RuntimeError, match="only one dimension can be inferred"):
        gv.zeros(2, 3).view(-1, -1)


def test_a_view_that_needs_a_copy_is_an_error():
    with pytest.raises(RuntimeError, match=r"Use \.reshape\(\.\.\.\) instead"):
        gv.zeros(2, 3).T.view(6)


def test_a_tensor_without_dimensions_flattens_to_one_element():
    assert gv.tensor(1.0).flatten().shape == (1,)


def test_flattening_backwards_is_an_error():
    with pytest.raises(RuntimeError, match="start_dim cannot come after end_dim"):
        gv.zeros(2, 3).flatten(1, 0)


def test_squeezing_takes_only_lengths_of_one():
    x = gv.zeros(1, 2, 1)

    assert x.squeeze().shape == (2,)
    assert x.squeeze(0).shape == (2, 1)
    assert x.squeeze(1).shape == (1, 2, 1)
    assert x.squeeze((0, -1)).shape == (2,)


def test_only_lengths_of_one_expand():
    with pytest.raises(RuntimeError, match=r"shape \[2\] to \[3\]"):
        gv.zeros(2).expand(3)


def test_a_length_of_minus_one_expands_to_itself():
    assert gv.zeros(2, 1).expand(4, -1, 3).shape == (4, 2, 3)


def test_a_matrix_is_all_that_t_takes():
    assert gv.zeros(2).t().shape == (2,)
    with pytest.raises(RuntimeError, match="but self is 3D"):
        gv.zeros(1, 2, 3).t()


def test_a_permutation_names_every_dimension():
    with pytest.raises(RuntimeError, match=r"input\.dim\(\) = 2 is not equal to"):
        gv.zeros(2, 3).permute(0)


@pytest.mark.parametrize("join", [gv.cat, gv.stack])
def test_joining_nothing_is_an_error(join):
    with pytest.raises(ValueError, match=r"non-empty (list of Tensors|TensorList)"):
        join([])


def test_joined_tensors_that_need_no_gradient_make_no_node():
    assert gv.cat([gv.ones(1), gv.zeros(1)]).grad_fn is None
    assert gv.stack([gv.ones(1), gv.zeros(1)]).tolist() == [[1.0], [0.0]]


def test_a_joined_tensor_that_needs_none_gets_no_gradient():
    x = gv.ones(2, requires_grad=True)

    gv.cat([gv.ones(2), x * 2]).sum().backward()

    assert x.grad.tolist() == [2.0, 2.0]
