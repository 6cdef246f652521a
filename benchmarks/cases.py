"""The programs that are timed, each written once for every library it can run on.

A case is a function that takes a library (`gradviz`, `torch`) and returns a contestant.
HIPS autograd has another way of writing programs, so its chain stands by itself.
"""

import operator
import threading
from collections.abc import Callable
from types import ModuleType
from typing import Any, NamedTuple

import numpy as np

from benchmarks.models import cnn, transformer
from benchmarks.timing import Contestant, timed


class Case(NamedTuple):
    """One thing to measure.

    Attributes:
        title: For the table.
        make: Takes a library, returns a contestant.
        units: How many nodes or ops a run has, to print a time for one.
        budget: The ratio to PyTorch that is promised of the compiled core; None where
            none is.
    """

    title: str
    make: Callable[[Any], Contestant]
    units: int
    budget: float | None


def as_tensor(library: ModuleType, array: np.ndarray, *, wants_grad: bool) -> Any:
    """`array` as a tensor of `library`."""
    tensor = library.tensor(array)
    return tensor.requires_grad_() if wants_grad else tensor


def chain(library: ModuleType, *, forward: bool) -> Contestant:
    """2,000 `sin` on 4 numbers: nearly nothing but the engine."""
    x = as_tensor(library, np.arange(4.0), wants_grad=True)
    seed = as_tensor(library, np.ones(4), wants_grad=False)

    def run() -> float:
        result = []

        def ahead() -> None:
            y = x
            for _ in range(2000):
                y = y.sin()
            result.append(y)

        seconds = timed(ahead)
        y = result.pop()
        backward = timed(lambda: y.backward(seed))
        return seconds if forward else backward

    return run


def wide(library: ModuleType) -> Contestant:
    """1,000 branches of two ops from one leaf into one sum: fan-out and fan-in."""
    x = as_tensor(library, np.arange(4.0), wants_grad=True)
    seed = as_tensor(library, np.ones(4), wants_grad=False)

    def run() -> float:
        x.grad = None
        branches = [x.sin() * 2.0 for _ in range(1000)]
        while len(branches) > 1:
            branches = [
                a + b for a, b in zip(branches[::2], branches[1::2], strict=False)
            ] + (branches[-1:] if len(branches) % 2 else [])
        return timed(lambda: branches[0].backward(seed))

    return run


def mlp(library: ModuleType, *, batch: int, width: int, layers: int) -> Contestant:
    """Forward and backward of an MLP with tanh, float32."""
    elements, *arrays = mlp_parameters(batch=batch, width=width, layers=layers)
    x = as_tensor(library, elements, wants_grad=False)
    weights, biases = (
        [as_tensor(library, one, wants_grad=True) for one in several]
        for several in arrays
    )

    def step() -> None:
        h = x
        for weight, bias in zip(weights, biases, strict=True):
            h = (h @ weight + bias).tanh()
        h.sum().backward()
        for parameter in (*weights, *biases):
            parameter.grad = None

    return lambda: timed(step)


def mlp_parameters(
    *, batch: int, width: int, layers: int
) -> tuple[np.ndarray, list[np.ndarray], list[np.ndarray]]:
    """The input, the weights and the biases of an MLP."""
    source = np.random.default_rng(0)

    def array(*shape: int) -> np.ndarray:
        return (source.standard_normal(shape) / np.sqrt(width)).astype(np.float32)

    x = array(batch, width)
    weights = [array(width, width) for _ in range(layers)]
    return x, weights, [array(width) for _ in range(layers)]


