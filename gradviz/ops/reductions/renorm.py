"""Slices that are shortened to a norm."""

import numpy as np

from gradviz.backends.base import Array
from gradviz.engine.graph.protocols import Gradient
from gradviz.ops.conventions.dimensions import Shape, wrap_dim
from gradviz.ops.dispatch.differentiable import differentiable
from gradviz.ops.dispatch.public import names
from gradviz.ops.elementwise.selection import where
from gradviz.ops.reductions.norms import norm_gradient, norm_of, vector_norm
from gradviz.ops.reductions.reduction import sum as sum_of
from gradviz.ops.shapes.complex_parts import conj, real
from gradviz.ops.variables.variable import Value, raw

#: Number that PyTorch adds to a norm before it divides by it.
_EPSILON = 1e-7


@differentiable(
    "RenormBackward0",
    x=lambda grad, x, p, dims, longest: _renorm_gradient(grad, x, p, dims, longest),
)
def _renorm(x: Array, p: float, dims: Shape, longest: float) -> Array:
    norm = norm_of(x, p, dims, keepdim=True)
    scale = np.where(norm > longest, longest / (norm + _EPSILON), 1)
    return x * scale.astype(norm.dtype)


def _renorm_gradient(
    grad: Gradient, x: Gradient, p: float, dims: Shape, longest: float
) -> Gradient:
    """Return the gradient; along a shortened slice it counts less.

    Source: torch/csrc/autograd/FunctionsManual.cpp, renorm_backward.
    """
    norm = vector_norm(x, p, dims, keepdim=True)
    along = sum_of(real(conj(x) * grad), dims, keepdim=True)
    by_norm = norm_gradient(along, x, norm, p, dims)
    inverse = 1 / (norm + _EPSILON)
    shortened = grad if by_norm is None else grad - inverse * by_norm
    return where(raw(norm) > longest, longest * inverse * shortened, grad)


def renorm(input: Value, p: float, dim: int, maxnorm: float) -> Value:
    """Slices along `dim`, scaled down to a norm of `maxnorm` where they are longer.

    Args:
        input: Floats or complex numbers.
        p: The exponent of the norm.
        dim: Dimension along which slices follow each other.
        maxnorm: The longest.

    Raises:
        RuntimeError: A number is negative, or there are fewer than two dimensions.
        IndexError: There is no such dimension.

    Source: aten/src/ATen/native/Normalization.cpp.
    """
    x = raw(input)
    if not p > 0:
        raise RuntimeError("renorm: non-positive-norm not supported")
    if not maxnorm >= 0:
        raise RuntimeError(f"renorm: expected maxnorm to be >= 0 but got {maxnorm:g}")
    if x.ndim < 2:
        raise RuntimeError(
            f"renorm: input needs at least 2 dimensions, got {x.ndim} dimensions"
        )
    dim = wrap_dim(dim, x.ndim)
    dims = tuple(one for one in range(x.ndim) if one != dim)
    if x.dtype.kind not in "fc":
        vector_norm(x, p, dims)  # says what is wrong
    return _renorm(input, float(p), dims, float(maxnorm))


PUBLIC = [*names("gv.f(out=) x.f x.f_", renorm)]
