import copy
import pickle

import numpy as np
import pytest

import gradviz as gv
from gradviz.tensors.attributes.dtypes import DType


@pytest.mark.parametrize(
    ("dtype", "is_floating_point", "is_complex", "is_signed"),
    [
        (gv.float16, True, False, True),
        (gv.float64, True, False, True),
        (gv.complex64, False, True, True),
        (gv.int8, False, False, True),
        (gv.uint8, False, False, False),
        (gv.bool, False, False, False),
    ],
)
def test_a_dtype_says_what_it_is(dtype, is_floating_point, is_complex, is_signed):
    x = gv.zeros(2, dtype=dtype)

    assert x.dtype is dtype
    assert isinstance(x.dtype, gv.dtype)
    assert x.dtype.is_floating_point is is_floating_point
    assert x.dtype.is_complex is is_complex
    assert x.dtype.is_signed is is_signed
    assert x.dtype.itemsize == x.element_size()


def test_it_prints_as_its_name():
    assert f"{gv.ones(1).dtype} {gv.long}" == "gradviz.float32 gradviz.int64"


def test_it_is_numpys():
    assert gv.float32 == np.float32
    assert np.dtype(np.float32) == gv.float32
    assert gv.float32 != np.float64
    assert gv.float32 != "no dtype at all"
    assert {np.dtype(np.int8): "one"}[gv.int8] == "one"
    assert {gv.int8: "one"}[np.dtype(np.int8)] == "one"


@pytest.mark.parametrize(
    "make",
    [
        lambda dtype: np.zeros(2, dtype),
        lambda dtype: np.ones(2).astype(dtype),
        lambda dtype: gv.ones(2).numpy().astype(dtype),
        lambda dtype: gv.ones(2).to(dtype),
        lambda dtype: gv.tensor([1, 2], dtype=dtype),
    ],
)
def test_numpy_takes_it(make):
    assert make(gv.float64).dtype == np.float64


@pytest.mark.parametrize("dtype", [np.float64, "float64", float, np.dtype("f8")])
def test_numpys_own_will_do_everywhere(dtype):
    assert gv.zeros(1, dtype=dtype).dtype is gv.float64


def test_there_is_one_of_each():
    assert pickle.loads(pickle.dumps(gv.float16)) is gv.float16
    assert copy.deepcopy(gv.float16) is gv.float16
    assert gv.ones(1).dtype is gv.float is gv.float32


def test_a_complex_number_has_parts():
    assert gv.float64.to_complex() is gv.complex128
    assert gv.complex64.to_real() is gv.float32
    assert gv.float16.to_real() is gv.float16


def test_questions_about_dtypes_are_answered_with_one():
    answers = (
        gv.get_default_dtype(),
        gv.promote_types(gv.int8, gv.float16),
        gv.result_type(gv.ones(1), 1),
    )

    assert all(isinstance(one, DType) for one in answers)
    assert answers == (gv.float32, gv.float16, gv.float32)
