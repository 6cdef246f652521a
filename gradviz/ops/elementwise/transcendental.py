"""Exponentials and logarithms."""

from math import log as log_of
from typing import Final

import numpy as np

from gradviz.backends.base import Array
from gradviz.ops.conventions.refusal import check_kinds, check_tensors
from gradviz.ops.dispatch.differentiable import Op, binary, unary
from gradviz.ops.dispatch.public import names
from gradviz.ops.shapes.complex_parts import conj
from gradviz.ops.variables.variable import Value

_LN2: Final = log_of(2)
_LN10: Final = log_of(10)

exp: Op = unary("ExpBackward0", np.exp, lambda grad, result: grad * conj(result))
exp2: Op = unary(
    "Exp2Backward0", np.exp2, lambda grad, result: grad * conj(result) * _LN2
)
expm1: Op = unary(
    "Expm1Backward0", np.expm1, lambda grad, result: grad * (conj(result) + 1)
)
log: Op = unary("LogBackward0", np.log, lambda grad, x: grad / conj(x))
log2: Op = unary("Log2Backward0", np.log2, lambda grad, x: grad / (conj(x) * _LN2))
log10: Op = unary("Log10Backward0", np.log10, lambda grad, x: grad / (conj(x) * _LN10))
log1p: Op = unary("Log1PBackward0", np.log1p, lambda grad, x: grad / conj(x + 1))
sqrt: Op = unary(
    "SqrtBackward0", np.sqrt, lambda grad, result: grad / (2 * conj(result))
)


def _rsqrt(x: Array) -> Array:
    return np.reciprocal(np.sqrt(x))


def _rsqrt_gradient(grad: Value, result: Value) -> Value:
    if type(result) is np.ndarray:
        return -0.5 * grad * conj(result * result * result)
    cube = conj(result**3)  # first, and one node, as in PyTorch
    return -0.5 * grad * cube


rsqrt: Op = unary(
    "RsqrtBackward0",
    _rsqrt,
    _rsqrt_gradient,
)


def _logaddexp(x: Array, y: Array) -> Array:
    check_tensors("logaddexp", input=x, other=y)
    check_kinds("logaddexp_cpu", "fc", x)
    if x.dtype.kind == "f":
        return np.logaddexp(x, y)
    # By way of the larger real part, which leaves an exponential below 1.
    is_first = np.real(x) >= np.real(y)
    larger: Array = np.where(is_first, x, y)
    smaller: Array = np.where(is_first, y, x)
    return larger + np.log1p(np.exp(smaller - larger))


def _logaddexp2(x: Array, y: Array) -> Array:
    check_tensors("logaddexp2", input=x, other=y)
    check_kinds("logaddexp2_cpu", "f", x)
    return np.logaddexp2(x, y)


logaddexp: Op = binary(
    "LogaddexpBackward0",
    _logaddexp,
    x=lambda grad, x, y: grad / conj(1 + exp(y - x)),
    y=lambda grad, x, y: grad / conj(1 + exp(x - y)),
)
logaddexp2: Op = binary(
    "Logaddexp2Backward0",
    _logaddexp2,
    x=lambda grad, x, y: grad / (1 + exp2(y - x)),
    y=lambda grad, x, y: grad / (1 + exp2(x - y)),
)


PUBLIC = [
    *names("gv.f(out=) gv.f_ x.f x.f_", rsqrt=rsqrt),
    *names("gv.f(out=) gv.f_ x.f x.f_ np.f", exp, exp2, expm1, log, log10, log1p, log2),
    *names("gv.f(out=) gv.f_ x.f x.f_ np.f", sqrt),
    *names("gv.f(out=) x.f", logaddexp2=logaddexp2),
    *names("gv.f(out=) x.f np.f", logaddexp=logaddexp),
    *names("special.f(out=)", exp2, expm1, log1p),
]
