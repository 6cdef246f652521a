"""PyTorch's old constructors."""

import numpy as np
import pytest

import gradviz as gv


def test_lengths_make_a_tensor_of_that_shape():
    assert gv.Tensor(2, 3).shape == (2, 3)
    assert gv.LongTensor(4).shape == (4,)
    assert gv.FloatTensor(gv.Size([2, 3])).shape == (2, 3)
    assert gv.ones(1, dtype=gv.int8).new(2).dtype == gv.int8


@pytest.mark.parametrize("data", [[1, 2], (1, 2), np.array([1, 2]), gv.arange(1, 3)])
def test_elements_make_a_tensor_of_them(data):
    x = gv.Tensor(data)

    assert x.tolist() == [1.0, 2.0]
    assert x.dtype == gv.float32
    assert type(x) is gv.Tensor


def test_memory_is_shared_if_nothing_must_change():
    x = gv.ones(2)

    gv.FloatTensor(x)[0] = 5

    assert x.tolist() == [5.0, 1.0]


def test_nothing_makes_a_tensor_without_elements():
    assert gv.Tensor().shape == gv.DoubleTensor().shape == gv.ones(3).new().shape
    assert gv.Tensor().shape == (0,)


def test_floats_have_the_default_dtype():
    gv.set_default_dtype(gv.float64)
    try:
        assert gv.Tensor([1]).dtype == gv.float64
    finally:
        gv.set_default_dtype(gv.float32)


@pytest.mark.parametrize(
    ("old", "dtype"),
    [
        (gv.HalfTensor, gv.float16),
        (gv.FloatTensor, gv.float32),
        (gv.DoubleTensor, gv.float64),
        (gv.ByteTensor, gv.uint8),
        (gv.CharTensor, gv.int8),
        (gv.ShortTensor, gv.short),
        (gv.IntTensor, gv.int),
        (gv.LongTensor, gv.long),
        (gv.BoolTensor, gv.bool),
    ],
)
def test_each_makes_its_dtype_and_knows_it(old, dtype):
    x = old([1, 0])

    assert x.dtype == dtype
    assert isinstance(x, old)
    assert not isinstance(gv.ones(1, dtype=gv.complex64), old)
    assert not isinstance([1, 0], old)


def test_a_subclass_makes_its_own():
    class Mine(gv.Tensor):
        pass

    assert type(Mine([1, 2])) is Mine
