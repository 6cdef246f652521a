"""Anomaly detection says what PyTorch's says, stacks included."""

from collections.abc import Callable
from typing import Any

import pytest

from tests.parity.outcomes import same_in_both

pytestmark = pytest.mark.parity

PROGRAMS: dict[str, Callable[[Any], Any]] = {}


def program(function: Callable[[Any], Any]) -> Callable[[Any], Any]:
    PROGRAMS[function.__name__] = function
    return function


def leaf(lib: Any, *numbers: float) -> Any:
    return lib.tensor(numbers, dtype=lib.float64, requires_grad=True)


def custom(lib: Any, forward: Any, backward: Any) -> Any:
    methods = {"forward": staticmethod(forward), "backward": staticmethod(backward)}
    return type("Custom", (lib.autograd.Function,), methods)


@program
def a_nan(lib):
    with lib.autograd.detect_anomaly():
        loss = (leaf(lib, 0.0).sqrt() * 0).sum()
        loss.backward()


@program
def a_nan_of_a_custom_function(lib):
    def backward(ctx, grad):
        return grad * float("nan")

    with lib.autograd.detect_anomaly():
        y = custom(lib, lambda ctx, x: x * 2, backward).apply(leaf(lib, 1.0))
        y.sum().backward()


@program
def a_nan_that_is_not_looked_for(lib):
    x = leaf(lib, 0.0)
    with lib.autograd.detect_anomaly(check_nan=False):
        (x.sqrt() * 0).sum().backward()
    return str(x.grad.tolist())


@program
def an_error(lib):
    def backward(ctx, grad):
        raise RuntimeError("on purpose")

    with lib.autograd.set_detect_anomaly(True):
        y = custom(lib, lambda ctx, x: x * 2, backward).apply(leaf(lib, 1.0))
        y.sum().backward()


@program
def a_forward_that_was_not_watched(lib):
    loss = (leaf(lib, 0.0).sqrt() * 0).sum()
    with lib.autograd.set_detect_anomaly(True):
        loss.backward()


@program
def a_nan_of_a_second_derivative(lib):
    with lib.autograd.set_detect_anomaly(True):
        x = leaf(lib, 0.0)
        (first,) = lib.autograd.grad((x**1.5).sum(), x, create_graph=True)
        (first * 0).sum().backward()


@program
def what_was_induced(lib):
    class Inner(lib.autograd.Function):
        @staticmethod
        def forward(ctx, x):
            return x * 2

        @staticmethod
        def backward(ctx, grad):
            raise RuntimeError("on purpose")

    class Outer(lib.autograd.Function):
        @staticmethod
        def forward(ctx, x):
            return x * 2

        @staticmethod
        def backward(ctx, grad):
            return Inner.apply(grad * 1)

    with lib.autograd.set_detect_anomaly(True):
        x = leaf(lib, 1.0)
        y = Outer.apply(x)
        (first,) = lib.autograd.grad((y * y).sum(), x, create_graph=True)
        first.sum().backward()


@program
def the_modes_can_be_asked_for(lib):
    modes = []
    ask = getattr(lib, "is_anomaly_enabled", None) or lib.autograd.is_anomaly_enabled
    with lib.autograd.set_detect_anomaly(True):
        modes.append(ask())
        with lib.autograd.set_detect_anomaly(False):
            modes.append(ask())
        modes.append(ask())
    return [*modes, ask()]


@pytest.mark.parametrize("name", PROGRAMS)
def test_anomaly_detection_says_what_pytorchs_says(name):
    same_in_both(PROGRAMS[name])
