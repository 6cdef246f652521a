"""Every formula against finite differences: once, twice, and on a device."""

import math
from collections.abc import Callable
from typing import NamedTuple

import numpy as np
import pytest

import gradviz as gv
from gradviz.autograd import grad, gradcheck


class Case(NamedTuple):
    """A function, and the shapes of the inputs it is checked with."""

    function: Callable[..., gv.Tensor]
    shapes: tuple[tuple[int, ...], ...]
    positive: bool = False


CLASSES = np.array([2, 0, 1])
ROWS = np.array([2, 0, 2])
MASK = np.array([True, False, True])


def like(x, data):
    """`data` as a tensor on the device of `x`."""
    return gv.tensor(data, device=x.device)


ANY_SHAPE = ((), (3,), (2, 3), (0,), (2, 0, 3))
PAIRS = (
    ((2, 3), (2, 3)),
    ((2, 3), (3,)),
    ((3,), (2, 3)),
    ((2, 1), (1, 3)),
    ((2, 3), ()),
    ((), (2, 3)),
    ((), ()),
    ((1, 3), (0, 3)),
    ((4, 1, 3), (2, 1)),
)

ELEMENTWISE = {
    "neg": lambda x: -x,
    "abs": abs,
    "sign": gv.sign,
    "square": gv.square,
    "exp": gv.exp,
    "expm1": gv.expm1,
    "sin": gv.sin,
    "cos": gv.cos,
    "tan": gv.tan,
    "tanh": gv.tanh,
    "relu": gv.relu,
    "sigmoid": gv.sigmoid,
    "clamp": lambda x: x.clamp(-0.5, 0.5),
    "clamp below": lambda x: x.clamp(min=-0.5),
    "clamp above": lambda x: x.clamp(max=0.5),
    "clone": gv.clone,
    "x + 2": lambda x: x + 2,
    "2 - x": lambda x: 2 - x,
    "x - 2": lambda x: x - 2,
    "x * 2": lambda x: x * 2.0,
    "x / 2": lambda x: x / 2,
    "x ** 0": lambda x: x**0,
    "x ** 1": lambda x: x**1,
    "x ** 2": lambda x: x**2,
    "x ** 3.0": lambda x: x**3.0,
    "2 ** x": lambda x: 2**x,
    "where": lambda x: gv.where(x > 0, x * 2, x * 3),
}

ELEMENTWISE_POSITIVE = {
    "log": gv.log,
    "log1p": gv.log1p,
    "sqrt": gv.sqrt,
    "reciprocal": gv.reciprocal,
    "2 / x": lambda x: 2 / x,
    "x ** 0.5": lambda x: x**0.5,
    "x ** -1": lambda x: x**-1.0,
}

BINARY = {
    "add": gv.add,
    "sub": gv.sub,
    "mul": gv.mul,
    "maximum": gv.maximum,
    "minimum": gv.minimum,
    "where": lambda x, y: gv.where(np.array(True), x, y * 2),
    "mse_loss": gv.mse_loss,
    "mse_loss sum": lambda x, y: gv.mse_loss(x, y, reduction="sum"),
    "mse_loss none": lambda x, y: gv.mse_loss(x, y, reduction="none"),
}

BINARY_POSITIVE = {
    "div": gv.div,
    "pow": lambda x, y: x**y,
    "remainder": lambda x, y: (x + 10) % y,
}

