import numpy as np
import pytest

from gradviz.backends.simulated.arrays.operands import operands
from tests.backends.simulated.bench import SIM0, on


def test_arrays_are_found_in_lists_and_by_name():
    x, y, z = on(SIM0, [1.0]), on(SIM0, [2.0]), on(SIM0, [3.0])

    given = operands(np.concatenate, ([x, (y, 1.0)],), {"out": z})

    assert given.arrays == [x, y, z]
    assert given.args[0][1][0] is y.raw
    assert given.kwargs["out"] is z.raw


def test_an_array_of_the_hosts_is_copied_for_the_kernel():
    host = np.arange(3.0)

    given = operands(np.add, (on(SIM0, [1.0]), host), {})
    host += 1

    assert given.args[1].tolist() == [0.0, 1.0, 2.0]


def test_a_key_of_operands_leaves_out_floats_and_elements_but_keeps_integers():
    x, y = on(SIM0, [1.0]), on(SIM0, [2.0])

    assert operands(np.add, (x, 1.0), {}).key == operands(np.add, (y, 2.0), {}).key
    assert operands(np.add, (x, 1), {}).key != operands(np.add, (y, 2), {}).key


@pytest.mark.parametrize("value", [np.ones(3), {1: 2}, [np.ones(3)]])
def test_operands_that_no_key_can_express_cannot_be_hashed(value):
    given = operands(np.add, (on(SIM0, [1.0]), value), {})

    with pytest.raises(TypeError, match="unhashable"):
        hash(given.key)
