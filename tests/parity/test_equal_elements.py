"""Among equal elements, PyTorch's choice is ours."""

import numpy as np
import pytest

import gradviz as gv

torch = pytest.importorskip("torch")
pytestmark = pytest.mark.parity

LENGTHS = (1, 2, 3, 4, 5, 9, 16, 17, 33, 64, 65, 130, 300)
OPS = {
    "sort": lambda lib, x, _: lib.sort(x),
    "sort, descending": lambda lib, x, _: lib.sort(x, descending=True),
    "sort, unstable": lambda lib, x, _: lib.sort(x, dim=-1, stable=False),
    "argsort": lambda lib, x, _: (lib.argsort(x),),
    "topk": lambda lib, x, k: lib.topk(x, k),
    "topk, smallest": lambda lib, x, k: lib.topk(x, k, largest=False),
    "topk, in no order": lambda lib, x, k: lib.topk(x, k, sorted=False),
    "kthvalue": lambda lib, x, k: lib.kthvalue(x, k),
    "median": lambda lib, x, _: lib.median(x, -1),
    "nanmedian": lambda lib, x, _: lib.nanmedian(x, -1),
    "mode": lambda lib, x, _: lib.mode(x),
    "max": lambda lib, x, _: lib.max(x, -1),
    "argmin": lambda lib, x, _: (lib.argmin(x, -1),),
    "cummax": lambda lib, x, _: lib.cummax(x, -1),
}


@pytest.mark.parametrize("seed", range(4))
@pytest.mark.parametrize("op", OPS)
def test_the_same_of_equal_elements_are_chosen(op, seed):
    random = np.random.default_rng(seed)
    for length in LENGTHS:
        numbers = random.integers(0, max(2, length // 3), (3, length))
        x = numbers.astype(random.choice(["float32", "float64", "int64"]))
        if x.dtype.kind == "f" and op != "mode":  # NaNs have no order there
            x[random.random(x.shape) < 0.1] = np.nan
        k = int(random.integers(1, length + 1))

        ours, theirs = (
            [one.numpy() for one in OPS[op](lib, lib.from_numpy(x), k)]
            for lib in (gv, torch)
        )

        for mine, other in zip(ours, theirs, strict=True):
            np.testing.assert_array_equal(mine, other)