OTHERS = {
    "sum": Case(lambda x: x.sum(), ((2, 3),)),
    "sum of nothing": Case(lambda x: x.sum(), ((0, 3),)),
    "sum of one": Case(lambda x: x.sum(), ((),)),
    "sum along 0": Case(lambda x: x.sum(0), ((2, 3),)),
    "sum along -1, kept": Case(lambda x: x.sum(-1, keepdim=True), ((2, 3),)),
    "sum along two": Case(lambda x: x.sum((0, -1)), ((2, 3, 4),)),
    "sum, all kept": Case(lambda x: x.sum(keepdim=True), ((2, 3),)),
    "mean": Case(lambda x: x.mean(), ((2, 3),)),
    "mean along 1": Case(lambda x: x.mean(1), ((2, 3),)),
    "mean along -2, kept": Case(lambda x: x.mean(-2, keepdim=True), ((2, 3),)),
    "mean along two": Case(lambda x: x.mean((0, 2)), ((2, 3, 4),)),
    "max": Case(lambda x: x.max(), ((2, 3),)),
    "min": Case(lambda x: x.min(), ((2, 3),)),
    "max along 0": Case(lambda x: x.max(0).values, ((2, 3),)),
    "max along -1, kept": Case(lambda x: x.max(-1, keepdim=True).values, ((2, 3),)),
    "max of one": Case(lambda x: x.max(0).values, ((),)),
    "min along 1": Case(lambda x: x.min(1).values, ((2, 3),)),
    "amax": Case(lambda x: x.amax(), ((2, 3),)),
    "amax along two": Case(lambda x: x.amax((0, 1)), ((2, 3, 4),)),
    "amin along 1, kept": Case(lambda x: x.amin(1, keepdim=True), ((2, 3),)),
    "softmax": Case(lambda x: x.softmax(-1), ((2, 3),)),
    "softmax of columns": Case(lambda x: x.softmax(0), ((2, 3),)),
    "log_softmax": Case(lambda x: x.log_softmax(1), ((2, 3),)),
    "cross_entropy": Case(lambda x: gv.cross_entropy(x, like(x, CLASSES)), ((3, 4),)),
    "cross_entropy sum": Case(
        lambda x: gv.cross_entropy(x, like(x, CLASSES), reduction="sum"), ((3, 4),)
    ),
    "cross_entropy of each": Case(
        lambda x: gv.cross_entropy(x, like(x, CLASSES), reduction="none"), ((3, 4),)
    ),
    "cross_entropy, one ignored": Case(
        lambda x: gv.cross_entropy(x, like(x, CLASSES), ignore_index=0), ((3, 4),)
    ),
    "cross_entropy, weighted": Case(
        lambda x: gv.cross_entropy(
            x, like(x, CLASSES), like(x, np.array([1.0, 2.0, 3.0, 4.0]))
        ),
        ((3, 4),),
    ),
    "cross_entropy of one": Case(lambda x: gv.cross_entropy(x, like(x, 1)), ((4,),)),
    "nll_loss": Case(lambda x: gv.nll_loss(x, like(x, CLASSES)), ((3, 4),)),
    "reshape": Case(lambda x: x.reshape(3, -1), ((2, 3),)),
    "reshape to nothing": Case(lambda x: x.reshape(()), ((1, 1),)),
    "reshape of a transpose": Case(lambda x: x.T.reshape(-1), ((2, 3),)),
    "reshape of a slice": Case(lambda x: x[:, :2].reshape(4, 1), ((2, 3, 1),)),
    "view": Case(lambda x: x.view(6), ((2, 3),)),
    "flatten": Case(lambda x: x.flatten(1), ((2, 3, 4),)),
    "T": Case(lambda x: x.T, ((2, 3),)),
    "t": Case(lambda x: x.t(), ((2, 3),)),
    "mT": Case(lambda x: x.mT, ((2, 3, 4),)),
    "transpose": Case(lambda x: x.transpose(0, -1), ((2, 3, 4),)),
    "permute": Case(lambda x: x.permute(2, 0, 1), ((2, 3, 4),)),
    "unsqueeze": Case(lambda x: x.unsqueeze(-1), ((2, 3),)),
    "squeeze": Case(lambda x: x.squeeze(), ((1, 2, 1),)),
    "squeeze one": Case(lambda x: x.squeeze(0), ((1, 2, 1),)),
    "squeeze two": Case(lambda x: x.squeeze((0, 2)), ((1, 2, 1),)),
    "expand": Case(lambda x: x.expand(4, 2, 3), ((1, 3),)),
    "expand a number": Case(lambda x: x.expand(2, 3), ((),)),
    "cat": Case(lambda x, y: gv.cat([x, y, x]), ((2, 3), (1, 3))),
    "cat along -1": Case(lambda x, y: gv.cat([x, y], -1), ((2, 3), (2, 1))),
    "stack": Case(lambda x, y: gv.stack([x, y]), ((2, 3), (2, 3))),
    "stack along -1": Case(lambda x, y: gv.stack([x, y], -1), ((2, 3), (2, 3))),
    "x[1]": Case(lambda x: x[1], ((2, 3),)),
    "x[-1]": Case(lambda x: x[-1], ((2,),)),
    "x[0, 1]": Case(lambda x: x[0, 1], ((2, 3),)),
    "x[1:]": Case(lambda x: x[1:], ((2, 3),)),
    "x[::2, None]": Case(lambda x: x[::2, None], ((3, 2),)),
    "x[..., 1]": Case(lambda x: x[..., 1], ((2, 3),)),
    "x[...]": Case(lambda x: x[...], ((2, 3),)),
    "x[rows]": Case(lambda x: x[ROWS], ((3, 2),)),
    "x[:, rows]": Case(lambda x: x[:, ROWS], ((2, 3),)),
    "x[rows, rows]": Case(lambda x: x[ROWS, ROWS], ((3, 3),)),
    "x[1:, rows]": Case(lambda x: x[1:, ROWS], ((2, 3),)),
    "x[mask]": Case(lambda x: x[MASK], ((3, 2),)),
    "x[mask of all]": Case(lambda x: x[np.eye(3) == 1], ((3, 3, 2),)),
    "dot": Case(gv.dot, ((3,), (3,))),
    "mv": Case(gv.mv, ((2, 3), (3,))),
    "mm": Case(gv.mm, ((2, 3), (3, 4))),
    "bmm": Case(gv.bmm, ((2, 2, 3), (2, 3, 4))),
    "addmm": Case(gv.addmm, ((4,), (2, 3), (3, 4))),
    "outer": Case(gv.outer, ((2,), (3,))),
    "matmul of nothing": Case(gv.matmul, ((2, 0), (0, 3))),
    "matmul 1, 2": Case(gv.matmul, ((3,), (3, 2))),
    "matmul 3, 1": Case(gv.matmul, ((2, 2, 3), (3,))),
    "matmul 3, 2": Case(gv.matmul, ((2, 2, 3), (3, 4))),
    "matmul 2, 3": Case(gv.matmul, ((2, 3), (2, 3, 4))),
    "matmul 1, 3": Case(gv.matmul, ((3,), (2, 3, 4))),
    "matmul 3, 3": Case(gv.matmul, ((1, 2, 3), (2, 3, 4))),
    "matmul 4, 3": Case(gv.matmul, ((2, 1, 2, 3), (3, 3, 2))),
    "matmul of a transpose": Case(lambda x, y: x.T @ y, ((3, 2), (3, 2))),
    "linear": Case(gv.linear, ((2, 3), (4, 3), (4,))),
    "linear of a batch": Case(gv.linear, ((2, 2, 3), (4, 3), (4,))),
    "linear of a permuted batch": Case(
        lambda x, w, b: gv.linear(x.permute(1, 0, 2), w, b), ((2, 2, 3), (4, 3), (4,))
    ),
    "linear without bias": Case(gv.linear, ((2, 3), (4, 3))),
    "to float64 and back": Case(lambda x: x.double().to(gv.float64), ((2,),)),
    "one input used twice": Case(lambda x: x * x.sin() + x, ((3,),)),
    "x *= y": Case(lambda x, y: (x.clone().mul_(y)).sum(), ((3,), (3,))),
}

