import numpy as np
import pytest

from gradviz.ops.elementwise.choosing import choose

RANDOM = np.random.default_rng(3)


def numbers(dtype, shape=(80, 90)):
    """Random elements with infinities, NaNs and both zeros among them."""
    array = RANDOM.standard_normal(shape).astype(dtype)
    if array.dtype.kind != "i":
        array.flat[:5] = [np.nan, np.inf, -np.inf, 0.0, -0.0]
    return array


@pytest.mark.parametrize("shape", [(80, 90), (3, 5)], ids=["large", "small"])
@pytest.mark.parametrize("dtype", ["f2", "f4", "f8", "c8", "c16", "i4"])
def test_every_bit_is_as_numpy_chooses_it(dtype, shape):
    x, y = numbers(dtype, shape), numbers(dtype, shape)
    mask = RANDOM.random(shape) < 0.5
    zero = np.zeros((), dtype)

    for pair in ((x, y), (x, zero), (zero, y), (x, x.dtype.type(3)), (x[:, ::-1], y)):
        chosen, expected = choose(mask, *pair), np.where(mask, *pair)
        assert chosen.dtype == expected.dtype
        assert chosen.tobytes() == expected.tobytes()


def test_a_mask_that_broadcasts_does_so():
    x = numbers("f4")
    mask = RANDOM.random(90) < 0.5

    np.testing.assert_array_equal(choose(mask, x, 0.0), np.where(mask, x, 0))
