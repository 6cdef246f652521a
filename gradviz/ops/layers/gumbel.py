"""Choices at random that gradients go through: the Gumbel softmax."""

import numpy as np

from gradviz.backends.base import beside
from gradviz.ops.conventions.generator import default_generator
from gradviz.ops.dispatch.public import names
from gradviz.ops.elementwise.arithmetic import add, div, sub
from gradviz.ops.reductions.softmax import softmax
from gradviz.ops.variables.variable import Value, raw, variable


def gumbel_softmax(
    logits: Value,
    tau: float = 1,
    hard: bool = False,
    eps: float = 1e-10,
    dim: int = -1,
) -> Value:
    """Shares, drawn at random, that come near to one choice.

    Args:
        logits: Logarithms of probabilities, along `dim`.
        tau: The lower, the nearer to one choice.
        hard: Return the choice itself, with the gradient of the shares.
        eps: Ignored, as in PyTorch.
        dim: The dimension.

    Source: torch/nn/functional.py, gumbel_softmax.
    """
    del eps
    array = raw(logits)
    noise = default_generator.random.gumbel(size=array.shape).astype(array.dtype)
    soft = softmax(
        div(add(logits, variable(beside(array, np.asarray(noise)))), tau), dim
    )
    if not hard:
        return soft
    shares = raw(soft)
    chosen = np.zeros_like(shares)
    best = np.expand_dims(np.argmax(shares, axis=dim), dim)
    np.put_along_axis(chosen, best, 1, axis=dim)
    return add(sub(variable(chosen), soft.detach()), soft)


PUBLIC = [*names("F.f", gumbel_softmax)]