CASES = {
    **{
        f"{name}, {shape}": Case(function, (shape,))
        for name, function in ELEMENTWISE.items()
        for shape in ANY_SHAPE
    },
    **{
        f"{name}, {shape}": Case(function, (shape,), positive=True)
        for name, function in ELEMENTWISE_POSITIVE.items()
        for shape in ANY_SHAPE
    },
    **{
        f"{name}, {shapes}": Case(function, shapes)
        for name, function in BINARY.items()
        for shapes in PAIRS
        if not (name == "mse_loss" and math.prod(sum(shapes, ())) == 0)
    },
    **{
        f"{name}, {shapes}": Case(function, shapes, positive=True)
        for name, function in BINARY_POSITIVE.items()
        for shapes in PAIRS
    },
    **OTHERS,
}

each_case = pytest.mark.parametrize("case", CASES.values(), ids=CASES.keys())


def inputs_of(case: Case, device: str = "cpu") -> list[gv.Tensor]:
    random = np.random.default_rng(7)
    return [
        gv.tensor(
            np.asarray(random.uniform(0.5 if case.positive else -1.5, 1.5, shape)),
            device=device,
            requires_grad=True,
        )
        for shape in case.shapes
    ]


@each_case
def test_a_gradient_agrees_with_finite_differences(case):
    assert gradcheck(case.function, inputs_of(case))


@each_case
def test_a_gradient_of_a_gradient_agrees_with_finite_differences(case):
    def gradient(*inputs):
        output = case.function(*inputs)
        weights = gv.tensor(np.cos(np.arange(output.numel()))).reshape(output.shape)
        first = grad(output, inputs, weights, create_graph=True, allow_unused=True)
        parts = [(one * one).sum() for one in first if one.requires_grad]
        return sum(parts, gv.zeros((), dtype=gv.float64)) + 0 * inputs[0].sum()

    assert gradcheck(gradient, inputs_of(case), atol=1e-4, rtol=1e-4)


@each_case
def test_a_gradient_computed_on_a_device_is_there_and_the_same(case):
    on_host, on_device = inputs_of(case), inputs_of(case, "sim:1")
    expected, result = case.function(*on_host), case.function(*on_device)

    gv.autograd.backward(expected, gv.ones_like(expected))
    gv.autograd.backward(result, gv.ones_like(result))

    for host, device in zip(on_host, on_device, strict=True):
        assert str(device.grad.device) == "sim:1"
        np.testing.assert_allclose(device.grad.cpu().numpy(), host.grad.numpy())


@pytest.mark.parametrize(
    "layout", [lambda x: x.T, lambda x: x[::-1], lambda x: x[:, 1:]]
)
@pytest.mark.parametrize("function", [gv.sin, gv.relu, lambda x: x * x])
def test_a_gradient_of_an_array_that_is_not_contiguous_is_right(layout, function):
    x = gv.from_numpy(layout(np.random.default_rng(0).uniform(-1, 1, (3, 4))))

    assert gradcheck(function, [x.requires_grad_()])
