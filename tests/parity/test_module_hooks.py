"""Backward hooks of modules see, change and forbid what they do in PyTorch."""

from collections.abc import Callable
from typing import Any

import pytest

from tests.parity.outcomes import plain, same_in_both

pytestmark = pytest.mark.parity


def leaf(lib: Any) -> Any:
    return lib.tensor([1.0, 2.0], requires_grad=True)


def hooked(lib: Any, forward: Callable[..., Any], seen: list[Any] | None = None) -> Any:
    """A module with this forward; `seen` gets the gradients that its hook is given."""
    module = type("M", (lib.nn.Module,), {"forward": staticmethod(forward)})()

    def hook(module, grad_input, grad_output):
        if seen is not None:
            seen.append(plain([grad_input, grad_output]))

    module.register_full_backward_hook(hook)
    return module


def same(x: Any) -> Any:
    return x


#: A forward, which results to differentiate, and whether both arguments need gradients.
CALLS: dict[str, tuple[Callable[..., Any], Callable[..., Any], bool]] = {
    "an argument without use": (lambda x, y: x * 2, same, True),
    "a result without use": (lambda x, y: (x * 2, y * 3), lambda o: o[0], True),
    "the first result without use": (lambda x, y: (x * 2, y * 3), lambda o: o[1], True),
    "an argument without gradient": (lambda x, y: (x * 2, y * 3), sum, False),
    "a result that is no tensor": (lambda x, y: (x * 2, 3, y), lambda o: o[2], True),
    "arguments as they are": (lambda x, y: (x, y), sum, True),
    "one of them": (lambda x, y: y, same, False),
}


@pytest.mark.parametrize("name", CALLS)
def test_hooks_see_the_same_gradients(name):
    forward, used, needs = CALLS[name]

    def program(lib):
        seen: list[Any] = []
        x, y = leaf(lib), leaf(lib).requires_grad_(needs)
        result = used(hooked(lib, forward, seen)(x, y))
        if result.requires_grad:
            result.sum().backward()
        return seen, x.grad, y.grad

    same_in_both(program)


def change_the_result(lib, x):
    hooked(lib, lambda x: x * 2)(x).add_(1)


def change_the_result_unseen(lib, x):
    y = hooked(lib, lambda x: x * 2)(x)
    with lib.no_grad():
        y.add_(1)
    y.sum().backward()


def change_one_of_several_results(lib, x):
    hooked(lib, lambda x: (x * 2, x * 3))(x)[1].add_(1)


def change_what_came_in(lib, x):
    before = x.exp()
    result = hooked(lib, lambda x: x)(before)
    before.mul_(2)
    result.sum().backward()


def change_it_inside(lib, x):
    hooked(lib, lambda x: x.mul_(2))(x.exp()).sum().backward()


def change_it_in_the_next_layer(lib, x):
    layers = lib.nn.Sequential(lib.nn.Sigmoid(), lib.nn.ReLU(inplace=True))
    layers[0].register_full_backward_hook(lambda *_: None)
    layers(x)


def change_an_argument_without_gradient(lib, x):
    y = lib.ones(2)
    module = hooked(lib, lambda x, y: y.add_(1) * x)
    return module(x, y), y, y._version


@pytest.mark.parametrize(
    "change",
    [
        change_the_result,
        change_the_result_unseen,
        change_one_of_several_results,
        change_what_came_in,
        change_it_inside,
        change_it_in_the_next_layer,
        change_an_argument_without_gradient,
    ],
)
def test_changes_in_place_of_tensors_that_hooks_watch_end_as_in_pytorch(change):
    same_in_both(lambda lib: change(lib, leaf(lib)))


def test_a_tensor_that_passes_through_a_hooked_module_is_a_view():
    def program(lib):
        x = leaf(lib)
        y = hooked(lib, lambda x: x)(x)
        return y._is_view(), y._base is x, y._version, y

    same_in_both(program)