def callers(library: ModuleType) -> Contestant:
    """Four threads, each with ten chains of 200 `sin`, at the same time."""

    def work() -> None:
        x = as_tensor(library, np.arange(4.0), wants_grad=True)
        for _ in range(10):
            y = x
            for _ in range(200):
                y = y.sin()
            y.sum().backward()

    def run() -> None:
        threads = [threading.Thread(target=work) for _ in range(4)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()

    return lambda: timed(run)


def functions(library: ModuleType) -> Contestant:
    """A chain of 1,000 custom Functions that double their input."""

    class Double(library.autograd.Function):  # type: ignore[misc]
        @staticmethod
        def forward(_: Any, x: Any) -> Any:
            return x * 2.0

        @staticmethod
        def backward(_: Any, grad: Any) -> Any:
            return grad * 2.0

    x = as_tensor(library, np.arange(4.0), wants_grad=True)
    seed = as_tensor(library, np.ones(4), wants_grad=False)

    def run() -> float:
        y = x
        for _ in range(1000):
            y = Double.apply(y)
        return timed(lambda: y.backward(seed))

    return run


def adam(library: ModuleType) -> Contestant:
    """A step over 50 parameters of 1,000 elements, with all defaults."""
    parameters = [
        as_tensor(library, np.ones(1000, np.float32), wants_grad=True)
        for _ in range(50)
    ]
    for one in parameters:
        one.grad = as_tensor(library, np.ones(1000, np.float32), wants_grad=False)
    optimizer = library.optim.Adam(parameters)
    return lambda: timed(optimizer.step)


def op(
    library: ModuleType, call: Callable[..., object], *shapes: tuple[int, ...]
) -> Contestant:
    """One op, recorded 1,000 times: what it costs to come through the door."""
    tensors = [as_tensor(library, np.ones(shape), wants_grad=True) for shape in shapes]

    def calls() -> None:
        for _ in range(1000):
            call(*tensors)

    return lambda: timed(calls)


def op_case(title: str, call: Callable[..., object], *shapes: tuple[int, ...]) -> Case:
    """The forward of one op."""
    return Case(f"forward, `{title}`", lambda lib: op(lib, call, *shapes), 1000, 1.5)


CASES = {
    "chain": Case(
        "backward, chain of 2,000 sin", lambda lib: chain(lib, forward=False), 2000, 0.6
    ),
    "forward": Case(
        "forward, the same chain", lambda lib: chain(lib, forward=True), 2000, 1.2
    ),
    "add": op_case("x + y", operator.add, (4,), (4,)),
    "multiply": op_case("x * 2.0", lambda x: x * 2.0, (4,)),
    "matmul": op_case("x @ y", operator.matmul, (4, 4), (4, 4)),
    "relu": op_case("x.relu()", lambda x: x.relu(), (4,)),
    "sum": op_case("x.sum()", lambda x: x.sum(), (4,)),
    "index": op_case("x[1]", lambda x: x[1], (4,)),
    "reshape": op_case("x.reshape(2, 2)", lambda x: x.reshape(2, 2), (4,)),
    "wide": Case("backward, 1,000 branches", wide, 3000, 1.0),
    "small-mlp": Case(
        "step, MLP, batch 8, width 16, 50 layers",
        lambda lib: mlp(lib, batch=8, width=16, layers=50),
        1,
        0.9,
    ),
    "large-mlp": Case(
        "step, MLP, batch 256, width 1024, 4 layers",
        lambda lib: mlp(lib, batch=256, width=1024, layers=4),
        1,
        1.2,
    ),
    "callers": Case("4 threads, 10 chains of 200 each", callers, 8000, 1.0),
    "cnn": Case("step, CNN, 16 images of 3 x 32 x 32", cnn, 1, 1.1),
    "small-transformer": Case(
        "step, transformer, 8 x 32 tokens, width 64",
        lambda lib: transformer(lib, batch=8, width=64),
        1,
        1.1,
    ),
    "transformer": Case(
        "step, transformer, 16 x 32 tokens, width 256",
        lambda lib: transformer(lib, batch=16, width=256),
        1,
        1.0,
    ),
    "function": Case(
        "backward, chain of 1,000 Functions in Python", functions, 1000, 0.7
    ),
    "adam": Case("step of Adam, 50 parameters of 1,000", adam, 1, 1.0),
}
