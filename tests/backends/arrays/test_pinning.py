import numpy as np
import pytest

from gradviz.backends.arrays.pinning import empty_pinned, is_pinned, pinned
from gradviz.backends.base import accelerator_of
from gradviz.backends.device import Device

ACCELERATOR = accelerator_of(Device("sim", 0))


@pytest.mark.parametrize(
    "array",
    [
        np.arange(6.0).reshape(2, 3),
        np.arange(6, dtype=np.int8).reshape(2, 3).T,
        np.array(2.5),
        np.zeros((0, 3)),
        np.array([True, False]),
    ],
)
def test_a_pinned_copy_has_the_elements(array):
    copy = pinned(array, ACCELERATOR)

    np.testing.assert_array_equal(copy, array)
    assert copy.dtype == array.dtype
    assert copy.flags.c_contiguous
    assert copy.flags.writeable
    assert is_pinned(copy)
    assert not is_pinned(array)


def test_views_of_pinned_memory_are_pinned():
    array = empty_pinned((2, 3), np.dtype(np.float32), ACCELERATOR)

    assert is_pinned(array[1:].T)
    assert not is_pinned(array.copy())


def test_numbers_and_arrays_over_bytes_are_not_pinned():
    assert not is_pinned(2.0)
    assert not is_pinned(np.frombuffer(b"12345678"))
