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
        (np.ones(1), "tensor([1.], dtype=gradviz.float64)"),
        ([[1, 2], [3, 4]], "tensor([[1, 2],\n        [3, 4]])"),
    ],
)
def test_a_tensor_prints_as_pytorchs_does(data, text):
    assert repr(gv.tensor(data)) == text


def test_repr_shows_device_requires_grad_grad_fn_and_empty_size():
    x = gv.ones(2, device="sim:1", requires_grad=True)

    assert repr(x) == "tensor([1., 1.], device='sim:1', requires_grad=True)"
    assert repr(x * 2) == "tensor([2., 2.], device='sim:1', grad_fn=<MulBackward0>)"
    assert repr(gv.zeros(0, 2)) == "tensor([], size=(0, 2))"


def test_a_large_tensor_is_summarized():
    assert repr(gv.zeros(10_000)) == "tensor([0., 0., 0.,  ..., 0., 0., 0.])"


@pytest.fixture
def _usual_options_afterwards():
    yield
    gv.set_printoptions(profile="default")


@pytest.mark.usefixtures("_usual_options_afterwards")
@pytest.mark.parametrize(
    ("options", "text"),
    [
        ({"precision": 2}, "tensor([0.33, 2.00])"),
        ({"sci_mode": True}, "tensor([3.3333e-01, 2.0000e+00])"),
    ],
)
def test_options_change_how_numbers_are_written(options, text):
    gv.set_printoptions(**options)

    assert repr(gv.tensor([1.0 / 3, 2.0])) == text


@pytest.mark.usefixtures("_usual_options_afterwards")
def test_an_option_that_is_not_given_stays_and_a_profile_sets_all():
    gv.set_printoptions(precision=2)
    gv.set_printoptions(edgeitems=1)
    assert repr(gv.ones(2000) / 3) == "tensor([0.33,  ..., 0.33])"

    gv.set_printoptions(profile="full")
    assert "..." not in repr(gv.zeros(2000))


def test_long_lines_are_broken_and_what_follows_is_put_below():
    x = gv.arange(20.0, requires_grad=True) * 0.25

    assert repr(x) == (
        "tensor([0.0000, 0.2500, 0.5000, 0.7500, 1.0000, 1.2500, 1.5000, 1.7500, "
        "2.0000,\n        2.2500, 2.5000, 2.7500, 3.0000, 3.2500, 3.5000, 3.7500, "
        "4.0000, 4.2500,\n        4.5000, 4.7500], grad_fn=<MulBackward0>)"
    )


def test_complex_numbers_print_both_parts():
    assert repr(gv.tensor([1 + 2j, -0.5j])) == "tensor([1.+2.0000j, -0.-0.5000j])"


def test_a_view_that_has_become_invalid_prints_nevertheless():
    x = gv.ones(2, requires_grad=True) * 1
    first, _ = x.unbind()
    x.mul_(2)

    assert repr(first) == "tensor(2., grad_fn=<Invalid>)"
