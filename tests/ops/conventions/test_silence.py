import warnings
from concurrent.futures import ThreadPoolExecutor
from contextvars import Context, ContextVar
from operator import attrgetter

import numpy as np
import pytest

import gradviz as gv
from gradviz.ops.conventions import silence
from gradviz.ops.elementwise import activation


@pytest.mark.parametrize(
    "compute",
    [
        lambda x: x.log(),
        lambda x: 1 / x,
        lambda x: (x + 1e38) * 10,
        lambda x: (x + 1000).exp(),
        lambda x: x.float() * 1.5e300,
        lambda x: x.float() - 2.5e300,
        lambda x: (x - 1).sqrt(),
        lambda x: (x + 1e300).to(gv.float32),
        lambda x: x.log_(),
    ],
)
@pytest.mark.parametrize("device", ["cpu", "sim:1"])
def test_an_op_that_leaves_its_domain_says_nothing(compute, device):
    x = gv.zeros(2, dtype=gv.float64, device=device)

    with warnings.catch_warnings():
        warnings.simplefilter("error")
        compute(x)


def test_the_backward_of_an_op_that_leaves_its_domain_says_nothing():
    x = gv.zeros(2, requires_grad=True)

    x.sqrt().sum().backward()

    assert x.grad.tolist() == [np.inf, np.inf]


def test_numpy_goes_on_warning_who_uses_it_directly():
    gv.zeros(2).log()

    with pytest.warns(RuntimeWarning, match="divide by zero"):
        np.log(np.zeros(1))


@pytest.mark.parametrize("dtype", ["float16", "float32", "float64", "longdouble"])
def test_relu_raises_no_floating_point_flag(dtype):
    values = np.array([np.nan, np.inf, -np.inf, -0.0, 0, 1], dtype)
    extremes = np.array([f(np.finfo(dtype)) for f in (_MAX, _MIN, _SMALLEST)])

    with np.errstate(all="raise"):
        for array in (values, extremes, np.tile(values, 9), values[:1].reshape(())):
            activation.relu(array)


_MAX, _MIN, _SMALLEST = map(attrgetter, ("max", "min", "smallest_subnormal"))


class TestQuietly:
    def test_a_kernel_warns_of_nothing_and_numpy_does_again_afterwards(self):
        with warnings.catch_warnings():
            warnings.simplefilter("error")
            assert silence.quietly(np.log, np.zeros(1)).tolist() == [-np.inf]
            huge = np.full((2, 2), 3e38, np.float32)
            assert silence.quietly(huge.dot, huge).tolist() == [[np.inf] * 2] * 2

        with pytest.warns(RuntimeWarning, match="divide by zero"):
            np.log(np.zeros(1))

    def test_an_error_of_the_kernel_is_the_callers_and_its_context_is_used_again(self):
        before = list(silence._quiet)

        with pytest.raises(ValueError, match="could not be broadcast"):
            silence.quietly(np.add, np.ones(2), np.ones(3))

        assert silence._quiet == before

    def test_the_callers_context_is_left_as_it_was(self):
        mine = ContextVar("mine")
        mine.set(1)

        silence.quietly(np.add, np.ones(2), np.ones(2))

        assert mine.get() == 1
        assert not any(mine in context for context in silence._quiet)

    def test_one_that_runs_inside_of_another_has_another_context(self, monkeypatch):
        # As a finalizer does that a collection calls inside of a kernel, if it lets
        # NumPy speak: which these contexts do from the beginning.
        contexts = [Context(), Context()]
        monkeypatch.setattr(silence, "_quiet", contexts[:])

        entered = silence.quietly(
            lambda _: silence.quietly(lambda _: len(silence._quiet), np.zeros(1)),
            np.zeros(1),
        )

        assert entered == 0
        assert sorted(map(id, silence._quiet)) == sorted(map(id, contexts))

    def test_a_kernel_gets_a_new_context_when_all_are_taken(self, monkeypatch):
        monkeypatch.setattr(silence, "_quiet", [])

        with warnings.catch_warnings():
            warnings.simplefilter("error")
            silence.quietly(np.log, np.zeros(1))

        assert len(silence._quiet) == 1

    def test_a_kernel_enters_no_context_where_numpy_is_silent_already(
        self, monkeypatch
    ):
        monkeypatch.setattr(silence, "_quiet", None)
        heard = silence.setting()
        try:
            silence.put(silence.SILENT)
            assert silence.quietly(np.log, np.zeros(1)).tolist() == [-np.inf]
        finally:
            silence.put(heard)

    def test_threads_do_not_meet_in_one_context(self):
        def work(number):
            for _ in range(200):
                assert silence.quietly(np.log, np.zeros(number)).size == number

        with warnings.catch_warnings(), ThreadPoolExecutor(4) as pool:
            warnings.simplefilter("error")
            for done in [pool.submit(work, number) for number in range(1, 5)]:
                done.result()
