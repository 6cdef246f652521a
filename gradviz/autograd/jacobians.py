"""Jacobians along directions: by finite differences, and by backward.

A direction is an array in the shape of an input; a weight is one in the shape of an
output. For one of each, the product ``<weight, J direction>`` is a number, which
differences compute from the right and backward from the left. A complex input varies in
two directions, the real and the imaginary: the number is complex, ``dL/dRe + i dL/dIm``
as everywhere in PyTorch. For a complex output, `unit` selects the part.
"""

from collections.abc import Callable, Iterator, Sequence
from typing import Final, NamedTuple, TypeAlias

import numpy as np

from gradviz.autograd.gradient import grad
from gradviz.backends.base import copy_to
from gradviz.backends.device import CPU
from gradviz.ops.variables.variable import Value, Variable, variable

#: Takes the inputs, returns one tensor or several.
TensorFunction: TypeAlias = Callable[..., Value]

_SEED: Final = 0


# --- directions -----------------------------------------------------------------------


def unit_vectors(x: Variable) -> Iterator[np.ndarray]:
    """Yield one direction for each element."""
    shape = x.array.shape
    for index in range(x.array.size):
        vector = np.zeros(x.array.size)
        vector[index] = 1
        yield vector.reshape(shape)


def random_vector(x: Variable) -> Iterator[np.ndarray]:
    """Yield one direction of length 1, the same for the same shape."""
    vector = np.random.default_rng(_SEED).uniform(0.1, 1, x.array.shape)
    yield np.asarray(vector / max(float(np.linalg.norm(vector)), 1e-300))


def scale_of(directions: Sequence[np.ndarray], weights: Sequence[np.ndarray]) -> float:
    """Return the factor by which a projected Jacobian may exceed its elements."""
    return max((float(np.sum(one)) for one in directions), default=1) * max(
        (float(np.sum(one)) for one in weights), default=1
    )


# --- by differences -------------------------------------------------------------------


class Slope(NamedTuple):
    """Derivatives of an output along a direction, and along i times it.

    Attributes:
        real: The derivative along the direction.
        imaginary: Along i times it; zeros for a real input.
    """

    real: np.ndarray
    imaginary: np.ndarray


def slopes_of(
    func: TensorFunction,
    inputs: Sequence[Value],
    x: Variable,
    along: np.ndarray,
    eps: float,
) -> list[Slope]:
    """Return the slope of each output at `inputs`, along directions of `x`."""
    real = _difference(func, inputs, x, along, eps)
    if not is_complex(x):
        return [Slope(one, np.zeros_like(one)) for one in real]
    return list(map(Slope, real, _difference(func, inputs, x, 1j * along, eps)))


def _difference(
    func: TensorFunction,
    inputs: Sequence[Value],
    x: Variable,
    along: np.ndarray,
    eps: float,
) -> list[np.ndarray]:
    here = x.array.copy()
    step = copy_to(np.asarray(eps * along), x.device)
    try:
        x.array[...] = here + step
        after = _on_host(func(*inputs))
        x.array[...] = here - step
        before = _on_host(func(*inputs))
    finally:
        x.array[...] = here
    for one, other in zip(after, before, strict=True):
        _check_alike(one, other, eps)
    return [
        np.subtract(a, b, dtype=np.result_type(a, float)) / (2 * eps)
        for a, b in zip(after, before, strict=True)
    ]


def _check_alike(after: np.ndarray, before: np.ndarray, eps: float) -> None:
    for what in ("shape", "dtype"):
        one, other = getattr(before, what), getattr(after, what)
        if one != other:
            raise AssertionError(
                f"Expected `func` to return outputs with the same {what} when inputs "
                f"are perturbed by {eps}, but got: {what}s {one} and {other}."
            )


def numerical(
    slopes: Sequence[Slope], weights: Sequence[np.ndarray], unit: complex
) -> np.ndarray:
    """Return the Jacobian by differences: rows of directions, columns of weights."""

    def part(slope: np.ndarray) -> np.ndarray:
        return slope.imag if unit == 1j else slope.real

    return np.array(
        [
            [
                np.sum(weight * part(one.real))
                + 1j * np.sum(weight * part(one.imaginary))
                for weight in weights
            ]
            for one in slopes
        ]
    ).reshape(len(slopes), len(weights))


# --- by backward ----------------------------------------------------------------------


def gradients_of(
    output: Variable, wanted: Sequence[Variable], weight: np.ndarray
) -> list[np.ndarray]:
    """Return the gradient of each input by backward from a `weight` of `output`."""
    array = weight.astype(output.array.dtype) if is_complex(output) else weight.real
    results = grad(
        output,
        wanted,
        variable(copy_to(array.astype(output.array.dtype), output.device)),
        retain_graph=True,
        materialize_grads=True,
    )
    return [one.array for one in results]


def projected(
    gradients: Sequence[np.ndarray], directions: Sequence[np.ndarray]
) -> np.ndarray:
    """Return the Jacobian by backward: rows of directions, columns of weights."""
    return np.array(
        [[np.sum(along * one) for one in gradients] for along in directions]
    ).reshape(len(directions), len(gradients))


# --- what functions take and return ---------------------------------------------------


def as_tuple(value: Value) -> tuple[Value, ...]:
    """Return one value, or several in a list or tuple, as a tuple."""
    return tuple(value) if isinstance(value, (tuple, list)) else (value,)


def _on_host(outputs: Value) -> list[np.ndarray]:
    return [copy_to(one.array, CPU) for one in as_tuple(outputs)]


def is_complex(x: Variable) -> bool:
    """Return whether a tensor has complex numbers."""
    return bool(x.array.dtype.kind == "c")
