"""Whether a gradient may be overwritten."""

import numpy as np

from gradviz.backends.base import backend_of
from gradviz.engine.ownership import fits, is_sole_reference, owns_its_memory
from tests.engine.nodes import SIM_0, Money


def test_a_list_may_have_the_only_reference():
    """N1, S3."""
    gradients = [np.ones(2)]

    assert is_sole_reference(gradients, 0)


def test_a_second_holder_is_noticed():
    """N1, S3."""
    gradients = [np.ones(2)]
    holder = gradients[0]

    assert not is_sole_reference(gradients, 0)
    assert is_sole_reference(gradients, 0, others=1)
    assert holder is gradients[0]


def test_an_array_owns_its_memory():
    """N1."""
    assert owns_its_memory(np.ones(2))
    assert owns_its_memory(backend_of(SIM_0).from_host(np.ones(2), SIM_0))


def test_views_broadcasts_and_read_only_arrays_do_not():
    """N1: not stealable."""
    base, frozen = np.ones(4), np.ones(4)
    frozen.flags.writeable = False

    for array in (base[:2], base.T, np.broadcast_to(base, (3, 4)), frozen):
        assert not owns_its_memory(array)


def test_what_is_no_array_does_not():
    for gradient in (1.0, Money(1), np.float64(1.0)):
        assert not owns_its_memory(gradient)


def test_only_the_same_shape_and_dtype_fit_in_place():
    """N1, S3: in place must give what out of place gives."""
    array = np.ones(3)

    assert fits(array, np.ones(3))
    assert not fits(array, np.ones(1))
    assert not fits(array, np.ones(3, dtype="float32"))
    assert not fits(array, 1.0)
    assert not fits(1.0, 1.0)
    assert not fits(Money(1), Money(1))
