"""Checking backward formulas against finite differences.

One random inner product checks all of a function's gradients at once: for a direction v
of the inputs and a direction u of the output, ``<u, Jv>`` by differences must equal
``<J'u, v>`` by backward.
"""

from collections.abc import Callable, Sequence

import numpy as np

from gradviz.autograd.gradient import grad
from gradviz.backends.base import copy_to
from gradviz.backends.device import CPU
from gradviz.ops.variable import Value, Variable, variable


class GradcheckError(RuntimeError):
    """A gradient differs from what finite differences say."""


def gradcheck(
    function: Callable[..., Value],
    inputs: Sequence[Variable],
    *,
    eps: float = 1e-6,
    atol: float = 1e-5,
    rtol: float = 1e-5,
    seed: int = 0,
) -> bool:
    """Compare the gradients of `function` with finite differences.

    Args:
        function: Takes `inputs`, returns one tensor of floats.
        inputs: Tensors, float64 where they require gradients, with memory of their
            own.
        eps: Length of the step.
        atol: Largest absolute difference.
        rtol: Largest difference relative to the value.
        seed: Of the random directions.

    Returns:
        True.

    Raises:
        GradcheckError: They differ.
        ValueError: An input that requires gradients is not float64.

    Source: torch/autograd/gradcheck.py, in its fast mode.
    """
    differentiated = [one for one in inputs if one.requires_grad]
    for one in differentiated:
        if one.array.dtype != np.float64:
            raise ValueError(
                f"gradcheck needs float64 inputs for differences to mean anything, "
                f"but got {one.array.dtype}"
            )
    random = np.random.default_rng(seed)
    output = function(*inputs)
    u = random.standard_normal(output.array.shape)
    directions = [random.standard_normal(one.array.shape) for one in differentiated]
    by_backward = _along(output, differentiated, u, directions)
    by_difference = _difference(function, inputs, u, directions, eps)
    if not np.isclose(by_backward, by_difference, rtol=rtol, atol=atol):
        raise GradcheckError(
            f"backward gives {by_backward!r} along a random direction, "
            f"finite differences give {by_difference!r}"
        )
    return True


def _along(
    output: Value,
    inputs: Sequence[Variable],
    u: np.ndarray,
    directions: Sequence[np.ndarray],
) -> float:
    """``<J'u, v>``, by backward."""
    first = variable(copy_to(u, output.device))
    gradients = grad(output, inputs, first, materialize_grads=True)
    return float(
        sum(
            np.sum(copy_to(gradient.array, CPU) * v)
            for gradient, v in zip(gradients, directions, strict=True)
        )
    )


def _difference(
    function: Callable[..., Value],
    inputs: Sequence[Variable],
    u: np.ndarray,
    directions: Sequence[np.ndarray],
    eps: float,
) -> float:
    """``<u, Jv>``, by a central difference."""
    ends = []
    for step in (eps, -eps):
        moves = iter(directions)
        moved = [
            _moved(one, step * next(moves)) if one.requires_grad else one
            for one in inputs
        ]
        ends.append(copy_to(function(*moved).array, CPU))
    return float(np.sum(u * (ends[0] - ends[1]) / (2 * eps)))


def _moved(x: Variable, by: np.ndarray) -> Variable:
    """A leaf beside `x`; it requires gradients, for a function that takes its own."""
    moved: Variable = variable(x.array + copy_to(by, x.device))
    moved.requires_grad = True
    return moved
