import operator
import sys

import numpy as np
import pytest

from gradviz.backends.arrays.wrapped_array import check_elements, in_one_kernel
from gradviz.backends.base import copy_to
from gradviz.backends.device import CPU
from gradviz.backends.stream import default_stream
from gradviz.trace import probe
from tests.backends.simulated.bench import SIM0, Ear, held, on

DATA = [[3.0, 1.0, 2.0], [6.0, 5.0, 4.0]]


def is_pending(call, *data):
    """Return whether a call returns while the stream is busy."""
    arrays = [on(SIM0, one) for one in data]
    call(*arrays)  # what it returns is known from here on
    with held(default_stream(SIM0)):
        call(*arrays)
        return not default_stream(SIM0).query()


@pytest.mark.parametrize(
    "call",
    [
        np.exp,
        np.add.reduce,
        lambda x: x @ x.T,
        lambda x: operator.iadd(x, 1),
        lambda x: np.add.at(x, 0, 1.0),
        lambda x: x.__setitem__(0, 5.0),
        lambda x: x.__setitem__(x > 1, 5.0),
        lambda x: np.copyto(x, 1.0),
        np.sort,
        lambda x: x[:, [0, 2]],
        lambda x: np.concatenate([x, x]),
        lambda x: x.astype(int).copy().sum(),
        lambda x: np.reshape(x.T, (2, 3)),
        lambda x: copy_to(x, CPU, non_blocking=True),
    ],
)
def test_most_calls_return_at_once(call):
    assert is_pending(call, DATA)


@pytest.mark.parametrize(
    ("call", "expected"),
    [
        (np.nonzero, np.nonzero(DATA)),
        (np.argwhere, np.argwhere(DATA)),
        (np.unique, np.unique(DATA)),
        (lambda x: x[x > 2], np.array(DATA)[np.array(DATA) > 2]),
        (lambda x: np.where(x > 2), np.where(np.array(DATA) > 2)),
        (np.linalg.pinv, np.linalg.pinv(DATA)),
        (lambda x: np.linalg.svd(x).S, np.linalg.svd(DATA).S),
    ],
)
def test_calls_that_depend_on_elements_return_numpys_values(call, expected):
    result = call(on(SIM0, DATA))

    result = result if isinstance(result, tuple) else (result,)
    expected = expected if isinstance(expected, tuple) else (expected,)
    for one, wanted in zip(result, expected, strict=True):
        np.testing.assert_array_equal(copy_to(one, CPU), wanted)


def test_numbers_come_as_numbers():
    x = on(SIM0, DATA)

    assert np.allclose(x, x) is True
    assert np.count_nonzero(x) == 6
    assert (np.shape(x), np.ndim(x), np.size(x)) == ((2, 3), 2, 6)


@pytest.mark.parametrize(
    ("call", "error", "message"),
    [
        (lambda x: x + on(SIM0, [1.0, 2.0]), ValueError, "could not be broadcast"),
        (lambda x: x @ x, ValueError, "matmul"),
        (lambda x: x.reshape(5, 5), ValueError, "cannot reshape"),
        (lambda x: np.concatenate([x, x[0]]), ValueError, "same number of dim"),
        (lambda x: x[5], IndexError, "out of bounds"),
        (lambda x: x[[7]], IndexError, "out of bounds"),
        (lambda x: np.sum(x, axis=9), np.exceptions.AxisError, "out of bounds"),
        (lambda x: x.__setitem__(0, on(SIM0, [1.0, 2.0])), ValueError, "broadcast"),
        (lambda x: operator.iadd(x.astype(int), 1.5), TypeError, "same_kind"),
        (lambda x: np.add(x, 1, out=on(SIM0, [1.0])), ValueError, "non-broadcastable"),
        (lambda x: np.bitwise_and(x, x), TypeError, "not supported"),
        (lambda x: np.broadcast_to(x, (2, 3)).__setitem__(0, 1), ValueError, "read-on"),
        (lambda x: np.add(x, 1, out=np.array(0.0)), RuntimeError, "same device"),
        (lambda x: np.copyto(np.array(0.0), x[0, 0]), RuntimeError, "same device"),
    ],
)
def test_wrong_operands_and_indices_raise_at_the_call(call, error, message):
    with pytest.raises(error, match=message):
        call(on(SIM0, DATA))


def test_an_array_of_the_hosts_may_change_after_the_launch():
    x = on(SIM0, [1.0, 2.0])
    number = np.array(1.0)
    index = np.array([0, 1])

    with held(default_stream(SIM0)):
        y = x + number
        z = x[index]
        number[...] = 100
        index[...] = 0

    assert y.tolist() == [2.0, 3.0]
    assert z.tolist() == [1.0, 2.0]


def test_views_share_memory_and_results_do_not():
    x = on(SIM0, DATA)

    for view in (x.T, x[0], x[:, 1:], np.reshape(x, 6), np.einsum("ii->i", x[:, :2])):
        assert view.allocation is x.allocation
        assert not view.flags.owndata
    for result in (x + 0, x.copy(), np.reshape(x.T, 6), x[[0]], x[x > 0]):
        assert result.allocation is not x.allocation
        assert result.flags.owndata


