import pytest

import gradviz as gv


def test_limits_of_floats_are_python_floats():
    limits = gv.finfo(gv.tensor([1.0]).dtype)

    for name in ("eps", "max", "min", "tiny", "smallest_normal", "resolution"):
        assert type(getattr(limits, name)) is float
    assert limits.eps == 2.0**-23
    assert limits.bits == 32
    assert limits.dtype == "float32" == gv.float32


def test_limits_of_integers_are_python_integers():
    limits = gv.iinfo(gv.uint8)

    assert (limits.min, limits.max, limits.bits) == (0, 255, 8)
    assert type(limits.max) is int
    assert limits.dtype == "uint8"


def test_a_dtype_has_defaults_and_parts():
    assert gv.finfo() == gv.finfo(gv.get_default_dtype()) == gv.finfo(gv.complex64)
    assert gv.finfo(gv.float64) != gv.finfo(gv.float32)
    assert isinstance(gv.finfo(), gv.finfo)


def test_limits_print_as_in_pytorch():
    assert repr(gv.finfo(gv.float32)) == (
        "finfo(resolution=1e-06, min=-3.40282e+38, max=3.40282e+38, eps=1.19209e-07, "
        "smallest_normal=1.17549e-38, tiny=1.17549e-38, dtype=float32)"
    )
    assert repr(gv.iinfo(gv.int32)) == (
        "iinfo(min=-2.14748e+09, max=2.14748e+09, dtype=int32)"
    )


@pytest.mark.parametrize(
    ("call", "message"),
    [
        (lambda: gv.finfo(gv.int32), "requires a floating point input type"),
        (lambda: gv.iinfo(gv.float32), "requires an integer input type"),
        (lambda: gv.iinfo(gv.bool), "bool is not supported by iinfo"),
        (lambda: gv.finfo("float32"), "must be gradviz.dtype, not str"),
    ],
)
def test_limits_of_something_else_are_an_error(call, message):
    with pytest.raises(TypeError, match=message):
        call()
