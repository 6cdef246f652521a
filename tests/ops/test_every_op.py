"""Every op of the table against finite differences, float64, a device and strides."""

import warnings
from itertools import pairwise

import numpy as np
import pytest

import gradviz as gv
from gradviz.autograd import grad, gradcheck, gradgradcheck
from tests.backends.simulated.watched import watched
from tests.ops.cases import waits
from tests.ops.cases.case import tensors_in
from tests.ops.cases.each_op import each_op, try_all
from tests.ops.cases.page import op_of
from tests.ops.cases.table import CASES, REFUSED

pytestmark = pytest.mark.filterwarnings("error")

#: How exact each dtype is.
EPSILON = {
    "float16": 2e-3,
    "float32": 2e-6,
    "complex64": 2e-6,
    "float64": 1e-12,
    "complex128": 1e-12,
}

NUMERIC = [
    (case, dtype)
    for case in CASES
    if case.numeric and any(case.differentiated())
    for dtype in ("float64", "complex128")
    if dtype in case.dtypes
]


def leaves(case, dtype, device="cpu", seed=0, layout=lambda array: array):
    """Tensors for the array arguments of a case; those with gradients are leaves."""
    return [
        gv.as_tensor(layout(array), device=device).requires_grad_(
            wanted and array.dtype.kind in "fc"
        )
        for array, wanted in zip(
            case.arrays(dtype, seed), case.differentiated(), strict=True
        )
    ]


def check_gradients(case, dtype, seed=0):
    """Compare gradients, and their gradients, with finite differences."""

    def function(*tensors):
        results = tensors_in(case.call(gv, list(tensors)))
        return tuple(one for one in results if one.dtype.kind in "fc")

    inputs = leaves(case, dtype, seed=seed)
    tolerances = {"atol": 1e-6, "rtol": 1e-4, "fast_mode": True}
    assert gradcheck(function, inputs, **tolerances)
    if case.second:
        assert gradgradcheck(function, inputs, **tolerances)


@each_op(NUMERIC, every=5)
def test_gradients_agree_with_finite_differences(tries):
    try_all(tries, check_gradients)


@pytest.mark.stress
@each_op((*one, seed) for one in NUMERIC for seed in range(1, 6))
def test_gradients_agree_with_finite_differences_elsewhere(tries):
    try_all(tries, check_gradients)


def outcome(case, inputs, layout=lambda array: array):
    """The results of a case and the gradients of its inputs, on the host."""
    results = tensors_in(case.call(gv, inputs))
    return on_host([*results, *gradients_of(results, inputs, layout)])


def gradients_of(results, inputs, layout=lambda array: array):
    """The gradients of the inputs, given fixed ones of the results."""
    recorded = [one for one in results if one.requires_grad]
    if not recorded:
        return ()
    return grad(
        recorded,
        [one for one in inputs if one.requires_grad],
        [gv.as_tensor(layout(weights(one)), device=one.device) for one in recorded],
        materialize_grads=True,
    )


def on_host(tensors):
    """The elements of tensors."""
    return [one.detach().cpu().numpy() for one in tensors]


def weights(result):
    """A gradient for a result: numbers that half precision knows exactly."""
    numbers = np.arange(result.numel()) % 5 / 4 - 0.5
    return numbers.reshape(result.shape).astype(result.dtype)


def assert_close(results, expected, rtol):
    for one, other in zip(results, expected, strict=True):
        assert one.shape == other.shape
        if one.dtype.kind not in "fc":
            np.testing.assert_array_equal(one, other)
            continue
        wide = np.result_type(one, np.float64)
        scale = np.max(np.abs(other[np.isfinite(other)]), initial=1)
        np.testing.assert_allclose(
            one.astype(wide), other.astype(wide), rtol=rtol, atol=rtol * scale
        )


LESS_EXACT = [
    (case, dtype)
    for case in CASES
    for dtype in ("float32", "float16", "complex64")
    if dtype in case.dtypes
]


@each_op(LESS_EXACT, every=3)
def test_less_exact_dtypes_give_what_double_precision_gives(tries):
    try_all(tries, check_with_double_precision)


