"""Among equal elements, PyTorch's choice is ours; different ones have its nodes."""

import numpy as np
import pytest

import gradviz as gv
from tests.parity.outcomes import same_in_both

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


UNIQUE = {
    "all": ("unique", {}),
    "with counts": ("unique", {"return_inverse": True, "return_counts": True}),
    "rows": ("unique", {"dim": 0}),
    "runs": ("unique_consecutive", {"return_counts": True}),
    "runs of rows": ("unique_consecutive", {"dim": 0}),
}


@pytest.mark.parametrize("which", UNIQUE)
@pytest.mark.parametrize("wants_gradient", [True, False])
def test_different_values_have_a_node_that_cannot_be_gone_through(
    which, wants_gradient
):
    name, options = UNIQUE[which]

    def program(lib):
        x = lib.tensor([[1.0, 2.0], [1.0, 2.0]], requires_grad=wants_gradient)
        w = lib.tensor(3.0, requires_grad=True)
        found = getattr(lib, name)(x, **options)
        values = found[0] if isinstance(found, tuple) else found
        gradient = lib.autograd.grad((values * w).sum(), w, retain_graph=True)
        try:
            (values * w).sum().backward()
        except NotImplementedError as error:
            return found, gradient, str(error)
        return found, gradient

    same_in_both(program)
