"""HIPS autograd, whose programs are functions and not tapes."""

import numpy as np

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
