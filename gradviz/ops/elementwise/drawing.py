"""Random numbers of the shape and dtype of a tensor, and checks of their ranges.

Differs: the numbers are NumPy's, not those of PyTorch for the same seed.
"""

from collections.abc import Callable
from typing import Any, Final, TypeAlias

import numpy as np

from gradviz.backends.arrays.wrapped_array import WrappedArray, check_elements
from gradviz.backends.base import Array, backend_of, beside
from gradviz.ops.conventions.dimensions import Shape
from gradviz.ops.conventions.dtype_names import scalar_type_name
from gradviz.ops.conventions.generator import Generator, default_generator
from gradviz.ops.dispatch.differentiable import Op, differentiable
from gradviz.ops.dispatch.public import names
from gradviz.ops.variables.variable import Value, Variable, raw, variable, zeros_like

#: Draws as many numbers as a shape says.
Draw: TypeAlias = Callable[[Shape], Any]


def bernoulli(
    input: Variable,
    p: float | None = None,
    *,
    generator: Generator | None = None,
) -> Value:
    """1 with the probability that each element says, or with `p`, else 0.

    Raises:
        RuntimeError: A probability is not between 0 and 1.
    """
    if p is None:
        check_kind(input, "f", "bernoulli_tensor_cpu_p_")
    chances = chances_of(
        input if p is None else p,
        "Expected p_in >= 0 && p_in <= 1 to be true, but got false.",
    )
    random = random_of(generator)
    drawn: Value = _BERNOULLI(
        input,
        lambda size: beside(input.array, np.asarray(random.random(size))) < chances,
    )
    return drawn


def multinomial(
    input: Variable,
    num_samples: int,
    replacement: bool = False,
    *,
    generator: Generator | None = None,
) -> Value:
    """Indices drawn with the weights that the elements are, for each row.

    Raises:
        RuntimeError: There are not enough of them.
    """
    weights = input.array
    if not replacement and num_samples > weights.shape[-1]:
        raise RuntimeError(
            "cannot sample n_sample > prob_dist.size(-1) samples without replacement"
        )
    check_elements("multinomial: check", _check_weights, weights)
    random, shape = random_of(generator), weights.shape
    rows: Array = np.reshape(weights, (-1, shape[-1])).astype(np.float64)
    if not replacement and isinstance(rows, WrappedArray):
        # As PyTorch does: how many numbers `choice` draws, the elements decide.
        ranks = rows / beside(rows, random.exponential(size=rows.shape))
        drawn: Array = np.argsort(-ranks, axis=-1)[:, :num_samples]
    elif isinstance(rows, WrappedArray):
        ends = np.cumsum(rows, axis=-1)
        numbers = beside(rows, random.random((rows.shape[0], num_samples, 1)))
        drawn = np.sum((ends / ends[:, -1:])[:, None] <= numbers, axis=-1)
    else:
        drawn = np.asarray(
            [
                random.choice(row.size, num_samples, replacement, row / row.sum())
                for row in rows
            ],
            np.int64,
        )
    result: Value = variable(np.reshape(drawn, (*shape[:-1], num_samples)))
    return result


def _check_weights(weights: np.ndarray) -> None:
    if not bool(np.all((weights >= 0) & np.isfinite(weights))):
        raise RuntimeError(
            "probability tensor contains either `inf`, `nan` or element < 0"
        )
    if not bool(np.all(np.sum(weights, axis=-1) > 0)):
        raise RuntimeError(
            "invalid multinomial distribution (sum of probabilities <= 0)"
        )


def poisson(input: Variable, generator: Generator | None = None) -> Variable:
    """Draw from Poisson distributions with the elements as means."""
    means, random = _on_host(input), random_of(generator)
    drawn: Variable = _POISSON(input, lambda size: random.poisson(means, size))
    return drawn


def constant_op(node: str) -> Op:
    """Return an op with a random result, and so with a gradient of zero."""

    @differentiable(node, x=lambda grad: zeros_like(grad))
    def drawn(x: Array, draw: Draw) -> Array:
        numbers = draw(x.shape)
        if x.dtype.kind == "c":
            numbers = numbers + 1j * draw(x.shape)
        if isinstance(numbers, WrappedArray):  # it was drawn there
            return numbers.astype(x.dtype)
        return beside(x, np.asarray(numbers).astype(x.dtype))

    return drawn


_POISSON: Final = constant_op("PoissonBackward0")
_BERNOULLI: Final = constant_op("BernoulliBackward0")


def random_of(generator: Generator | None) -> np.random.Generator:
    """NumPy's generator of `generator`, or of the one that all share."""
    return (generator or default_generator).random


def check_kind(x: Variable, kinds: str, kernel: str) -> None:
    """Raise PyTorch's error unless the elements are of one of NumPy's `kinds`."""
    dtype = x.array.dtype
    if dtype.kind not in kinds:
        raise NotImplementedError(
            f'"{kernel}" not implemented for {scalar_type_name(dtype)!r}'
        )


def chances_of(p: Value, refusal: str) -> Array:
    """The elements or the number `p`, which must be probabilities.

    Raises:
        RuntimeError: One is none; the message is `refusal`.
    """
    chances: Array = raw(p) if isinstance(p, Variable) else np.asarray(p)
    check_elements("bernoulli: check", _check_chances, chances, refusal)
    return chances


def _check_chances(chances: np.ndarray, refusal: str) -> None:
    if not bool(np.all((chances >= 0) & (chances <= 1))):
        raise RuntimeError(refusal)


def _on_host(x: Variable) -> np.ndarray:
    return backend_of(x.device).to_host(x.array)


PUBLIC = [
    *names("gv.f", poisson),
    *names("gv.f(out=) x.f", bernoulli, multinomial),
]
