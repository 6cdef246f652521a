"""Checkpoints; what PyTorch does in each case is in tests/parity/test_checkpoint.py."""

import threading
import warnings

import pytest

import gradviz as gv
from gradviz.trace import probe
from gradviz.utils.checkpoint import (
    CheckpointError,
    checkpoint,
    checkpoint_sequential,
    set_checkpoint_debug_enabled,
    set_checkpoint_early_stop,
)

both = pytest.mark.parametrize("use_reentrant", [True, False])


@pytest.fixture
def x():
    return gv.tensor([0.5, 2.0], dtype=gv.float64, requires_grad=True)


def wave(x):
    return (x.exp() * x).sin() * x.cos()


def plain_gradient(function, x):
    (grad,) = gv.autograd.grad(function(x).sum(), x)
    return grad.tolist()


class Saved(probe.Probe):
    """Counts bytes that nodes save."""

    def __init__(self):
        self.bytes = 0

    def tensor_saved(self, node, size_bytes):
        self.bytes += size_bytes


@both
def test_gradients_are_those_without_it(x, use_reentrant):
    y = checkpoint(wave, x, use_reentrant=use_reentrant)
    y.sum().backward()

    assert y.tolist() == wave(x).tolist()
    assert x.grad.tolist() == plain_gradient(wave, x)


@both
def test_a_deep_net_saves_one_tensor_a_layer_instead_of_four(use_reentrant):
    """Only each checkpoint's input is kept between forward and backward."""
    x = gv.ones(1000, dtype=gv.float64, requires_grad=True)

    def bytes_saved(run):
        saved, y = Saved(), x
        with probe.installed(saved):
            for _ in range(10):
                y = run(y)
        del y
        return saved.bytes

    with_it = bytes_saved(lambda y: checkpoint(wave, y, use_reentrant=use_reentrant))
    without = bytes_saved(wave)

    assert without >= 10 * 4 * 8000
    assert with_it <= 10 * 8000


@both
def test_nested_checkpoints_compute_what_is_needed(x, use_reentrant):
    def outer(x):
        return checkpoint(wave, x.cos(), use_reentrant=use_reentrant).tanh()

    with warnings.catch_warnings():
        # Reentrant, the outer function first runs where nothing needs gradients.
        warnings.filterwarnings("ignore", "None of the inputs have requires_grad=True")
        y = checkpoint(outer, x, use_reentrant=use_reentrant)
    y.sum().backward()

    assert x.grad.tolist() == plain_gradient(lambda x: wave(x.cos()).tanh(), x)


@both
def test_the_second_run_draws_the_same_numbers_and_leaves_no_trace(use_reentrant):
    drawn = []

    def noisy(x):
        noise = gv.rand(3)
        drawn.append(noise.tolist())
        return (x * noise).exp() * 2

    x = gv.ones(3, requires_grad=True)
    gv.manual_seed(1)
    y = checkpoint(noisy, x, use_reentrant=use_reentrant)
    gv.manual_seed(2)
    expected = gv.rand(3).tolist()
    gv.manual_seed(2)
    y.sum().backward()

    assert drawn[0] == drawn[1]
    assert gv.rand(3).tolist() == expected


@both
def test_unless_it_is_told_not_to(use_reentrant):
    drawn = []

    def noisy(x):
        drawn.append(gv.rand(3).tolist())
        return x.exp() * 2

    x = gv.ones(3, requires_grad=True)
    y = checkpoint(noisy, x, use_reentrant=use_reentrant, preserve_rng_state=False)
    y.sum().backward()

    assert drawn[0] != drawn[1]


@both
@pytest.mark.parametrize("segments", [1, 2, 3, 4])
def test_a_sequence_runs_in_segments(x, use_reentrant, segments):
    runs = []

    def step(factor):
        def run(x):
            runs.append(factor)
            return (x * factor).sin()

        return run

    steps = [step(factor) for factor in (1, 2, 3, 4)]
    y = checkpoint_sequential(steps, segments, x, use_reentrant=use_reentrant)
    y.sum().backward()
    num_runs = len(runs)
    expected = plain_gradient(lambda x: steps[3](steps[2](steps[1](steps[0](x)))), x)

    assert x.grad.tolist() == expected
    assert num_runs == 4 + 4 // segments * (segments - 1)


