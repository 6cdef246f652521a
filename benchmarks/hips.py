"""HIPS autograd, whose programs are functions and not tapes."""

import numpy as np

from benchmarks.cases import mlp_parameters
from benchmarks.timing import Contestant, timed


def hips_chain() -> Contestant:
    """Backward of 2,000 `sin` on 4 numbers."""
    from autograd import make_vjp  # noqa: PLC0415 - an optional peer
    from autograd import numpy as anp  # noqa: PLC0415 - an optional peer

    def chain(x: np.ndarray) -> np.ndarray:
        for _ in range(2000):
            x = anp.sin(x)
        return x

    def run() -> float:
        vjp, _ = make_vjp(chain)(np.arange(4.0))
        return timed(lambda: vjp(np.ones(4)))

    return run


def hips_small_mlp() -> Contestant:
    """Forward and backward of the small MLP of `benchmarks.cases`."""
    from autograd import grad  # noqa: PLC0415 - an optional peer
    from autograd import numpy as anp  # noqa: PLC0415 - an optional peer

    x, weights, biases = mlp_parameters(batch=8, width=16, layers=50)

    def loss(parameters: tuple[list[np.ndarray], list[np.ndarray]]) -> np.ndarray:
        h = x
        for weight, bias in zip(*parameters, strict=True):
            h = anp.tanh(h @ weight + bias)
        return anp.sum(h)

    gradient = grad(loss)
    return lambda: timed(lambda: gradient((weights, biases)))


#: Those of the cases that HIPS autograd takes part in, by their names.
HIPS_CASES = {"chain": hips_chain, "small-mlp": hips_small_mlp}
