"""NumPy's scalars count as the Python numbers that they hold."""

import dataclasses

import numpy as np

import gradviz as gv
from tests.ops.cases.case import A, Dtype, V, tensors_in
from tests.ops.cases.each_op import each_op, try_all
from tests.ops.cases.table import CASES


def numpys(value):
    """`value` with NumPy's scalars in place of Python's floats and integers."""
    match value:
        case A() | V() | Dtype() | bool() | str() | None:
            return value
        case float():
            return np.float64(value)
        case int():
            return np.int64(value)
        case complex():
            return np.complex128(value)
        case list() | tuple():
            return type(value)(map(numpys, value))
        case _:
            return value


def with_numpys(case):
    return dataclasses.replace(
        case,
        args=tuple(map(numpys, case.args)),
        kwargs={name: numpys(value) for name, value in case.kwargs.items()},
    )


def has_numbers(case):
    return repr(with_numpys(case)) != repr(case)


#: One case of each function and of each of its keywords.
NUMBERED = list(
    {
        (case.name, len(case.args), *case.kwargs): case
        for case in CASES
        if has_numbers(case) and "float32" in case.dtypes
    }.values()
)


def outcome(case, arrays):
    gv.manual_seed(0)
    leaves = [
        gv.from_numpy(array).requires_grad_(wanted and array.dtype.kind == "f")
        for array, wanted in zip(arrays, case.differentiated(), strict=True)
    ]
    return [
        (one.dtype, one.grad_fn and one.grad_fn.name(), one.detach().tolist())
        for one in tensors_in(case.call(gv, leaves))
    ]


@each_op((case,) for case in NUMBERED)
def test_a_numpy_scalar_is_the_number_that_it_holds(tries):
    try_all(tries, check)


def check(case):
    arrays = [np.array(one) for one in case.arrays("float32")]

    expected = outcome(case, arrays)

    assert repr(outcome(with_numpys(case), arrays)) == repr(expected)
