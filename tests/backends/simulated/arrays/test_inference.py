import numpy as np
import pytest

from gradviz.backends.base import copy_to
from gradviz.backends.device import CPU
from gradviz.backends.simulated.arrays.inference import UNKNOWN, VIEW, form_of
from gradviz.backends.simulated.arrays.operands import operands
from gradviz.backends.simulated.devices.layouts import layout_of
from tests.backends.simulated.bench import SIM0, on

#: How an array of shape (2, 3, 4) may lie in memory: views of one of (4, 6, 8).
LAYOUTS = {
    "c order": lambda x: x[:2, :3, :4].copy(),
    "gaps": lambda x: x[::2, ::2, ::2],
    "backwards": lambda x: x[1::-1, 2::-1, 3::-1],
    "fortran's": lambda x: np.transpose(np.transpose(x[:2, :3, :4], (2, 1, 0)).copy()),
    "swapped": lambda x: np.swapaxes(x[:2, :4, :3].copy(), 1, 2),
    "repeated": lambda x: np.broadcast_to(x[0, :3, :1], (2, 3, 4)),
    "empty": lambda x: x[:0, :3, :4],
}

CALLS = {
    "exp": np.exp,
    "add": lambda x: x + x,
    "add a number": lambda x: x + 1,
    "broadcast": lambda x: x * x[:, :, :1],
    "compare": lambda x: x > 2.5,
    "two results": np.modf,
    "two dtypes": lambda x: x * x.astype(np.complex64),
    "product": lambda x: np.matmul(x, np.swapaxes(x, 1, 2)),
    "small product": lambda x: np.matmul(x[0] if len(x) else x.sum(0), x.sum(0).T),
    "reduce": lambda x: np.add.reduce(x, axis=1),
    "outer": lambda x: np.multiply.outer(x, x[0]) if len(x) else x,
    "accumulate": lambda x: np.add.accumulate(x, axis=2),
    "sum": np.sum,
    "mean": lambda x: np.mean(x, axis=2, keepdims=True),
    "cumsum": lambda x: np.cumsum(x, axis=1),
    "concatenate": lambda x: np.concatenate([x, x], axis=2),
    "where": lambda x: np.where(x > 0, x, 0),
    "copy": lambda x: x.copy(),
    "as float32": lambda x: x.astype(np.float32),
    "zeros": np.zeros_like,
    "full": lambda x: np.full_like(x, 7, dtype=np.int32),
    "reshape": lambda x: np.reshape(x, (-1, 6)) if len(x) else x,
    "ravel": np.ravel,
    "transpose": lambda x: np.transpose(x, (1, 0, 2)),
    "flip": lambda x: np.flip(x, 1),
    "split": lambda x: np.split(x, 3, axis=1),
    "einsum": lambda x: np.einsum("ijk,ilk->jl", x, x),
    "repeat": lambda x: np.repeat(x, [1, 2, 0], axis=1),
    "pad": lambda x: np.pad(x, ((0, 0), (1, 1), (0, 2))),
    "take": lambda x: np.take_along_axis(x, np.argsort(x, axis=2), 2),
    "one": lambda x: x[..., 0],
    "newaxis": lambda x: x[:, None, 1:],
}


def form(function, *args, may_view=False):
    """Return the inferred form of a call's result."""
    key = operands(function, args, {}).key
    return form_of(function, args, {}, key, may_view=may_view)


def parts(result):
    return result if isinstance(result, tuple | list) else (result,)


@pytest.mark.parametrize("layout", LAYOUTS.values(), ids=LAYOUTS.keys())
@pytest.mark.parametrize("call", CALLS.values(), ids=CALLS.keys())
def test_forms_inferred_before_a_kernel_runs_are_those_of_its_results(call, layout):
    whole = np.arange(192.0).reshape(4, 6, 8)
    expected = parts(call(layout(whole)))

    for _ in range(2):  # said, and remembered
        results = parts(call(layout(on(SIM0, whole))))
        assert len(results) == len(expected)
        for result, wanted in zip(results, map(np.asarray, expected), strict=True):
            assert (result.shape, result.dtype) == (wanted.shape, wanted.dtype)
            assert not wanted.size or result.strides == wanted.strides
            np.testing.assert_array_equal(copy_to(result, CPU), wanted)


def test_a_large_product_is_not_computed_to_know_its_shape():
    n = 2**20  # the product of such matrices would not fit anywhere
    tall = np.broadcast_to(on(SIM0, 1.0), (n, n))

    expected = layout_of((n, n), np.dtype(float), (8 * n, 8))
    assert form(np.matmul, tall, tall) is expected


def test_views_are_known():
    x = on(SIM0, np.zeros((2, 3)))

    assert form(np.reshape, x, (3, 2), may_view=True) is VIEW
    assert form(np.reshape, x.T, (3, 2), may_view=True) is VIEW
    copied = form(np.reshape, x.T, (2, 3), may_view=True)
    assert copied is layout_of((2, 3), np.dtype(float), (24, 8))


@pytest.mark.parametrize(
    ("function", "args"),
    [
        (np.matmul, (on(SIM0, np.zeros((2, 3))), on(SIM0, np.zeros((2, 3))))),
        (np.add, (on(SIM0, [1.0, 2.0]), on(SIM0, [1.0, 2.0, 3.0]))),
        (np.allclose, (on(SIM0, [1.0]), on(SIM0, [1.0]))),
        (np.linalg.inv, (on(SIM0, np.eye(2)),)),  # zeros have no inverse
    ],
)
def test_the_form_of_a_call_that_raises_or_returns_no_array_is_unknown(function, args):
    assert form(function, *args) is UNKNOWN


def test_numbers_that_shapes_depend_on_are_told_apart():
    x = on(SIM0, [1.0, 2.0])

    for count in (1, 2, np.int64(3), np.array(4)):
        assert np.repeat(x, count).shape == (2 * int(count),)
    assert np.add(x.astype(np.float32), 1.0).dtype == np.float32
    assert np.add(x.astype(np.float32), np.float64(1)).dtype == np.float64
    assert np.add(x.astype(np.float32), np.float32(1)).dtype == np.float32
