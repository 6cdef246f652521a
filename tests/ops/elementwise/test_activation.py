"""Activations and their gradients where PyTorch's comparisons decide."""

import math

import pytest

import gradviz as gv
from gradviz.nn import functional as F  # noqa: N812 - as programs call it


@pytest.mark.parametrize(
    "function", [F.relu, F.relu6, F.hardtanh, F.softshrink, F.hardshrink]
)
def test_a_gradient_goes_through_where_the_input_is_nan(function):
    x = gv.tensor([math.nan, 0.0], requires_grad=True)

    function(x).backward(gv.tensor([3.0, 0.0]))

    assert x.grad.tolist() == [3, 0]
