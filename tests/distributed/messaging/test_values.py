import json
import math

import hypothesis.strategies as st
import numpy as np
import pytest
from hypothesis import given, settings

import gradviz as gv
from gradviz.distributed.messaging.values import Packer, Unpacker, ValueNotSentError

PLAIN = (
    st.none()
    | st.booleans()
    | st.integers()
    | st.floats(allow_nan=False)
    | st.text(st.characters(exclude_categories=["Cs"]))
    | st.binary()
    | st.complex_numbers(allow_nan=False)
)
KEYS = st.text(st.characters(exclude_categories=["Cs"])) | st.integers()
VALUES = st.recursive(
    PLAIN,
    lambda inner: (
        st.lists(inner)
        | st.lists(inner).map(tuple)
        | st.dictionaries(KEYS | st.tuples(KEYS, KEYS), inner)
    ),
    max_leaves=20,
)


def sent(value):
    """Return a value after a trip as JSON and arrays."""
    packer = Packer()
    form = json.loads(json.dumps(packer.pack(value)))
    return Unpacker([one.copy() for one in packer.arrays]).unpack(form)


@given(VALUES)
@settings(max_examples=50)
def test_a_plain_value_is_the_same_after_it_was_sent(value):
    back = sent(value)

    assert back == value
    assert repr(back) == repr(value)  # 1 and True are equal


def test_nan_stays_nan_after_it_was_sent():
    assert math.isnan(sent(float("nan")))


def test_arrays_are_those_of_the_moment_in_which_they_were_packed():
    array, x = np.ones(3), gv.ones(2, 3)
    packer = Packer()
    packer.pack([array, x, x.t(), {"view": array[::2]}])
    array[:] = 0
    x.zero_()

    assert all((one == 1).all() for one in packer.arrays)
    assert all(one.flags.c_contiguous for one in packer.arrays)


def test_tensors_are_gathered_in_order_and_are_leaves_at_first():
    x, y = gv.tensor([1.0], requires_grad=True), gv.tensor([2, 3])
    packer = Packer()
    form = packer.pack({"a": [x * 2], "b": y})
    unpacker = Unpacker(packer.arrays)
    back = unpacker.unpack(form)

    assert [one.tolist() for one in unpacker.tensors] == [[2.0], [2, 3]]
    assert back["a"][0].requires_grad
    assert back["a"][0].is_leaf
    assert back["b"].dtype == y.dtype


def test_a_read_only_array_is_copied():
    array = np.zeros(2)
    array.flags.writeable = False

    assert Unpacker([array]).unpack(["array", 0]).flags.writeable


def test_a_value_of_numpy_is_sent_as_a_number():
    assert sent([np.float64(1.5), np.int8(3), np.bool_(True)]) == [1.5, 3, True]


class OfTheirs(list):
    pass


@pytest.mark.parametrize(
    "value", [object(), {1, 2}, OfTheirs(), np.array([None]), np.zeros(1, "i4,i4"), len]
)
def test_a_value_without_a_form_is_refused(value):
    with pytest.raises(ValueNotSentError, match="cannot be sent to another worker"):
        Packer().pack([value])


def test_tensors_on_a_device_are_to_be_moved_first():
    with pytest.raises(ValueNotSentError, match="RPC only sends CPU tensors"):
        Packer().pack(gv.zeros(1, device="sim:0"))


@pytest.mark.parametrize(
    "form",
    [[], ["no"], ["array", 1], ["array", -1], ["array", "0"], ["tensor", 0], [[1]]],
)
def test_an_invalid_form_is_refused(form):
    with pytest.raises(ValueError, match=r"not the form of a value|no array"):
        Unpacker([np.zeros(1)]).unpack(form)
