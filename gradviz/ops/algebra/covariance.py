"""Covariance and correlation of variables."""

import warnings

import numpy as np

from gradviz.backends.base import Array
from gradviz.ops.algebra.products import mm
from gradviz.ops.conventions.dtype_names import scalar_type_name
from gradviz.ops.dispatch.public import names
from gradviz.ops.elementwise.arithmetic import div, mul, sub
from gradviz.ops.elementwise.polar_form import complex
from gradviz.ops.elementwise.selection import clamp
from gradviz.ops.elementwise.transcendental import sqrt
from gradviz.ops.shapes.complex_parts import conj, imag, real
from gradviz.ops.shapes.diagonals import diagonal
from gradviz.ops.shapes.permutation import t
from gradviz.ops.shapes.shape import view
from gradviz.ops.shapes.unit_dimensions import squeeze, unsqueeze
from gradviz.ops.variables.variable import Value, raw, variable


def cov(
    input: Value,
    *,
    correction: int = 1,
    fweights: Value = None,
    aweights: Value = None,
) -> Value:
    """The covariances of variables.

    Args:
        input: A variable a row, an observation a column.
        correction: Difference between the number of observations and the divisor.
        fweights: Number of times that each observation was made: integers.
        aweights: Importance of each observation.

    Returns:
        A square matrix, or a number for one variable.

    Raises:
        RuntimeError: `input` has more than two dimensions, or weights do not fit.

    Source: aten/src/ATen/native/Correlation.cpp, cov.
    """
    if raw(input).ndim > 2:
        raise RuntimeError(
            f"cov(): expected input to have two or fewer dimensions but got an input "
            f"with {raw(input).ndim} dimensions"
        )
    x = view(input, (1, -1)) if raw(input).ndim < 2 else input
    weights = _weights(raw(x).shape[1], fweights, aweights)
    total = _number(raw(x).shape[1], raw(x)) if weights is None else weights.sum()
    weighted = x if weights is None else mul(x, weights)
    mean = div(weighted.sum(1), total)
    less = correction
    if aweights is not None and correction:
        less = div(mul(mul(weights, aweights).sum(), correction), total)
    freedom = sub(total, less)
    if np.real(raw(freedom)) <= 0:
        warnings.warn(
            "cov(): degrees of freedom is <= 0. Correction should be strictly less "
            "than the number of observations.",
            UserWarning,
            stacklevel=2,
        )
        freedom = _number(0, raw(x))
    x = sub(x, unsqueeze(mean, 1))
    weighted = x if weights is None else mul(x, weights)
    products = mm(x, conj(t(weighted)))
    return squeeze(div(products, freedom))


def corrcoef(input: Value) -> Value:
    """The correlations of variables: covariances scaled to at most 1.

    Args:
        input: A variable a row, an observation a column.

    Source: aten/src/ATen/native/Correlation.cpp, corrcoef.
    """
    covariance = cov(input)
    if not raw(covariance).ndim:
        return div(covariance, covariance)
    variance = diagonal(covariance)
    is_complex = raw(variance).dtype.kind == "c"
    deviation = sqrt(real(variance) if is_complex else variance)
    scaled = div(div(covariance, view(deviation, (-1, 1))), view(deviation, (1, -1)))
    if is_complex:
        return complex(clamp(real(scaled), -1, 1), clamp(imag(scaled), -1, 1))
    return clamp(scaled, -1, 1)


def _number(value: float, like: Array) -> Value:
    return variable(np.full_like(like, value, shape=()))


def _weights(num_observations: int, fweights: Value, aweights: Value) -> Value:
    for name, weights, kinds, wanted in (
        ("fweights", fweights, "iu", "integral"),
        ("aweights", aweights, "f", "floating point"),
    ):
        if weights is None:
            continue
        array = raw(weights)
        if array.ndim > 1:
            raise RuntimeError(
                f"cov(): expected {name} to have one or fewer dimensions but got "
                f"{name} with {array.ndim} dimensions"
            )
        if array.dtype.kind not in kinds:
            raise RuntimeError(
                f"cov(): expected {name} to have {wanted} dtype but got {name} with "
                f"{scalar_type_name(array.dtype)} dtype"
            )
        if array.size != num_observations:
            raise RuntimeError(
                f"cov(): expected {name} to have the same numel as there are "
                f"observations in the input but got {array.size} != {num_observations}"
            )
        if np.any(array < 0):
            raise RuntimeError(f"cov(): {name} cannot be negative")
    if fweights is None or aweights is None:
        return aweights if fweights is None else fweights
    return mul(fweights, aweights)


PUBLIC = [*names("gv.f x.f", corrcoef, cov)]
