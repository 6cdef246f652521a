"""The environment of benchmarks."""

import os
import subprocess
import sys
from pathlib import Path

ROOT = Path(__file__).parents[2]


def test_blas_has_one_thread_and_chooses_its_kernels_itself():
    program = "import benchmarks, os; print(*map(os.environ.get, {names}))"
    names = ["OPENBLAS_NUM_THREADS", "OPENBLAS_CORETYPE", "OPENBLAS_L2_SIZE"]
    environment = {**os.environ, "OPENBLAS_CORETYPE": "Haswell"}
    environment.pop("OPENBLAS_NUM_THREADS", None)

    said = subprocess.run(
        [sys.executable, "-c", program.format(names=names)],
        cwd=ROOT,
        env=environment,
        capture_output=True,
        text=True,
        check=True,
    ).stdout

    assert said.split() == ["1", "None", "None"]
