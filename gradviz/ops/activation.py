"""Activations: what stands between the layers of a network."""

import numpy as np

from gradviz.backends.base import Array
from gradviz.ops.differentiable import differentiable, unary
from gradviz.ops.promotion import as_floating
from gradviz.ops.reduction import sum
from gradviz.ops.transcendental import exp
from gradviz.ops.variable import Value


def _relu(x: Array) -> Array:
    return np.maximum(x, 0)


def _sigmoid(x: Array) -> Array:
    # By way of tanh, which does not overflow.
    return np.tanh(x * 0.5) * 0.5 + 0.5


@differentiable(
    "ThresholdBackwardBackward0",
    arrays=("result",),
    x=lambda grad, result: _where_open(grad, result),
)
def _where_open(x: Array, result: Array) -> Array:
    # Not a product: an infinite gradient of a closed unit is 0, not NaN.
    return np.where(result > 0, x, 0)


relu = unary("ReluBackward0", _relu, lambda grad, result: _where_open(grad, result))
sigmoid = unary(
    "SigmoidBackward0", _sigmoid, lambda grad, result: grad * (result * (1 - result))
)


@differentiable(
    "SoftmaxBackward0",
    x=lambda grad, dim, result: result * (grad - sum(grad * result, dim, keepdim=True)),
)
def _softmax(x: Array, dim: int) -> Array:
    x = as_floating(x)
    exponentials = np.exp(x - np.max(x, axis=dim, keepdims=True))
    return exponentials / np.sum(exponentials, axis=dim, keepdims=True)


@differentiable(
    "LogSoftmaxBackward0",
    x=lambda grad, dim, result: grad - exp(result) * sum(grad, dim, keepdim=True),
)
def _log_softmax(x: Array, dim: int) -> Array:
    x = as_floating(x)
    shifted = x - np.max(x, axis=dim, keepdims=True)
    return shifted - np.log(np.sum(np.exp(shifted), axis=dim, keepdims=True))


def softmax(x: Value, dim: int) -> Value:
    """Exponentials scaled to sum to 1 along `dim`."""
    return _softmax(x, dim)


def log_softmax(x: Value, dim: int) -> Value:
    """The logarithm of `softmax`, without its loss of precision."""
    return _log_softmax(x, dim)
