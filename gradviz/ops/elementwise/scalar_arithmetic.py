"""Arithmetic with a number, as PyTorch's composite functions record it.

``x * 2`` in Python is a node MulBackward0, the same in C++ is MulBackward1. Losses and
their like are written in C++ there; here they use these. Formulas need not: there
``x * 2`` becomes `times`, see Note [Formulas in a graph].
"""

import numpy as np

from gradviz.backends.base import Array
from gradviz.ops.conventions.promotion import Scalar, as_floating, number_beside
from gradviz.ops.dispatch.differentiable import differentiable


@differentiable("AddBackward1", x=lambda grad: grad)
def plus(x: Array, number: Scalar) -> Array:
    """``x + number``."""
    x = _beside(x, number)
    return x + number_beside(x, number)


@differentiable("SubBackward1", x=lambda grad: grad)
def minus(x: Array, number: Scalar) -> Array:
    """``x - number``."""
    x = _beside(x, number)
    return x - number_beside(x, number)


@differentiable("MulBackward1", x=lambda grad, number: grad * number.conjugate())
def times(x: Array, number: Scalar) -> Array:
    """``x * number``."""
    x = _beside(x, number)
    return x * number_beside(x, number)


@differentiable("DivBackward1", x=lambda grad, number: grad / number)
def over(x: Array, number: Scalar) -> Array:
    """``x / number``."""
    x = as_floating(x)
    return x / number_beside(x, number)


def _beside(x: Array, number: Scalar) -> Array:
    """`x` in the dtype of the result: beside a float, integers become floats."""
    return as_floating(x) if isinstance(number, float) else x


@differentiable("CloneBackward0", x=lambda grad: grad)
def floored(x: Array, low: Scalar) -> Array:
    """`x` limited from below, of which its gradient knows nothing: a mere copy."""
    return np.maximum(x, low)
