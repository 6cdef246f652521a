import numpy as np
import pytest

import gradviz as gv

X = gv.arange(24).reshape(2, 3, 4)
AS_NUMPY = [
    1,
    -1,
    (0, 2),
    (0, 2, 3),
    slice(1, None),
    (slice(None), slice(0, 2)),
    (slice(None), slice(None, None, 2)),
    (..., 1),
    (1, ..., 2),
    None,
    (None, 1, None),
    (slice(None), None),
    ...,
    [1, 0],
    (slice(None), [2, 0]),
    (..., [3, 3, 0]),
    ([0, 1], [2, 0]),
    np.array([True, False]),
    (slice(None), np.array([True, False, True])),
    np.arange(24).reshape(2, 3, 4) > 5,
    np.arange(6).reshape(2, 3) > 2,
    np.int64(1),
    True,
    [],
]


@pytest.mark.parametrize("index", AS_NUMPY, ids=repr)
def test_an_index_takes_what_numpys_takes(index):
    assert X[index].tolist() == X.numpy()[index].tolist()


def test_integers_are_applied_before_arrays():
    # NumPy would move the dimension of the array to the front.
    assert X[0, :, [1, 3]].tolist() == X.numpy()[0][:, [1, 3]].tolist()


def test_tensors_index_as_arrays_do():
    assert X[gv.tensor([1, 0])].tolist() == X.numpy()[[1, 0]].tolist()
    assert X[gv.tensor(1)].tolist() == X.numpy()[1].tolist()
    assert X[X > 20].tolist() == [21, 22, 23]


def test_basic_indices_share_memory():
    x = gv.zeros(2, 3)

    assert np.shares_memory(x[1, 1:].array, x.array)
    assert not np.shares_memory(x[[1]].array, x.array)


@pytest.mark.parametrize(
    ("index", "message"),
    [
        (2, "index 2 is out of bounds for dimension 0 with size 2"),
        ((0, -4), "index -4 is out of bounds for dimension 1 with size 3"),
        ((..., ..., 0), "Dimension out of range"),
        ((0, 0, 0, 0), "too many indices for tensor of dimension 3"),
        (1.5, "valid indices .got float"),
        ("x", "valid indices .got str"),
        (gv.tensor([0.5]), "must be long, int, byte or bool tensors"),
    ],
)
def test_a_wrong_index_is_named(index, message):
    with pytest.raises(IndexError, match=message):
        X[index]


def test_a_number_cannot_be_indexed():
    with pytest.raises(IndexError, match="invalid index of a 0-dim tensor"):
        gv.tensor(1.0)[0]
    with pytest.raises(IndexError, match="0-dim tensor"):
        gv.tensor(1.0)[:]


def test_slices_go_forwards_only():
    with pytest.raises(ValueError, match="step must be greater than zero"):
        X[::-1]


def test_an_element_taken_twice_gets_both_gradients():
    x = gv.ones(3, requires_grad=True)

    (x[[0, 0, 2]] * gv.tensor([1.0, 2.0, 4.0])).sum().backward()

    assert x.grad.tolist() == [3.0, 0.0, 4.0]


def test_iterating_gives_the_entries_of_the_first_dimension():
    assert [row.tolist() for row in gv.tensor([[1, 2], [3, 4]])] == [[1, 2], [3, 4]]
    with pytest.raises(TypeError, match="iteration over a 0-d tensor"):
        iter(gv.tensor(1))


@pytest.mark.parametrize(
    "take",
    [
        lambda x, places: x[places],
        lambda x, places: x.index_select(0, places),
        lambda x, places: x.take(places),
        lambda x, places: x.as_strided((2, 2), (1, 1)),
    ],
    ids=["index", "index_select", "take", "as_strided"],
)
def test_gradients_that_lie_in_another_order_are_not_lost(take):
    """The gradient of a transposed result has its elements in Fortran's order."""
    x = gv.arange(9.0, dtype=gv.float64).reshape(3, 3).requires_grad_()
    places = gv.tensor([2, 0, 0])

    result = take(x, places)
    result.backward(gv.ones(*reversed(result.shape), dtype=gv.float64).t())

    assert x.grad.sum().item() == result.numel()


def test_put_and_fill_diagonal_work_on_a_transposed_tensor():
    x = gv.zeros(3, 3).t()

    assert x.put(gv.tensor([1, 5]), gv.ones(2)).sum().item() == 2
    assert x.put(gv.tensor([1]), gv.ones(1), accumulate=True).sum().item() == 1
    assert x.clone().fill_diagonal_(1).sum().item() == 3
