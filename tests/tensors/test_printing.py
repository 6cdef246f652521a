import math

import numpy as np
import pytest

import gradviz as gv


@pytest.mark.parametrize(
    ("data", "text"),
    [
        ([1.0, 2.0], "tensor([1., 2.])"),
        ([0.5, 2.0], "tensor([0.5000, 2.0000])"),
        ([-1.5, 10.25], "tensor([-1.5000, 10.2500])"),
        ([1e-5, 1.0], "tensor([1.0000e-05, 1.0000e+00])"),
        ([1.0, math.nan, -math.inf], "tensor([1., nan, -inf])"),
        ([-math.inf, 0.0], "tensor([-inf, 0.])"),
        (3.0, "tensor(3.)"),
        (0.25, "tensor(0.2500)"),
        ([1, -20], "tensor([  1, -20])"),
        ([True, False], "tensor([ True, False])"),
        ([], "tensor([])"),
        (np.ones(1), "tensor([1.], dtype=float64)"),
        ([[1, 2], [3, 4]], "tensor([[1, 2],\n        [3, 4]])"),
    ],
)
def test_a_tensor_prints_as_pytorchs_does(data, text):
    assert repr(gv.tensor(data)) == text


def test_what_is_not_plain_is_said():
    x = gv.ones(2, device="sim:1", requires_grad=True)

    assert repr(x) == "tensor([1., 1.], device='sim:1', requires_grad=True)"
    assert repr(x * 2) == "tensor([2., 2.], device='sim:1', grad_fn=<MulBackward0>)"
    assert repr(gv.zeros(0, 2)) == "tensor([], size=(0, 2))"


def test_a_large_tensor_is_summarised():
    assert repr(gv.zeros(10_000)) == "tensor([0., 0., 0., ..., 0., 0., 0.])"
