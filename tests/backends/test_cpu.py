"""The CPU: what its memory is."""

import platform
import subprocess
import sys

import pytest

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
def test_what_a_step_frees_is_there_for_the_next():
    done = subprocess.run(
        [sys.executable, "-c", FAULTS], capture_output=True, text=True, check=True
    )

    pages_of_a_step = 20 * (1 << 20) // 4096
    assert int(done.stdout) < pages_of_a_step
