import numpy as np
import pytest

from gradviz.backends.base import copy_to
from gradviz.backends.device import CPU
from gradviz.backends.simulated.arrays.indexing import is_basic
from tests.backends.simulated.bench import SIM0, on

DATA = np.arange(24.0).reshape(2, 3, 4)


@pytest.mark.parametrize(
    "index",
    [
        0,
        np.int64(1),
        (),
        ...,
        None,
        (0, 1, 2),
        (..., 0),
        (0, None, slice(None, None, -1)),
        slice(5, 9),
        [1, 0],
        (slice(None), [0, 2]),
        ([0, 1], [1, 2]),
        np.array([1, 0]),
        np.array(1),
        DATA > 5,
        np.array([True, False]),
        True,
    ],
    ids=str,
)
def test_an_index_means_what_it_means_to_numpy(index):
    x = on(SIM0, DATA)
    expected = DATA[index]

    result = x[index]
    assert result.shape == expected.shape
    np.testing.assert_array_equal(copy_to(result, CPU), expected)

    host = DATA.copy()
    host[index] = 7
    x[index] = 7
    np.testing.assert_array_equal(x.tolist(), host)


@pytest.mark.parametrize(
    "index",
    [np.array([1, 0]), np.array(1), DATA > 5, np.array([True, False])],
    ids=str,
)
def test_an_index_may_be_on_the_device(index):
    x = on(SIM0, DATA)

    np.testing.assert_array_equal(x[on(SIM0, index)].tolist(), DATA[index])
    host = DATA.copy()
    host[index] = 7
    x[on(SIM0, index)] = 7
    np.testing.assert_array_equal(x.tolist(), host)


def test_even_one_element_is_a_view():
    x = on(SIM0, [1.0, 2.0])
    first = x[0]
    x += 1

    assert first.shape == ()
    assert first.item() == 2.0


def test_a_mask_takes_as_many_elements_as_it_has():
    x = on(SIM0, [1.0, 2.0, 3.0])
    x[x > 1.5] = on(SIM0, [7.0, 8.0])

    assert x.tolist() == [1.0, 7.0, 8.0]


@pytest.mark.parametrize("index", [True, [0], (0, [1]), np.array(0), 1.5, "a"])
def test_an_index_that_gives_no_view_in_numpy_is_not_basic(index):
    assert not is_basic(index)
