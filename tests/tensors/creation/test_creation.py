import re

import numpy as np
import pytest

import gradviz as gv


@pytest.mark.parametrize(
    ("data", "dtype"),
    [
        (1.5, gv.float32),
        (1, gv.int64),
        (True, gv.bool),
        ([1, 2.5], gv.float32),
        ([[1, 2], [3, 4]], gv.int64),
        (np.ones(2), gv.float64),
        (np.float64(1), gv.float64),
        (np.ones(2, np.int8), gv.int8),
        (1 + 2j, gv.complex64),
    ],
)
def test_data_decides_the_dtype_as_in_pytorch(data, dtype):
    assert gv.tensor(data).dtype == dtype


def test_a_dtype_that_is_given_loses_no_digits():
    assert gv.tensor([0.1], dtype=gv.float64).item() == 0.1
    assert gv.full((1,), 0.1, dtype=gv.float64).item() == 0.1


def test_a_tensor_has_a_copy_of_its_data():
    array = np.zeros(2)
    x = gv.tensor(array)

    array[0] = 1

    assert x.tolist() == [0.0, 0.0]


def test_from_numpy_shares_memory():
    array = np.zeros(2)
    x = gv.from_numpy(array)

    array[0] = 1

    assert x.tolist() == [1.0, 0.0]


def test_as_tensor_copies_only_what_it_must():
    array, x = np.zeros(2), gv.zeros(2)

    assert gv.as_tensor(array).array is array
    assert gv.as_tensor(x) is x
    assert gv.as_tensor([1, 2]).tolist() == [1, 2]
    assert gv.as_tensor(x, dtype=gv.int64).dtype == gv.int64


def test_tensors_in_lists_become_their_numbers():
    x = gv.tensor([1.5, 2.5], requires_grad=True)

    assert gv.tensor([x[0], x[1]]).tolist() == [1.5, 2.5]


@pytest.mark.parametrize(
    ("data", "error", "message"),
    [
        ("text", TypeError, r"new\(\): invalid data type 'str'"),
        ([1, "a"], TypeError, r"new\(\): invalid data type 'str'"),
        ([None], RuntimeError, "Could not infer dtype of NoneType"),
        (object(), RuntimeError, "Could not infer dtype of object"),
    ],
)
def test_data_that_is_no_number_raises_an_error(data, error, message):
    with pytest.raises(error, match=message):
        gv.tensor(data)


def test_lists_of_different_lengths_are_an_error():
    with pytest.raises(ValueError, match=r"of length 2 at dim 1 \(got 1\)"):
        gv.tensor([[1, 2], [3]])


def test_only_floats_can_require_gradients():
    with pytest.raises(RuntimeError, match="Only Tensors of floating point"):
        gv.tensor([1, 2], requires_grad=True)


def test_a_shape_is_given_as_integers_or_as_a_sequence():
    assert gv.zeros(2, 3).shape == gv.zeros((2, 3)).shape == gv.zeros([2, 3]).shape
    assert gv.ones(()).shape == gv.ones([]).shape == ()


def test_constants_have_the_shape_dtype_and_device_asked_for():
    x = gv.full((2, 1), 7, dtype=gv.float64, device="sim:1", requires_grad=True)

    assert x.tolist() == [[7.0], [7.0]]
    assert (x.dtype, str(x.device), x.requires_grad) == (gv.float64, "sim:1", True)
    assert gv.full((1,), 7).dtype == gv.int64


def test_likes_are_like_their_model():
    model = gv.zeros(2, 3, dtype=gv.float64, device="sim:0")

    for like in (gv.zeros_like(model), gv.ones_like(model)):
        assert (like.shape, like.dtype, like.device) == (
            (2, 3),
            gv.float64,
            model.device,
        )


def test_ranges_are_pythons():
    assert gv.arange(3).tolist() == [0, 1, 2]
    assert gv.arange(1, 4, 2).tolist() == [1, 3]
    assert gv.arange(0, 1, 0.5).tolist() == [0.0, 0.5]
    assert gv.arange(3).dtype == gv.int64
    assert gv.arange(3.0).dtype == gv.float32
    assert gv.linspace(0, 1, 3).tolist() == [0.0, 0.5, 1.0]
    assert gv.eye(2).tolist() == [[1.0, 0.0], [0.0, 1.0]]


@pytest.mark.parametrize(
    "draw",
    [
        lambda: gv.randn(3, 2),
        lambda: gv.rand(5),
        lambda: gv.randint(0, 100, (5,)),
        lambda: gv.randperm(20),
    ],
)
def test_a_seed_repeats_the_random_numbers(draw):
    gv.manual_seed(3)
    first = draw()
    gv.manual_seed(3)

    assert draw().tolist() == first.tolist()


def test_a_device_that_is_not_there_is_named():
    with pytest.raises(
        RuntimeError, match="unknown device 'tpu:0': expected one of cpu"
    ):
        gv.zeros(1, device="tpu")
    with pytest.raises(RuntimeError, match="no device 'sim:99'"):
        gv.zeros(1, device="sim:99")


def test_a_tensor_made_of_a_tensor_stays_where_it_is_unless_told():
    x = gv.ones(2, device="sim:1")

    assert str(gv.tensor(x).device) == "sim:1"
    assert str(gv.tensor(x, device="cpu").device) == "cpu"


def test_a_filling_is_cast_once():
    assert gv.full_like(gv.arange(2), 0.5, dtype=gv.float64).tolist() == [0.5, 0.5]
    assert gv.full_like(gv.arange(2), 0.5).tolist() == [0, 0]


def test_places_in_triangles_may_be_elsewhere():
    low, high = (
        make(2, 2, device="sim:0") for make in (gv.tril_indices, gv.triu_indices)
    )

    assert low.cpu().tolist() == [[0, 1, 1], [0, 0, 1]]
    assert high.cpu().tolist() == [[0, 0, 1], [0, 1, 1]]
    assert str(low.device) == "sim:0"
    assert gv.tril_indices(2, 2, dtype=gv.int32).dtype == gv.int32


def test_each_element_may_be_drawn_by_its_own_distribution():
    means, stds = gv.tensor([1.0, 100.0], device="sim:0"), gv.tensor([0.0, 0.0])

    assert gv.normal(means.cpu(), stds).tolist() == [1.0, 100.0]
    assert gv.normal(2.0, stds).tolist() == [2.0, 2.0]
    assert str(gv.normal(means).device) == "sim:0"
    assert gv.normal(0.0, 1.0, (2, 3)).shape == (2, 3)
    assert gv.normal(0.0, 1.0, (2,), requires_grad=True).is_leaf


@pytest.mark.parametrize(
    ("draw", "message"),
    [
        (lambda: gv.normal(0.0, -1.0, (2,)), "normal expects std >= 0.0, but found"),
        (
            lambda: gv.normal(gv.zeros(2), gv.tensor([1.0, -1.0])),
            "normal expects all elements of std >= 0.0",
        ),
        (
            lambda: gv.normal(gv.zeros(2), gv.ones(3)),
            "The size of tensor a (2) must match the size of tensor b (3)",
        ),
    ],
)
def test_no_distribution_is_pytorchs_error(draw, message):
    with pytest.raises(RuntimeError, match=re.escape(message)):
        draw()
