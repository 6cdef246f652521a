import copy
import operator
import pickle
import sys

import numpy as np
import pytest

import gradviz as gv
from gradviz.backends.arrays.pinned_array import (
    PinnedArray,
    assign,
    handed_out,
    pinned_array,
)
from gradviz.backends.arrays.pinning import PinnedMemory, is_pinned
from gradviz.backends.device import CPU
from gradviz.trace import probe

WHOLE = "0;2,3;24,8;8"


class Ear(probe.Probe):
    """Hears of accesses: the bytes, and whether they are written."""

    def __init__(self):
        self.heard = []

    def host_accessed(self, memory, layout, writes):
        self.heard.append((layout, writes))


@pytest.fixture
def array():
    """0 to 5 in two rows."""
    made = pinned_array(PinnedMemory(48), (2, 3), np.dtype(np.float64))
    made[...] = np.arange(6.0).reshape(2, 3)
    return made


def accesses(do):
    ear = Ear()
    with probe.installed(ear):
        result = do()
    return ear.heard, result


READS = {
    "ufunc": lambda a: a + 1,
    "reduction": np.add.reduce,
    "function": np.sum,
    "function of a list": lambda a: np.concatenate([a, a]),
    "method": lambda a: a.sum(),
    "copy": lambda a: a.copy(),
    "cast": lambda a: a.astype(int),
    "list": lambda a: a.tolist(),
    "bytes": lambda a: a.tobytes(),
    "text": repr,
    "index of arrays": lambda a: a[[0, 1]],
    "mask": lambda a: a[a > 1],
    "reshaped copy": lambda a: a.T.reshape(-1),
    "flat copy": lambda a: a.T.ravel(),
    "comparison": lambda a: a == 1,
    "membership": lambda a: 3 in a,
    "product": lambda a: a @ a.T,
    "pickle": pickle.dumps,
    "deep copy": copy.deepcopy,
}


@pytest.mark.parametrize("read", READS.values(), ids=READS)
def test_a_function_that_looks_at_elements_reports_reads_only(array, read):
    heard, result = accesses(lambda: read(array))

    assert heard
    assert not any(writes for _, writes in heard)
    assert type(result) is not PinnedArray


VIEWS = {
    "slice": lambda a: a[1:],
    "row": lambda a: a[0],
    "transposed": lambda a: a.T,
    "reshaped": lambda a: a.reshape(3, 2),
    "flat": lambda a: a.ravel(),
    "by a function": lambda a: np.broadcast_to(a, (4, 2, 3)),
    "other type": lambda a: a.view(np.int64),
    "real part": lambda a: a.real,
    "not cast": lambda a: a.astype(np.float64, copy=False),
}


@pytest.mark.parametrize("view", VIEWS.values(), ids=VIEWS)
def test_a_view_reads_nothing_and_is_watched_itself(array, view):
    heard, result = accesses(lambda: view(array))

    assert not heard
    assert is_pinned(result)
    assert accesses(result.sum)[0]


def test_several_views_read_nothing(array):
    heard, parts = accesses(lambda: np.split(array, 2))

    assert not heard
    assert all(accesses(part.sum)[0] for part in parts)


@pytest.mark.parametrize(
    "look", [np.shape, np.zeros_like, len, lambda a: a.dtype, lambda a: a.nbytes]
)
def test_a_function_that_looks_at_the_shape_reports_no_access(array, look):
    heard, _ = accesses(lambda: look(array))
    assert not heard


WRITES = {
    "item": lambda a: operator.setitem(a, ..., 1.0),
    "fill": lambda a: a.fill(1.0),
    "in place": lambda a: operator.iadd(a, 1.0),
    "out": lambda a: np.add(1.0, 2.0, out=a),
    "copyto": lambda a: np.copyto(a, 1.0),
    "sort": lambda a: a.sort(),
    "put": lambda a: np.put(a, [0], [2.0]),
    "at": lambda a: np.add.at(a, (0, 0), 2.0),
    "arrays": lambda a: operator.setitem(a, [0, 1], 2.0),
}


@pytest.mark.parametrize("write", WRITES.values(), ids=WRITES)
def test_a_function_that_changes_elements_reports_a_write(array, write):
    heard, _ = accesses(lambda: write(array))

    assert (WHOLE, True) in heard


NAMED = {
    "places": (([0, 1], [0, 1]), {("0;1;8;8"), "32;1;8;8"}),
    "a row": ([1], {"24;3;8;8"}),
    "mask": (np.arange(6).reshape(2, 3) >= 4, {"32;2;8;8"}),
    "mask of rows": (np.array([False, True]), {"24;3;8;8"}),
    "all": ([1, 0], {WHOLE}),
}


@pytest.mark.parametrize(("index", "parts"), NAMED.values(), ids=NAMED)
def test_an_index_of_arrays_accesses_what_it_names(array, index, parts):
    assert set(accesses(lambda: array[index])[0]) == {(one, False) for one in parts}
    written, _ = accesses(lambda: operator.setitem(array, index, 1.0))
    assert set(written) == {(one, True) for one in parts}


