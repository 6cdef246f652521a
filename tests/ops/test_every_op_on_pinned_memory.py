"""Every op of the table on pinned memory, whose arrays are of a class of their own."""

import pytest

from tests.ops.cases.table import CASES
from tests.ops.test_every_op import EPSILON, assert_close, leaves, outcome

pytestmark = pytest.mark.stress


@pytest.mark.parametrize("case", CASES, ids=[case.id for case in CASES])
def test_an_outcome_is_that_of_other_memory(case):
    dtype = case.dtypes[0]
    expected = outcome(case, dtype, leaves(case, dtype))

    there = [
        one.detach().pin_memory().requires_grad_(one.requires_grad)
        for one in leaves(case, dtype)
    ]

    assert_close(outcome(case, dtype, there), expected, EPSILON.get(dtype, 1e-12))
    assert all(one.is_pinned() for one in there)
