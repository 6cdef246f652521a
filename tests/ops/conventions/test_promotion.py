import numpy as np
import pytest

import gradviz as gv
from gradviz.ops.conventions import promotion
from gradviz.ops.conventions.promotion import result_dtype, set_default_dtype

# What PyTorch 2.13 says of these pairs.
PAIRS = [
    ((gv.float32, 1), (gv.int64, 1), gv.float32),
    ((gv.float32, 1), (gv.float64, 1), gv.float64),
    ((gv.float32, 1), (gv.float64, 0), gv.float32),
    ((gv.float32, 0), (gv.float64, 1), gv.float64),
    ((gv.float32, 0), (gv.float64, 0), gv.float64),
    ((gv.int64, 1), (gv.float32, 0), gv.float32),
    ((gv.int64, 1), (gv.float64, 0), gv.float64),
    ((gv.int32, 1), (gv.int64, 0), gv.int32),
    ((gv.int32, 1), (gv.int64, 1), gv.int64),
    ((gv.bool, 1), (gv.uint8, 0), gv.uint8),
    ((gv.bool, 1), (gv.float32, 1), gv.float32),
    ((gv.float16, 1), (gv.int64, 1), gv.float16),
    ((gv.float16, 1), (gv.float32, 1), gv.float32),
]


@pytest.mark.parametrize(("left", "right", "expected"), PAIRS)
def test_two_tensors_meet_in_pytorchs_dtype(left, right, expected):
    a, b = (gv.ones((2,) * ndim, dtype=dtype) for dtype, ndim in (left, right))

    assert (a * b).dtype == expected
    assert (b * a).dtype == expected


@pytest.mark.parametrize(
    ("dtype", "number", "expected"),
    [
        (gv.float32, 2, gv.float32),
        (gv.float32, 2.5, gv.float32),
        (gv.int64, 2, gv.int64),
        (gv.int64, 2.5, gv.float32),
        (gv.bool, 2.5, gv.float32),
        (gv.float32, np.float64(2.5), gv.float32),
        (gv.float16, 2.5, gv.float16),
    ],
)
def test_a_number_does_not_widen_a_tensor_of_its_kind(dtype, number, expected):
    x = gv.ones(2, dtype=dtype)

    assert (x * number).dtype == expected
    assert (number * x).dtype == expected
    assert (x + number).dtype == expected
    assert (x + number - number).dtype == expected


@pytest.mark.parametrize(
    "op", [gv.sin, gv.exp, gv.sigmoid, lambda x: x / 2, lambda x: x / x]
)
def test_functions_of_integers_have_the_default_dtype(op):
    assert op(gv.tensor([1, 2])).dtype == gv.float32


def test_the_default_dtype_can_be_set():
    set_default_dtype(gv.float64)
    try:
        assert gv.tensor(1.0).dtype == gv.float64
        assert gv.zeros(1).dtype == gv.float64
    finally:
        set_default_dtype(gv.float32)
    with pytest.raises(TypeError, match="floating-point"):
        set_default_dtype(gv.int64)


@pytest.mark.parametrize("stranger", ["two", [1.0], None, object()])
def test_a_stranger_beside_a_tensor_is_named(stranger):
    name = type(stranger).__name__
    with pytest.raises(
        TypeError, match=f"unsupported operand type.*'Tensor' and '{name}'"
    ):
        gv.ones(1) / stranger


def test_a_stranger_may_know_what_to_do_with_a_tensor():
    class Stranger:
        def __rmul__(self, other):
            return "mine"

    assert gv.ones(1) * Stranger() == "mine"


@pytest.mark.parametrize(
    ("operands", "expected"),
    [
        (((2, "int64"), ((), "float32")), "float32"),
        (((2, "float32"), ((), "float64")), "float32"),
        (((2, "float32"), ((), "complex128")), "complex64"),
        (((2, "int64"), (2, "complex64")), "complex64"),
        (((2, "float16"), 1j), "complex64"),
        (((2, "uint8"), (2, "int8")), "int16"),
        (((2, "bool"), 3), "int64"),
        ((((), "int64"), 2.5), "float32"),
        ((1, 2.5), "float32"),
    ],
)
def test_operands_meet_where_they_meet_in_pytorch(operands, expected):
    made = [
        np.ones(one[0], one[1]) if isinstance(one, tuple) else one for one in operands
    ]

    assert result_dtype(*made) == expected
    assert result_dtype(*reversed(made)) == expected


@pytest.mark.parametrize(("number", "kept"), [(300, 44), (-1, 255)])
def test_an_integer_beside_small_ones_keeps_its_last_bits(number, kept):
    assert (gv.tensor([0], dtype=gv.uint8) + number).tolist() == [kept]


class TestANumberBesideFloats:
    @pytest.mark.parametrize("dtype", [np.float32, np.float64])
    @pytest.mark.parametrize("number", [2.0, -0.5, 1 / 3, np.inf, 1e300, 5e-324])
    def test_is_an_array_that_is_kept(self, dtype, number):
        array = np.ones(3, dtype)

        beside = promotion.number_beside(array, number)
        with np.errstate(over="ignore"):
            expected = array * number

        assert beside.dtype == dtype
        assert not beside.flags.writeable
        assert beside is promotion.number_beside(array, number)
        assert (array * beside).tolist() == expected.tolist()

    @pytest.mark.parametrize("number", [0.0, -0.0, np.nan, 2, True, 2j, np.float64(2)])
    def test_stays_what_it_is_if_it_has_no_place_of_its_own(self, number):
        assert promotion.number_beside(np.ones(3), number) is number

    @pytest.mark.parametrize("dtype", [np.float16, np.int64, np.complex64, ">f8"])
    def test_stays_what_it_is_beside_other_elements(self, dtype):
        assert promotion.number_beside(np.ones(3, dtype), 2.0) == 2.0
        assert type(promotion.number_beside(np.ones(3, dtype), 2.0)) is float

    def test_is_not_kept_when_there_are_many(self, monkeypatch):
        monkeypatch.setattr(promotion, "_KEPT", {np.dtype(np.float64): {}})
        monkeypatch.setattr(promotion, "_MAX_KEPT", 2)

        made = [promotion.number_beside(np.ones(3), float(n)) for n in (5, 6, 7, 5)]

        assert [type(one) is float for one in made] == [False, False, True, False]

    def test_keeps_the_sign_of_its_zero(self):
        x = gv.ones(1)

        assert [np.signbit((x * zero).item()) for zero in (0.0, -0.0)] == [False, True]
