"""Attention: averages of values, weighted by how well keys fit queries."""

import math
from collections.abc import Sequence

import numpy as np

from gradviz.backends.base import Array, beside
from gradviz.engine.graph.protocols import Gradient
from gradviz.ops.algebra.products import matmul, multiplied
from gradviz.ops.conventions.dtype_names import cpp_name
from gradviz.ops.conventions.memory_layout import in_c_order, laid_out_like
from gradviz.ops.dispatch.differentiable import differentiable
from gradviz.ops.dispatch.public import names
from gradviz.ops.elementwise.arithmetic import add
from gradviz.ops.elementwise.scalar_arithmetic import times
from gradviz.ops.layers.dropout import dropout
from gradviz.ops.reductions.reduction import sum as sum_of
from gradviz.ops.reductions.row_sums import largest, summed
from gradviz.ops.shapes.permutation import transpose
from gradviz.ops.shapes.tiling import repeat_interleave
from gradviz.ops.variables.variable import Value, raw, variable


def _weights(scores: Array, axis: int, out: Array | None = None) -> Array:
    """The softmax of scores; zeros where all of them are -inf."""
    top = largest(scores, axis)
    weights = np.subtract(scores, np.where(np.isinf(top), 0, top), out=out)
    np.exp(weights, out=weights)
    total = summed(weights, (axis % weights.ndim,))
    weights /= np.where(total == 0, 1, total)
    return weights


def _softmax_gradient(grad: Gradient, result: Gradient) -> Gradient:
    return result * (grad - sum_of(grad * result, -1, keepdim=True))


@differentiable("SafeSoftmaxBackward0", x=_softmax_gradient)
def _safe_softmax(x: Array) -> Array:
    return _weights(in_c_order(x), -1)


def _score_gradient(
    grads: tuple[Gradient, Gradient],
    value: Gradient,
    weights: Gradient,
    scale: float,
) -> Gradient:
    """The gradient of the products of queries and keys.

    As the weights are a result of the op, a gradient may reach them by themselves, from
    a backward of the backward.
    """
    grad, grad_weights = grads
    if grad is not None:
        through = matmul(grad, transpose(value, -2, -1))
        grad_weights = through if grad_weights is None else grad_weights + through
    return _softmax_gradient(grad_weights, weights) * scale


def _gradients(
    wanted: Sequence[bool],
    grad: Array,
    query: Array,
    key: Array,
    value: Array,
    scale: float,
    weights: Array,
) -> tuple[Array | None, ...]:
    """Those of query, key and value in a plain backward; None if not wanted."""
    by_key = np.swapaxes(weights, -2, -1)  # as they lie in memory
    slopes = multiplied(value, np.swapaxes(grad, -2, -1))
    slopes -= summed(slopes * by_key, (2,))
    slopes *= by_key
    slopes *= slopes.dtype.type(scale)
    return (
        multiplied(np.swapaxes(slopes, -2, -1), key) if wanted[0] else None,
        multiplied(slopes, query) if wanted[1] else None,
        multiplied(by_key, grad) if wanted[2] else None,
    )


@differentiable(
    "ScaledDotProductFlashAttentionForCpuBackward0",
    arrays=("mask",),
    results=("result", "weights"),
    together=lambda wanted, grad, query, key, value, scale, weights: _gradients(
        wanted, grad, query, key, value, scale, weights
    ),
    query=lambda grads, key, value, scale, weights: matmul(
        _score_gradient(grads, value, weights, scale), key
    ),
    key=lambda grads, query, value, scale, weights: matmul(
        transpose(_score_gradient(grads, value, weights, scale), -2, -1), query
    ),
    value=lambda grads, weights: (
        None if grads[0] is None else matmul(transpose(weights, -2, -1), grads[0])
    ),
)
def _fused(
    query: Array, key: Array, value: Array, mask: Array, scale: float
) -> tuple[Array, Array]:
    # By key, for NumPy finds the largest of columns several times as fast as of rows.
    by_key = multiplied(key, np.swapaxes(query * query.dtype.type(scale), -2, -1))
    if mask is not None:
        shape = (*query.shape[:-1], key.shape[-2])
        by_key += np.swapaxes(np.broadcast_to(mask, shape), -2, -1)
    weights = np.swapaxes(_weights(by_key, -2, out=by_key), -2, -1)
    result = multiplied(weights, value)
    # PyTorch's lies in memory as queries do, if it need not copy them.
    if query.strides[-1] == query.itemsize and not query.flags.c_contiguous:
        result = laid_out_like(result, query)
    return result, weights


