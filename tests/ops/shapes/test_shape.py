import numpy as np
import pytest

import gradviz as gv


def test_reshaping_shares_memory_where_that_is_possible():
    x = gv.zeros(2, 3)

    assert np.shares_memory(x.reshape(3, 2).array, x.array)
    assert not np.shares_memory(x.T.reshape(6).array, x.array)


@pytest.mark.parametrize("shape", [(4,), (5, -1)])
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
    with pytest.raises(RuntimeError, match=r"\(3\) must match the existing size \(2\)"):
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
    with pytest.raises((ValueError, RuntimeError), match="non-empty"):
        join([])


def test_joined_tensors_that_need_no_gradient_make_no_node():
    assert gv.cat([gv.ones(1), gv.zeros(1)]).grad_fn is None
    assert gv.stack([gv.ones(1), gv.zeros(1)]).tolist() == [[1.0], [0.0]]


def test_a_joined_tensor_that_needs_none_gets_no_gradient():
    x = gv.ones(2, requires_grad=True)

    gv.cat([gv.ones(2), x * 2]).sum().backward()

    assert x.grad.tolist() == [2.0, 2.0]


def test_reshape_copies_only_if_no_strides_can_express_the_result():
    x = gv.arange(24).reshape(2, 3, 4).permute(1, 0, 2)

    assert np.shares_memory(x.reshape(3, 2, 2, 2).array, x.array)
    assert np.shares_memory(x[:, :1].reshape(3, 4).array, x.array)
    assert not np.shares_memory(x.reshape(6, 4).array, x.array)
    assert x.reshape(6, 4).tolist() == x.numpy().reshape(6, 4).tolist()


def test_the_bytes_of_elements_are_seen_as_another_dtype():
    x = gv.tensor([1.0, -1.0])

    assert x.view(gv.int32).tolist() == [0x3F800000, -0x40800000]
    assert x.view(gv.uint8).shape == (8,)


def test_lengths_are_given_one_by_one_as_a_sequence_or_by_name():
    x = gv.arange(6)

    assert x.view(2, 3).shape == x.view((2, 3)).shape == x.view(size=(2, 3)).shape
    assert x.reshape(shape=(3, 2)).shape == (3, 2)
    assert x.view(2, 3).flip(dims=(0,)).tolist() == [[3, 4, 5], [0, 1, 2]]
    assert x.repeat(2, 1).shape == x.tile(dims=(2, 1)).shape == (2, 6)


def test_three_tensors_grow_at_once():
    shapes = [x.shape for x in gv.atleast_3d(gv.tensor(1), gv.ones(2), gv.ones(2, 3))]

    assert shapes == [(1, 1, 1), (1, 2, 1), (2, 3, 1)]
