"""Jacobians, Hessians and products with them are PyTorch's, mistakes included."""

import functools
from collections.abc import Callable
from typing import Any

import pytest

from tests.parity.outcomes import same_in_both

pytestmark = pytest.mark.parity


def leaf(lib: Any, *numbers: float, requires_grad: bool = False) -> Any:
    return lib.tensor(numbers, dtype=lib.float64, requires_grad=requires_grad)


def x(lib: Any) -> Any:
    return leaf(lib, 0.5, 2.0)


def pair(lib: Any) -> Any:
    return leaf(lib, 0.5, 2.0), leaf(lib, 1.5)


#: Functions of one tensor and of two, with a scalar result and with others.
FUNCTIONS: dict[str, tuple[Callable[..., Any], Callable[[Any], Any]]] = {
    "elementwise": (lambda x: x.exp() * x, x),
    "scalar": (lambda x: (x**3).sum(), x),
    "linear": (lambda x: x.sum() * 2, x),
    "matrix": (lambda x: x.reshape(2, 1) * x, x),
    "two inputs": (lambda x, y: (x * y).sin(), pair),
    "two inputs, scalar": (lambda x, y: (x * x * y).sum(), pair),
    "two outputs": (lambda x: (x.exp(), x.sum()), x),
    "two of both": (lambda x, y: (x * y, y.cos()), pair),
    "independent of one": (lambda x, y: (x * x).sum(), pair),
    "cut off": (lambda x: (x * 2).detach().sum(), x),
    "no tensor": (lambda x: 3, x),
}


def ones_like(values: Any) -> Any:
    if isinstance(values, tuple):
        return tuple(one.detach() * 0 + 2 for one in values)
    return values.detach() * 0 + 2


def product(lib: Any, name: str, which: str, **options: Any) -> Any:
    function, inputs = FUNCTIONS[name]
    values = inputs(lib)
    called = function(*values) if isinstance(values, tuple) else function(values)
    of = called if which == "vjp" else values
    v = ones_like(of) if isinstance(of, tuple) or hasattr(of, "detach") else None
    return getattr(lib.autograd.functional, which)(function, values, v, **options)


@pytest.mark.parametrize("strict", [False, True])
@pytest.mark.parametrize("create_graph", [False, True])
@pytest.mark.parametrize("which", ["vjp", "jvp", "vhp", "hvp"])
@pytest.mark.parametrize("name", FUNCTIONS)
def test_a_product_is_pytorchs(name, which, create_graph, strict):
    def program(lib: Any) -> Any:
        found = product(lib, name, which, create_graph=create_graph, strict=strict)
        return without_names(found)

    same_in_both(program)


@pytest.mark.parametrize("strict", [False, True])
@pytest.mark.parametrize("create_graph", [False, True])
@pytest.mark.parametrize("which", ["jacobian", "hessian"])
@pytest.mark.parametrize("name", FUNCTIONS)
def test_a_matrix_of_derivatives_is_pytorchs(name, which, create_graph, strict):
    function, inputs = FUNCTIONS[name]

    def program(lib: Any) -> Any:
        compute = getattr(lib.autograd.functional, which)
        found = compute(function, inputs(lib), create_graph, strict)
        return without_names(found)

    same_in_both(program)


def without_names(found: Any) -> Any:
    """Numbers, shapes, and whether they are part of a graph."""
    if isinstance(found, tuple):
        return ["tuple", *map(without_names, found)]
    return [found.detach(), list(found.shape), found.requires_grad]


MISTAKES: dict[str, Callable[[Any], Any]] = {
    "no vector for several outputs": lambda f: functools.partial(
        f.vjp, lambda x: x * 2
    ),
    "no vector for several inputs": lambda f: functools.partial(f.jvp, lambda x: x * 2),
    "no vector, of a Hessian": lambda f: functools.partial(f.hvp, lambda x: x.sum()),
    "several elements, of a Hessian": lambda f: functools.partial(
        f.hessian, lambda x: x * 2
    ),
    "a tuple, of a Hessian": lambda f: functools.partial(
        f.hessian, lambda x: (x.sum(),)
    ),
    "a tuple, of a product with a Hessian": lambda f: (
        lambda x: f.vhp(lambda x: (x.sum(),), x, x)
    ),
    "a vector of another shape": lambda f: lambda x: f.jvp(lambda x: x * 2, x, x.sum()),
    "a vector of another length": lambda f: lambda x: f.vjp(lambda x: x * 2, x, (x, x)),
    "an entry of another shape": lambda f: (
        lambda x: f.vjp(lambda x: (x * 2, x), x, (x, x.sum()))
    ),
    "inputs that are no tensors": lambda f: lambda x: f.jacobian(lambda x: x, 3.0),
    "an input that is no tensor": lambda f: (
        lambda x: f.jacobian(lambda x, y: x, (x, 3.0))
    ),
    "strict and vectorized": lambda f: (
        lambda x: f.jacobian(lambda x: x * 2, x, strict=True, vectorize=True)
    ),
}


@pytest.mark.parametrize("name", MISTAKES)
def test_a_mistake_is_called_what_pytorch_calls_it(name):
    same_in_both(lambda lib: MISTAKES[name](lib.autograd.functional)(x(lib)))


def test_vectorized_it_is_the_same():
    def program(lib: Any) -> Any:
        return lib.autograd.functional.jacobian(
            lambda x, y: (x * y, y.sin()), pair(lib), vectorize=True
        )

    same_in_both(program)


def test_a_jacobian_may_be_differentiated():
    def program(lib: Any) -> Any:
        value = leaf(lib, 0.5, 2.0, requires_grad=True)
        found = lib.autograd.functional.jacobian(lambda x: x**3, value, True)
        return lib.autograd.grad(found.sum(), value)

    same_in_both(program)
