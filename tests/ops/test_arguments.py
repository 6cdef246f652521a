"""Every op refuses arguments that it has no parameter for."""

import dataclasses

import numpy as np
import pytest

import gradviz as gv
from tests.ops.cases.each_op import try_all
from tests.ops.cases.table import CASES

#: One case of each function.
FUNCTIONS = {case.name: case for case in CASES}

#: They take any number of tensors, lengths or indices.
OPEN = {
    "Tensor.expand",
    "Tensor.flip",
    "Tensor.permute",
    "Tensor.repeat",
    "Tensor.reshape",
    "Tensor.sum_to_size",
    "Tensor.tile",
    "Tensor.unflatten",
    "Tensor.view",
    "atleast_1d",
    "atleast_2d",
    "atleast_3d",
    "block_diag",
    "broadcast_tensors",
    "cartesian_prod",
    "chain_matmul",
    "einsum",
    "linalg.multi_dot",
    "meshgrid",
}


def call(case):
    arrays = case.arrays(case.dtypes[0])
    return case.call(gv, [gv.from_numpy(np.array(array)) for array in arrays])


def test_an_unknown_keyword_is_an_error():
    def check(case):
        with pytest.raises(TypeError, match="nonsense"):
            call(dataclasses.replace(case, kwargs={**case.kwargs, "nonsense": 1}))

    try_all([(case,) for case in FUNCTIONS.values()], check)


def test_too_many_arguments_are_an_error():
    def check(case):
        with pytest.raises(TypeError, match=r"argument|were given|combination"):
            call(dataclasses.replace(case, args=(*case.args, *[None] * 20)))

    closed = [(case,) for case in FUNCTIONS.values() if case.name not in OPEN]
    try_all(closed, check)


@pytest.mark.parametrize(
    ("call", "message"),
    [
        (
            lambda x: gv.floor_divide(x, 2, other=2),
            "floor_divide() got multiple values for argument 'other'",
        ),
        (lambda x: gv.trunc(x, 2), "trunc() takes 1 positional argument but 2 were"),
        (lambda x: gv.floor_divide(x, other=2), None),
        (lambda x: x.cumsum(0, nonsense=1), "unexpected keyword argument 'nonsense'"),
        (lambda x: x.var(0, 1), "var(): argument 'unbiased' must be bool, not int"),
        (lambda x: x.max(x, True), "max() received an invalid combination of arg"),
        (lambda x: x.random_(1, 2, 3), "random_() received an invalid combination"),
        (lambda x: x.scatter(0, x.long()), "scatter() missing 1 required positional"),
        (lambda x: gv.dropout(x, 0.5), "missing 1 required positional argument"),
        (
            lambda x: x.to("cpu", x.dtype, True, False, 1),
            "to() received an invalid com",
        ),
        (lambda x: x.to("cpu", "cpu"), "to() received an invalid combination of arg"),
    ],
)
def test_wrong_arguments_raise_an_error_that_explains_them(call, message):
    x = gv.ones(2, 2)

    if message is None:
        call(x)
        return
    with pytest.raises(TypeError) as caught:
        call(x)

    assert message in str(caught.value)


def test_results_of_another_number_leave_out_as_it_was():
    x = gv.tensor([[1.0, 2.0], [3.0, 4.0]])
    values, indices = gv.zeros(2), gv.zeros(2, dtype=gv.int64)

    with pytest.raises(TypeError, match="argument 'out' must be tuple of Tensors"):
        gv.max(x, 1, out=values)
    with pytest.raises(TypeError, match="argument 'out' must have 2 elements, got 3"):
        gv.max(x, 1, out=(values, indices, gv.zeros(2)))
    with pytest.raises(RuntimeError, match="dtype long int, but got bool"):
        gv.max(x, 1, out=(values, gv.zeros(2, dtype=gv.bool)))

    assert values.tolist() == [0, 0]


def test_an_upper_bound_by_name_leaves_the_lower_one_its_place():
    gv.manual_seed(0)

    drawn = gv.zeros(100).random_(5, to=7)

    assert set(drawn.tolist()) == {5, 6}