@pytest.mark.parametrize(
    "take",
    [
        lambda a: a.take([1], axis=0),
        lambda a: np.take(a, [1], axis=0),
        lambda a: a.take([3, 4, 5]),
        lambda a: np.take(a, np.array([1]), 0),
    ],
)
def test_take_reads_only_the_elements_that_it_takes(array, take):
    heard, taken = accesses(lambda: take(array))
    assert heard == [("24;3;8;8", False)]
    assert taken.ravel().tolist() == [3.0, 4.0, 5.0]


def test_an_index_of_arrays_into_what_has_gaps_accesses_rows(array):
    heard, _ = accesses(lambda: array[:, :2][[1], [0]])
    assert heard == [("24;1,2;24,8;8", False)]


def test_many_parts_are_taken_for_all_between():
    array = pinned_array(PinnedMemory(8000), (1000,), np.dtype(np.float64))
    heard, _ = accesses(lambda: array[np.arange(2, 1000, 2)])
    assert heard == [("16;997;8;8", False)]


def test_an_element_is_read_and_written_by_itself(array):
    assert accesses(lambda: array[1, 2]) == ([("40;;;8", False)], 5.0)
    assert accesses(lambda: array.item(5)) == ([("40;;;8", False)], 5.0)
    assert accesses(lambda: operator.setitem(array[0], 1, 7.0))[0] == [("8;;;8", True)]
    assert array[0, 1] == 7.0


def test_one_element_is_a_number(array):
    one = array[:1, 1:2].reshape(())

    heard, number = accesses(lambda: float(one))
    assert (heard, number) == ([("8;;;8", False)], 1.0)


def test_a_loop_reads_each_element(array):
    heard, total = accesses(lambda: sum(array[0]))

    assert heard == [("0;;;8", False), ("8;;;8", False), ("16;;;8", False)]
    assert total == 3.0


def test_an_array_without_elements_is_not_reported(array):
    assert accesses(array[:0].sum)[0] == []


def test_both_arguments_are_read(array):
    heard, _ = accesses(lambda: np.add(array[0], array[1]))

    assert heard == [("0;3;8;8", False), ("24;3;8;8", False)]


def test_a_pinned_array_is_on_the_cpu(array):
    assert array.device is CPU


def test_a_pickled_array_comes_back_as_a_plain_numpy_array(array):
    back = pickle.loads(pickle.dumps(array))

    assert type(back) is np.ndarray
    assert back.tolist() == array.tolist()


def test_the_end_of_the_memory_is_reported():
    heard = []

    class FreedEar(probe.Probe):
        def memory_freed(self, memory, stream):
            heard.append((memory, stream))

    array = pinned_array(PinnedMemory(8), (1,), np.dtype(np.float64))
    number, _ = array.place()
    view = array[:]
    with probe.installed(FreedEar()):
        del array
        assert heard == []
        del view

    assert heard == [(number, "")]


BY_C = {
    "put into another": lambda a: operator.setitem(np.empty((2, 3)), ..., a),
    "copied": np.array,
    "as a plain array": lambda a: np.asarray(a).sum(),
    "as memory": lambda a: bytes(memoryview(a)),
    "a view of it": lambda a: np.array(a.reshape(3, 2)),
}


@pytest.mark.parametrize("use", BY_C.values(), ids=BY_C)
def test_an_array_handed_out_and_dropped_without_an_access_counts_as_read(array, use):
    heard, _ = accesses(lambda: use(handed_out(array)))

    assert [writes for _, writes in heard] == [False]


def test_an_array_handed_out_and_used_is_not_read_again_when_it_is_dropped(array):
    def use():
        mine = handed_out(array)
        mine[0, 0] = 7.0

    assert accesses(use)[0] == [("0;;;8", True)]


@pytest.mark.parametrize("name", ["shape", "dtype", "nbytes", "strides"])
def test_asking_a_handed_out_array_for_its_shape_reads_nothing_before_python_3_14(
    array, name
):
    heard, _ = accesses(lambda: getattr(handed_out(array), name))

    # From Python 3.14 on a local variable has no reference of its own to count.
    assert heard == ([] if sys.version_info < (3, 14) else [(WHOLE, False)])


def test_an_assignment_of_an_op_says_what_it_has_read(array):
    target = np.zeros((4, 3))
    heard, _ = accesses(lambda: assign(target, slice(1, 3), array))
    assert heard == [(WHOLE, False)]
    assert target.sum() == 15


def test_an_array_of_a_tensor_has_been_read_when_it_is_made():
    tensor = gv.ones(2).pin_memory("sim")
    ear = Ear()
    with probe.installed(ear):
        array = np.asarray(tensor)
        assert ear.heard == [("0;2;4;4", False)]
    assert array.sum() == 2


def test_other_arrays_are_handed_out_as_they_are():
    array = np.ones(2)
    assert handed_out(array) is array