def check_with_double_precision(case, dtype):
    inputs = leaves(case, dtype)
    wide = [
        gv.as_tensor(x.detach().to(exact_of(x.dtype))).requires_grad_(x.requires_grad)
        for x in inputs
    ]

    with warnings.catch_warnings():
        results = outcome(case, inputs)

    assert_close(results, outcome(case, wide), rtol=8 * EPSILON[dtype])


def exact_of(dtype):
    """Double precision of a dtype's kind."""
    return {"f": gv.float64, "c": gv.complex128}.get(dtype.kind, dtype)


def spread(array):
    """The same elements with a gap after each, and so in no contiguous order."""
    room = np.empty((*array.shape, 2), array.dtype)
    room[..., 0] = array
    return room[..., 0]


def columns_first(array):
    """The same elements in Fortran's order."""
    return np.array(array, order="F")


@pytest.fixture(name="watched")
def _watched():
    """Return an executor of the work of devices that counts waits."""
    with watched() as executor:
        yield executor


@each_op(((case,) for case in CASES), every=4)
def test_neither_device_nor_strides_change_an_outcome(tries, watched):
    try_all(tries, lambda case: check_elsewhere(case, watched))


def check_elsewhere(case, watched):
    dtype, op = case.dtypes[0], op_of(case.name)
    expected = outcome(case, leaves(case, dtype))
    rtol = EPSILON.get(dtype, 1e-12)

    watched.num_waits = 0
    on_device = leaves(case, dtype, "sim:1")
    results = tensors_in(case.call(gv, on_device))
    assert all(str(one.device) == "sim:1" for one in results)
    assert not watched.num_waits or op in waits.FORWARD

    watched.num_waits = 0
    gradients = gradients_of(results, on_device)
    assert not watched.num_waits or op in waits.BACKWARD
    assert_close(on_host([*results, *gradients]), expected, rtol)

    # What cannot be viewed in another order must be copied first, as in PyTorch.
    is_view = case.name.startswith("Tensor.view")
    for layout in (spread,) if is_view else (spread, columns_first):
        elsewhere = leaves(case, dtype, layout=layout)
        assert_close(outcome(case, elsewhere, layout), expected, rtol)


INTEGERS = [
    (case,)
    for case in CASES
    if "int64" in case.dtypes[1:] and op_of(case.name) not in waits.FORWARD
]


@each_op(INTEGERS)
def test_nobody_waits_for_integers_either(tries, watched):
    def check(case):
        watched.num_waits = 0
        case.call(gv, leaves(case, "int64", "sim:1"))
        assert not watched.num_waits

    try_all(tries, check)


@pytest.mark.parametrize("op", sorted(waits.FORWARD | waits.BACKWARD))
def test_an_op_that_is_said_to_wait_does(op, watched):
    waits_in = set()
    for case in CASES:
        if op_of(case.name) != op:
            continue
        inputs = leaves(case, case.dtypes[0], "sim:0")
        watched.num_waits = 0
        results = tensors_in(case.call(gv, inputs))
        waits_in |= {"forward"} if watched.num_waits else set()
        watched.num_waits = 0
        gradients_of(results, inputs)
        waits_in |= {"backward"} if watched.num_waits else set()

    said = {"forward"} if op in waits.FORWARD else set()
    said |= {"backward"} if op in waits.BACKWARD else set()
    assert waits_in == said


def test_the_page_says_which_ops_wait():
    page = waits.PAGE.read_text(encoding="utf-8")

    assert page == waits.written(page), "run: python -m tests.ops.cases.waits"


@each_op((refused,) for refused in REFUSED)
def test_a_wrong_call_is_refused_in_pytorch_s_words(tries):
    try_all(tries, check_refusal)


def check_refusal(refused):
    with pytest.raises(refused.error) as info:
        refused.call(gv, gv.as_tensor)

    assert refused.message in str(info.value)


def test_no_case_is_there_twice():
    ids = sorted(case.id for case in CASES)

    assert [one for one, other in pairwise(ids) if one == other] == []
