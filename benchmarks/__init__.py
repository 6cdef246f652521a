"""Speed, as ratios within one run: `python -m benchmarks`.

One thread of BLAS for everybody, or the contestants would fight for the cores; and for
everybody the kernels that its BLAS chooses for this processor: a machine may name
others for the sake of old versions, and only NumPy's library would obey. It reads both
from the environment when it is loaded, so they are set here, first.
"""

import os

for _name in ("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS"):
    os.environ.setdefault(_name, "1")
for _name in ("OPENBLAS_CORETYPE", "OPENBLAS_L2_SIZE"):
    os.environ.pop(_name, None)
