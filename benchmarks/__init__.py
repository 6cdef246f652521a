"""Speed, as ratios within one run: `python -m benchmarks`.

One thread of BLAS for everybody, or the contestants would fight for the cores. NumPy's
library reads that from the environment when it is loaded, so it is set here, first.
"""

import os

for _name in ("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS"):
    os.environ.setdefault(_name, "1")
