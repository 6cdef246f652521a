"""The CPU: what its memory is."""

import platform
import subprocess
import sys

import numpy as np
import pytest

from gradviz.backends.arrays.pinned_array import PinnedArray
from gradviz.backends.cpu import sum_along

FAULTS = """
import resource
import numpy as np
import gradviz.backends.cpu

def step():
    arrays = [np.ones(1 << 20, np.uint8) for _ in range(20)]

step()
before = resource.getrusage(resource.RUSAGE_SELF).ru_minflt
for _ in range(10):
    step()
print(resource.getrusage(resource.RUSAGE_SELF).ru_minflt - before)
"""


@pytest.mark.skipif(platform.libc_ver()[0] != "glibc", reason="glibc's malloc")
def test_memory_that_a_step_frees_is_reused_by_the_next():
    done = subprocess.run(
        [sys.executable, "-c", FAULTS], capture_output=True, text=True, check=True
    )

    pages_of_a_step = 20 * (1 << 20) // 4096
    assert int(done.stdout) < pages_of_a_step


@pytest.mark.parametrize("dtype", [np.float32, np.float64, np.float16, np.int64])
@pytest.mark.parametrize("shape", [(8, 3), (0, 3), (5000, 3), (4, 8, 3), (3,)])
@pytest.mark.parametrize("as_views", [False, True])
def test_rows_are_summed_however_many_there_are_and_however_they_lie(
    dtype, shape, as_views
):
    array = (np.arange(np.prod(shape)) % 7).reshape(shape).astype(dtype)
    if as_views:
        array = np.repeat(array, 2, axis=-1)[..., ::2]

    summed = sum_along(array, 0)

    assert np.array_equal(summed, array.sum(axis=0))
    assert summed.dtype == array.sum(axis=0).dtype


def test_infinities_and_nans_stay_in_their_columns():
    array = np.array([[1, np.inf, np.nan, np.inf], [2, 3, 4, -np.inf]], np.float32)

    with np.errstate(invalid="ignore"):  # as in every pass
        summed = sum_along(array, 0)

    assert summed.tolist()[:2] == [3, np.inf]
    assert np.isnan(summed[2:]).all()


def test_several_axes_and_other_classes_are_summed_as_they_sum_themselves():
    array = np.ones((2, 3, 4))

    assert sum_along(array, (0, 1)).tolist() == [6.0] * 4
    assert sum_along(array.view(PinnedArray), 0).tolist() == [[2.0] * 4] * 3