def test_reentrant_it_is_refused_under_grad(x):
    """G10."""
    y = checkpoint(wave, x, use_reentrant=True)

    with pytest.raises(RuntimeError, match=r"is incompatible with \.grad\(\) or"):
        gv.autograd.grad(y.sum(), x)


def test_not_reentrant_it_may_be_differentiated_twice(x):
    y = checkpoint(wave, x, use_reentrant=False)
    (first,) = gv.autograd.grad(y.sum(), x, create_graph=True)
    (second,) = gv.autograd.grad(first.sum(), x)
    (plain,) = gv.autograd.grad(wave(x).sum(), x, create_graph=True)
    (expected,) = gv.autograd.grad(plain.sum(), x)

    assert second.tolist() == expected.tolist()


def test_the_second_run_stops_as_soon_as_all_is_there(x):
    """C26."""
    ends = []

    def run(x):
        y = x.exp().sin()
        ends.append(y)
        return y

    checkpoint(run, x, use_reentrant=False).sum().backward()
    assert len(ends) == 1
    with set_checkpoint_early_stop(False):
        y = checkpoint(run, x, use_reentrant=False)
    y.sum().backward()
    assert len(ends) == 3


def test_each_backward_through_a_kept_graph_computes_its_values_again(x):
    """The second backward through a kept graph runs the function a third time."""
    runs = []

    def run(x):
        runs.append(x)
        return wave(x)

    y = checkpoint(run, x, use_reentrant=False)
    y.sum().backward(retain_graph=True)
    y.sum().backward()

    assert len(runs) == 3


def test_a_function_that_differs_the_second_time_is_an_error(x):
    functions = iter([lambda x: x.sin().exp(), lambda x: x.sin()])
    y = checkpoint(lambda x: next(functions)(x), x, use_reentrant=False)  # noqa: PLW0108

    with pytest.raises(CheckpointError, match="A different number of tensors"):
        y.sum().backward()


def test_the_error_tells_what_both_runs_did_if_asked(x):
    functions = iter([lambda x: x.sin().exp(), lambda x: x.cos()])
    with set_checkpoint_debug_enabled(True):
        y = checkpoint(lambda x: next(functions)(x), x, use_reentrant=False)  # noqa: PLW0108

    with pytest.raises(CheckpointError) as caught:
        y.sum().backward()

    assert "SinBackward0 of shape [2]" in str(caught.value)
    assert "CosBackward0 of shape [2]" in str(caught.value)
    assert __file__ in str(caught.value)


def test_each_devices_thread_computes_what_it_needs():
    threads = set()

    def run(x, y):
        threads.add(threading.get_ident())
        return x.exp().sin(), y.exp().cos()

    x, y = (gv.ones(2, device=f"sim:{i}").requires_grad_() for i in range(2))
    first, second = checkpoint(run, x, y, use_reentrant=False)
    (first.cpu() + second.cpu()).sum().backward()

    expected = gv.ones(2, requires_grad=True)
    (expected.exp().sin() + expected.exp().cos()).sum().backward()
    total = x.grad.cpu() + y.grad.cpu()
    assert gv.allclose(total, expected.grad)
    assert len(threads) == 3


def test_wrong_arguments_are_pytorchs_errors(x):
    with pytest.raises(ValueError, match="Unexpected keyword arguments: unknown"):
        checkpoint(wave, x, use_reentrant=True, unknown=1)
    with pytest.raises(ValueError, match="only supported when use_reentrant=False"):
        checkpoint(wave, x, use_reentrant=True, debug=True)
    with pytest.raises(ValueError, match=r"one of \['default', 'none'\], but got all"):
        checkpoint(wave, x, use_reentrant=False, determinism_check="all")
    with pytest.warns(UserWarning, match="use_reentrant parameter should be passed"):
        checkpoint(wave, x)
