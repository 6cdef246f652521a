import numpy as np
import pytest

import gradviz as gv
from gradviz.autograd import gradcheck, gradgradcheck


@pytest.mark.parametrize(
    ("size", "stride", "offset"),
    [
        ((2, 2), (1, 2), 0),
        ((3, 3), (2, 2), 1),
        ((2, 3), (0, 1), 4),
        ((2, 2, 2), (1, 1, 1), 0),
        ((4,), (3,), 2),
        ((), (), 5),
        ((2, 0), (9, 9), 0),
    ],
)
def test_any_strides_make_a_view(size, stride, offset):
    x = gv.arange(12.0, dtype=gv.float64)
    expected = np.lib.stride_tricks.as_strided(
        x.numpy()[offset:], size, [8 * step for step in stride]
    )

    seen = gv.as_strided(x, size, stride, offset)

    assert seen.tolist() == expected.tolist()
    assert not seen.numel() or np.shares_memory(seen.array, x.array)


def test_the_gradient_of_an_element_seen_often_is_a_sum():
    x = gv.arange(12.0, dtype=gv.float64).requires_grad_()

    def look(x):
        return gv.as_strided(x * x, (3, 3), (2, 1), 1)

    assert gradcheck(look, (x,))
    assert gradgradcheck(look, (x,))


def test_a_view_beyond_the_elements_is_an_error():
    with pytest.raises(RuntimeError, match=r"out of bounds for storage of size 16"):
        gv.as_strided(gv.zeros(4), (3,), (2,), 0)


def test_windows_share_memory():
    x = gv.zeros(5)

    assert x.unfold(0, 3, 2).shape == (2, 3)
    assert np.shares_memory(x.unfold(0, 3, 2).array, x.array)
