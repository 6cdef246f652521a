"""Programs over CUDA's devices and streams give the CPU's gradients, and no race."""

import numpy as np
import pytest

import gradviz as gv
from gradviz.backends import base
from gradviz.backends.cuda.backend import CudaBackend
from tests.backends import fake_cupy
from tests.backends.isolation import backends_as_they_were
from tests.integration.streams import World, random_program, run
from tests.sampled import sampled


class CudaWorld(World):
    """CUDA devices of a program's run, several places on one if need be."""

    def __init__(self):
        super().__init__(is_simulated=True)

    def device(self, place):
        if place[0] < 0:
            return gv.device("cpu")
        return gv.device("cuda", place[0] % gv.cuda.device_count())


@pytest.fixture(
    params=["fake cuda", pytest.param("cuda", marks=pytest.mark.gpu)], autouse=True
)
def cuda(request):
    with backends_as_they_were():
        if request.param == "fake cuda":
            cupy = fake_cupy.make(4)
            base.register(CudaBackend(cupy, cupy.cupyx.errstate))
        elif not gv.cuda.is_available():
            pytest.skip("no CUDA device, or no CuPy")
        yield


@pytest.mark.usefixtures("devices_for_programs")
@pytest.mark.parametrize("seed", sampled(range(30), 3))
def test_gradients_over_streams_are_those_of_the_cpu(seed):
    program = random_program(seed)
    expected = run(program, World(is_simulated=False))

    with gv.check_streams(raise_error=False) as checked:
        found = run(program, CudaWorld())

    for one, other in zip(found, expected, strict=True):
        np.testing.assert_array_equal(one, other)
    assert checked.races == ()
