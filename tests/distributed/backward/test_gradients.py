import numpy as np

import gradviz as gv
from gradviz.distributed.backward.gradients import accumulated


def test_the_first_gradient_is_kept_without_a_copy_if_nobody_else_has_it():
    leaf, gradients = gv.zeros(2), [np.array([1.0, 2.0], "f4")]
    address = gradients[0].ctypes.data

    assert accumulated(leaf, None, gradients, 0).array.ctypes.data == address


def test_a_gradient_that_others_have_or_that_is_no_array_of_its_own_is_copied():
    leaf, shared = gv.zeros(2), np.array([1.0, 2.0], "f4")
    strided = [np.zeros(4, "f4")[::2]]

    assert accumulated(leaf, None, [shared], 0).array is not shared
    assert accumulated(leaf, None, strided, 0).array.flags.c_contiguous


def test_the_next_one_is_added_in_place():
    leaf = gv.zeros(2)
    stored = accumulated(leaf, None, [np.array([1.0, 2.0], "f4")], 0)

    assert accumulated(leaf, stored, [np.array([1.0, 1.0], "f4")], 0) is stored
    assert stored.tolist() == [2.0, 3.0]