def test_a_view_keeps_the_array_whose_memory_it_is():
    # The engine counts references to see whether it may add to a gradient in place.
    x = on(SIM0, DATA)
    count = sys.getrefcount(x)
    views = [x[0], x.T, np.reshape(x, 6), x[0][1:], np.broadcast_to(x, (2, 2, 3))]

    assert all(view.base is x for view in views)
    assert sys.getrefcount(x) == count + len(views)
    assert x.base is None


def test_objects_can_be_on_a_device():
    names = np.frompyfunc(lambda x: f"<{x:g}>", 1, 1)

    assert names(on(SIM0, [1.0, 2.0])).tolist() == ["<1>", "<2>"]


def test_an_accelerator_says_nothing_of_a_division_by_zero():
    x = on(SIM0, [0.0])

    with np.errstate(all="raise"):
        assert np.isinf((1 / x).tolist()).all()


def test_the_imaginary_part_is_not_dropped_silently():
    x = on(SIM0, [1 + 2j])

    for _ in range(2):
        with pytest.warns(np.exceptions.ComplexWarning, match="discards the imaginary"):
            y = x.astype(float)
        assert y.tolist() == [1.0]


# --- reports ------------------------------------------------------------------------


def accesses(call, *arrays):
    """Return the accesses of a call's kernels: array, bytes, writes."""
    ear = Ear()
    with probe.installed(ear):
        call(*arrays)
    numbers = {array.allocation.id: i for i, array in enumerate(arrays)}
    return [
        (numbers.get(memory, "new"), layout, writes)
        for _, memory, layout, writes in ear.of("array_accessed")
    ]


X = "0;2,3;24,8;8"


def test_a_kernel_reports_what_it_reads_and_writes():
    x = on(SIM0, DATA)

    assert accesses(np.exp, x) == [(0, X, False), ("new", X, True)]
    assert accesses(lambda x: operator.iadd(x, x[0]), x) == [
        (0, "0;3;8;8", False),
        (0, X, True),
    ]
    assert accesses(lambda x: x.__setitem__((0, slice(1, 3)), 1.0), x) == [
        (0, "8;2;8;8", True)
    ]
    assert accesses(lambda x: x[:, [1, 0]], x) == [
        (0, X, False),
        ("new", "0;2,2;8,16;8", True),  # in the order that NumPy chooses
    ]


def test_views_and_the_empty_are_no_accesses():
    x = on(SIM0, DATA)

    assert accesses(lambda x: np.reshape(x[1:].T, 3), x) == []
    assert accesses(lambda x: x[:0] + 1, x) == []


@pytest.mark.parametrize(
    "like", [np.zeros_like, np.ones_like, lambda x: np.full_like(x, 3)]
)
def test_an_array_like_another_reads_nothing_of_it(like):
    assert accesses(like, on(SIM0, DATA)) == [("new", X, True)]


def test_an_array_full_of_an_element_reads_that():
    x, fill = on(SIM0, DATA), on(SIM0, 3.0)

    assert accesses(np.full_like, x, fill) == [(1, "0;;;8", False), ("new", X, True)]
    assert np.full_like(x, fill).tolist() == [[3.0] * 3] * 2


def test_a_kernel_is_reported_when_it_is_launched_and_when_it_has_run(stepped):
    ear = Ear()
    x = on(SIM0, DATA)
    with probe.installed(ear):
        y = np.add.reduce(x)
        assert not ear.of("kernel_ran")
        assert y.tolist() == [9.0, 6.0, 6.0]

    (number, stream, name), (copy, _, of_copy) = ear.of("kernel_launched")
    assert (stream, name, of_copy) == ("sim:0/0", "add.reduce", "Memcpy DtoH")
    ran = ear.of("kernel_ran")
    assert [one for one, _, _ in ran] == [number, copy]
    assert all(began <= ended for _, began, ended in ran)
    assert ear.heard[-1] == ("stream_synchronized", "sim:0/0")


def largest_first(array, times):
    """A function that looks at elements."""
    return array[::-1] * times if array[-1] > array[0] else array * times


def refuse_negative(array):
    if array.min() < 0:
        raise ValueError(f"{array.min()} is negative")


def test_a_function_of_our_own_is_one_kernel():
    array = on(SIM0, [1.0, 2.0])
    with probe.installed(Ear()) as ear:
        result = in_one_kernel("largest first", largest_first, array, 3)

    assert [name for _, _, name in ear.of("kernel_launched")] == ["largest first"]
    assert result.tolist() == [6, 3]
    assert in_one_kernel("", largest_first, np.array([1.0, 2.0]), 3).tolist() == [6, 3]


def test_a_function_of_our_own_is_tried_on_zeros_and_returns_at_once():
    assert is_pending(lambda x: in_one_kernel("test", largest_first, x, 3), [1.0, 2.0])


def test_wrong_elements_are_told_of_when_somebody_waits():
    check_elements("check", refuse_negative, on(SIM0, [1.0]))
    with held(default_stream(SIM0)):
        check_elements("check", refuse_negative, on(SIM0, [-1.0]))

    with pytest.raises(RuntimeError, match=r"kernel 'check' failed.* -1\.0 is neg"):
        default_stream(SIM0).synchronize()
    with pytest.raises(ValueError, match="negative"):
        check_elements("check", refuse_negative, np.array([-1.0]))


def test_a_function_of_our_own_takes_arrays_of_one_device():
    with pytest.raises(RuntimeError, match="on the same device"):
        in_one_kernel("test", largest_first, on(SIM0, [1.0]), np.array([1.0]))
