"""Every op of the table on CUDA: over CuPy's fake (``-m stress``), or a GPU."""

import pytest

from gradviz.backends import base
from gradviz.backends.cuda.backend import CudaBackend
from tests.backends import fake_cupy
from tests.backends.isolation import backends_as_they_were
from tests.ops.cases.case import tensors_in
from tests.ops.cases.each_op import each_op, try_all
from tests.ops.cases.table import CASES
from tests.ops.test_every_op import EPSILON, assert_close, gv, leaves, outcome

#: What CuPy cannot do, and is done on the host; see docs/streams.md.
ON_THE_HOST = "ignore:CuPy cannot do:UserWarning"


@pytest.fixture(
    params=[
        pytest.param("fake cuda", marks=pytest.mark.stress),
        pytest.param("cuda", marks=pytest.mark.gpu),
    ]
)
def cuda(request):
    """The name of a device."""
    with backends_as_they_were():
        if request.param == "fake cuda":
            cupy = fake_cupy.make()
            base.register(CudaBackend(cupy, cupy.cupyx.errstate))
            yield "cuda:1"
        elif gv.cuda.is_available():
            yield "cuda:0"
        else:
            pytest.skip("no CUDA device, or no CuPy")


@pytest.mark.filterwarnings(ON_THE_HOST)
@each_op((case,) for case in CASES)
def test_an_outcome_is_that_of_the_cpu(tries, cuda):
    try_all(tries, lambda case: check(case, cuda))


def check(case, cuda):
    dtype = case.dtypes[0]
    expected = outcome(case, leaves(case, dtype))

    there = leaves(case, dtype, cuda)

    # A GPU adds up in another order, and its functions round differently.
    rtol = EPSILON.get(dtype, 1e-12) * (8 if cuda == "cuda:0" else 1)
    assert_close(outcome(case, there), expected, rtol)
    for one in tensors_in(case.call(gv, there)):
        assert str(one.device) == cuda
