import numpy as np
import pytest

from gradviz.backends.simulated.devices.layouts import LARGE_BYTE, NAN_BYTE, layout_of
from tests.backends.simulated.bench import SIM0, on


def test_arrays_that_lie_alike_have_one_layout():
    first, second = on(SIM0, np.ones((2, 3))), on(SIM0, np.zeros((2, 3)))

    assert first.form is second.form
    assert (first + second).form is first.form


def test_a_view_has_the_layout_of_what_it_shows():
    x = on(SIM0, np.ones((2, 3)))

    assert x.T.form is layout_of((3, 2), np.dtype(float), (8, 24))
    assert x.T.form is not x.form


@pytest.mark.parametrize(
    ("dtype", "poison"),
    [(np.float16, NAN_BYTE), (np.complex128, NAN_BYTE), (np.int8, LARGE_BYTE)],
)
def test_free_memory_is_full_of_nan_or_what_is_no_index(dtype, poison):
    layout = layout_of((2, 3), np.dtype(dtype), (3, 1))

    assert layout.poison == poison
    assert layout.num_bytes == 6 * np.dtype(dtype).itemsize
