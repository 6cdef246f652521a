"""Exponentials, logarithms, trigonometric functions, roots."""

import numpy as np

from gradviz.ops.differentiable import Op, unary

exp: Op = unary("ExpBackward0", np.exp, lambda grad, result: grad * result)
expm1: Op = unary("Expm1Backward0", np.expm1, lambda grad, result: grad * (result + 1))
log: Op = unary("LogBackward0", np.log, lambda grad, x: grad / x)
log1p: Op = unary("Log1PBackward0", np.log1p, lambda grad, x: grad / (x + 1))
sqrt: Op = unary("SqrtBackward0", np.sqrt, lambda grad, result: grad / (2 * result))

sin: Op = unary("SinBackward0", np.sin, lambda grad, x: grad * cos(x))
cos: Op = unary("CosBackward0", np.cos, lambda grad, x: grad * -sin(x))
tan: Op = unary(
    "TanBackward0", np.tan, lambda grad, result: grad * (1 + result * result)
)
tanh: Op = unary(
    "TanhBackward0", np.tanh, lambda grad, result: grad * (1 - result * result)
)
