import math

import pytest

import gradviz as gv


def test_numbers_have_pytorchs_names():
    assert (gv.pi, gv.e, gv.inf) == (math.pi, math.e, math.inf)
    assert math.isnan(gv.nan)
    assert gv.ones(2)[gv.newaxis].shape == (1, 2)


def test_limits_of_dtypes():
    assert gv.finfo(gv.float32).max == pytest.approx(3.4028235e38)
    assert gv.iinfo(gv.int8).min == -128


def test_is_tensor_is_floating_point_and_numel_describe_a_tensor():
    assert gv.is_tensor(gv.ones(1))
    assert not gv.is_tensor([1.0])
    assert gv.is_floating_point(gv.ones(1))
    assert not gv.is_floating_point(gv.arange(2))
    assert gv.numel(gv.ones(2, 3)) == 6


@pytest.mark.parametrize(
    ("one", "other", "both"),
    [
        (gv.int64, gv.float32, gv.float32),
        (gv.uint8, gv.int8, gv.int16),
        (gv.complex64, gv.float64, gv.complex128),
        (gv.bool, gv.bool, gv.bool),
    ],
)
def test_two_dtypes_meet_as_in_pytorch(one, other, both):
    assert gv.promote_types(one, other) == both
    assert gv.promote_types(other, one) == both


def test_a_number_does_not_widen_the_result_of_its_kind():
    assert gv.result_type(gv.ones(2, dtype=gv.int32), 1) == gv.int32
    assert gv.result_type(gv.ones(2, dtype=gv.float64), 1.5) == gv.float64
    assert gv.result_type(gv.ones(2, dtype=gv.int32), 1.5) == gv.get_default_dtype()


@pytest.mark.parametrize(
    ("source", "target", "is_possible"),
    [
        (gv.float64, gv.float16, True),
        (gv.float32, gv.int64, False),
        (gv.int64, gv.uint8, False),
        (gv.uint8, gv.int8, True),
        (gv.bool, gv.int8, True),
        (gv.int8, gv.bool, False),
        (gv.complex64, gv.float64, False),
    ],
)
def test_casts_go_up_in_kind_only(source, target, is_possible):
    assert gv.can_cast(source, target) is is_possible


def test_ops_do_the_same_each_time():
    gv.use_deterministic_algorithms(True, warn_only=True)

    assert gv.are_deterministic_algorithms_enabled()


def test_types_have_names():
    assert gv.typename(gv.ones(1)) == "gradviz.FloatTensor"
    assert gv.typename(3) == "int"


def test_limits_are_of_the_default_dtype_unless_told():
    assert gv.finfo().dtype == gv.float32
