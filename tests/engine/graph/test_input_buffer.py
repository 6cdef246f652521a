"""Adding up gradients: in place only where nobody else sees the one that is there."""

import numpy as np
import pytest

from gradviz.backends.base import backend_of
from gradviz.engine.graph.input_buffer import (
    add,
    fits,
    is_sole_reference,
    owns_its_memory,
)
from gradviz.trace.probe import How
from tests.engine.nodes import SIM_0, Money


def test_the_sum_goes_into_an_array_that_nobody_else_holds():
    """S3."""
    buffer = [np.array([1.0, 2.0])]
    address = buffer[0].ctypes.data

    how = add(buffer, 0, np.array([10.0, 20.0]), copies=False)

    assert how is How.IN_PLACE
    assert buffer[0].ctypes.data == address
    np.testing.assert_array_equal(buffer[0], [11.0, 22.0])


def test_an_array_that_someone_holds_is_left_alone():
    """S3."""
    held = np.array([1.0, 2.0])
    buffer = [held]

    how = add(buffer, 0, np.array([10.0, 20.0]), copies=False)

    assert how is How.OUT_OF_PLACE
    np.testing.assert_array_equal(held, [1.0, 2.0])
    np.testing.assert_array_equal(buffer[0], [11.0, 22.0])


def test_the_added_array_is_left_alone():
    """S3."""
    added = np.array([10.0])

    add([np.array([1.0])], 0, added, copies=False)

    np.testing.assert_array_equal(added, [10.0])


@pytest.mark.parametrize(
    "make",
    [
        lambda: np.ones(4)[:2],
        lambda: np.broadcast_to(np.float64(1.0), (2,)),
        lambda: np.lib.stride_tricks.as_strided(np.ones(1), (2,), (0,)),
    ],
    ids=["slice", "read-only", "stride 0"],
)
def test_views_are_never_added_to_in_place(make):
    """S3: another gradient may share the memory."""
    buffer = [make()]

    how = add(buffer, 0, np.ones(2), copies=False)

    assert how is How.OUT_OF_PLACE
    np.testing.assert_array_equal(buffer[0], [2.0, 2.0])


def test_under_create_graph_nothing_is_added_in_place():
    """S3: the sums are part of a graph."""
    buffer = [np.ones(2)]

    assert add(buffer, 0, np.ones(2), copies=True) is How.OUT_OF_PLACE


def test_another_dtype_is_promoted_as_plus_does():
    """S3."""
    buffer = [np.ones(2, dtype="float32")]

    how = add(buffer, 0, np.ones(2), copies=False)

    assert how is How.OUT_OF_PLACE
    assert buffer[0].dtype == np.float64


def test_gradients_of_any_class_are_added_by_their_own_plus():
    buffer = [Money(3)]

    assert add(buffer, 0, Money(4), copies=False) is How.OUT_OF_PLACE
    assert buffer == [Money(7)]


def test_only_the_named_place_changes():
    buffer = [1.0, 2.0, 3.0]

    add(buffer, 1, 10.0, copies=False)

    assert buffer == [1.0, 12.0, 3.0]


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


def test_a_gradient_that_is_no_array_owns_no_memory():
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
