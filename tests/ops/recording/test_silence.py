import warnings
from operator import attrgetter

import numpy as np
import pytest

import gradviz as gv
from gradviz.ops.elementwise import activation


@pytest.mark.parametrize(
    "compute",
    [
        lambda x: x.log(),
        lambda x: 1 / x,
        lambda x: (x + 1e38) * 10,
        lambda x: (x + 1000).exp(),
        lambda x: (x - 1).sqrt(),
        lambda x: (x + 1e300).to(gv.float32),
        lambda x: x.log_(),
    ],
)
@pytest.mark.parametrize("device", ["cpu", "sim:1"])
def test_an_op_that_leaves_its_domain_says_nothing(compute, device):
    x = gv.zeros(2, dtype=gv.float64, device=device)

    with warnings.catch_warnings():
        warnings.simplefilter("error")
        compute(x)


def test_nor_does_its_backward():
    x = gv.zeros(2, requires_grad=True)

    x.sqrt().sum().backward()

    assert x.grad.tolist() == [np.inf, np.inf]


def test_numpy_goes_on_warning_who_uses_it_directly():
    gv.zeros(2).log()

    with pytest.warns(RuntimeWarning, match="divide by zero"):
        np.log(np.zeros(1))


@pytest.mark.parametrize("dtype", ["float16", "float32", "float64", "longdouble"])
def test_what_says_that_it_is_silent_raises_no_flag(dtype):
    values = np.array([np.nan, np.inf, -np.inf, -0.0, 0, 1], dtype)
    extremes = np.array([f(np.finfo(dtype)) for f in (_MAX, _MIN, _SMALLEST)])

    with np.errstate(all="raise"):
        for array in (values, extremes, np.tile(values, 9), values[:1].reshape(())):
            activation.relu(array)


_MAX, _MIN, _SMALLEST = map(attrgetter, ("max", "min", "smallest_subnormal"))