def scaled_dot_product_attention(
    query: Value,
    key: Value,
    value: Value,
    attn_mask: Value = None,
    dropout_p: float = 0.0,
    is_causal: bool = False,
    *,
    scale: float | None = None,
    enable_gqa: bool = False,
) -> Value:
    """``softmax(query @ key.mT * scale + mask) @ value``.

    Args:
        query: Shape ``(..., L, E)``.
        key: Shape ``(..., S, E)``.
        value: Shape ``(..., S, V)``.
        attn_mask: Broadcasts to ``(..., L, S)``: booleans, which keys each query may
            see; or floats that are added to scores.
        dropout_p: The probability with which a weight is set to 0.
        is_causal: Each query sees but the keys up to its own position.
        scale: ``1 / sqrt(E)`` by default.
        enable_gqa: True if several heads of queries share one of keys and values.

    Raises:
        RuntimeError: Shapes, dtypes or settings do not fit.

    Source: aten/src/ATen/native/transformers/attention.cpp.
    """
    _check(raw(query), raw(key), raw(value), raw(attn_mask), is_causal)
    if scale is None:
        scale = 1 / math.sqrt(raw(query).shape[-1] or 1)
    mask = _mask_of(raw(query), raw(key), attn_mask, is_causal)
    if _can_be_fused(query, key, value, attn_mask, dropout_p):
        if enable_gqa:
            key, value = _repeated(query, key), _repeated(query, value)
        result, _ = _fused(query, key, value, raw(mask), scale)
        return result
    if enable_gqa:
        key, value = _repeated(query, key), _repeated(query, value)
    root = math.sqrt(scale)
    scores = matmul(times(query, root), times(transpose(key, -2, -1), root))
    if mask is not None:
        scores = add(scores, mask)
    weights = _safe_softmax(scores)
    if dropout_p > 0:
        weights = dropout(weights, dropout_p)
    return matmul(weights, value)


def _mask_of(query: Array, key: Array, mask: Value, is_causal: bool) -> Value:
    """Return the value to add to scores, None for nothing."""
    if is_causal:
        mask = variable(
            beside(query, np.tri(query.shape[-2], key.shape[-2], dtype=bool))
        )
    if mask is None or raw(mask).dtype != np.bool_:
        return mask
    blocked = np.where(raw(mask), 0, -np.inf).astype(query.dtype)
    return variable(blocked)


def _can_be_fused(
    query: Value, key: Value, value: Value, mask: Value, dropout_p: float
) -> bool:
    """Return whether PyTorch uses its flash attention here.

    Source: aten/src/ATen/native/transformers/sdp_utils_cpp.cpp,
    use_flash_attention_cpp.
    """
    q, k, v = raw(query), raw(key), raw(value)
    return (
        dropout_p == 0
        and q.ndim == k.ndim == v.ndim == 4
        and q.shape[-1] == k.shape[-1] == v.shape[-1]
        and q.shape[0] == k.shape[0] == v.shape[0]
        and k.shape[1] == v.shape[1]
        and 0 not in (q.shape[-2], k.shape[-2])
        and not getattr(mask, "requires_grad", False)
    )


def _repeated(query: Value, other: Value) -> Value:
    """Heads of keys or values, repeated for each head of queries."""
    times_ = raw(query).shape[-3] // raw(other).shape[-3]
    return other if times_ == 1 else repeat_interleave(other, times_, -3)


def _check(
    query: Array, key: Array, value: Array, mask: Array | None, is_causal: bool
) -> None:
    if not query.dtype == key.dtype == value.dtype:
        dtypes = [cpp_name(one.dtype) for one in (query, key, value)]
        raise RuntimeError(
            f"Expected query, key, and value to have the same dtype, but got "
            f"query.dtype: {dtypes[0]} key.dtype: {dtypes[1]} and value.dtype: "
            f"{dtypes[2]} instead."
        )
    ndims = [one.ndim for one in (query, key, value)]
    if min(ndims) < 2:
        raise RuntimeError(
            f"Expected query, key, and value to all be  at least 2 dimensional, but "
            f"got query.dim: {ndims[0]} key.dim: {ndims[1]} and value.dim: {ndims[2]} "
            f"instead."
        )
    if mask is None:
        return
    if is_causal:
        raise RuntimeError(
            "_scaled_dot_product_attention: Explicit attn_mask should not be set when "
            "is_causal=True"
        )
    if mask.dtype not in (np.bool_, np.float32, query.dtype):
        raise RuntimeError(
            f"Expected attn_mask dtype to be bool or float or to match query dtype, "
            f"but got attn_mask.dtype: {cpp_name(mask.dtype)} and  query.dtype: "
            f"{cpp_name(query.dtype)} instead."
        )


PUBLIC = [*names("F.f", scaled_dot_product_attention)]
