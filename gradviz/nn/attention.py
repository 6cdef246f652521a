"""Attention with several heads."""

import math
from collections.abc import Sequence
from typing import Any

from gradviz.backends.device import Device
from gradviz.nn import functional as F  # noqa: N812 - PyTorch's habit
from gradviz.nn import init
from gradviz.nn.factory import Factory, parameter
from gradviz.nn.linear import NonDynamicallyQuantizableLinear
from gradviz.nn.module import Module
from gradviz.ops.algebra.fused_products import baddbmm
from gradviz.ops.algebra.products import bmm
from gradviz.ops.conventions.promotion import DTypeLike
from gradviz.ops.shapes.joining import cat
from gradviz.tensors.creation.factories import zeros
from gradviz.tensors.tensor import Tensor


class MultiheadAttention(Module):
    """Mixes values, by how well the keys beside them match queries (Vaswani et al.).

    Args:
        embed_dim: Length of a query, and of what is returned for it.
        num_heads: Into how many parts vectors fall, each with a match of its own.
        dropout: Probability that a match is left out, when training.
        bias: True if there are biases.
        add_bias_kv: True if there is one more key and value, both learned.
        add_zero_attn: True if there is one more key and value, both 0.
        kdim: Length of a key; `embed_dim` if not given.
        vdim: Length of a value; `embed_dim` if not given.
        batch_first: True if the batch is the first dimension, False if the sequence is.
        device: Device of the parameters; None for the CPU.
        dtype: Their type; None for the default one.

    Raises:
        ValueError: A number is not positive.
        AssertionError: Vectors do not fall into so many parts.

    Source: torch/nn/modules/activation.py.
    """

    def __init__(
        self,
        embed_dim: int,
        num_heads: int,
        dropout: float = 0.0,
        bias: bool = True,
        add_bias_kv: bool = False,
        add_zero_attn: bool = False,
        kdim: int | None = None,
        vdim: int | None = None,
        batch_first: bool = False,
        device: Device | str | None = None,
        dtype: DTypeLike = None,
    ) -> None:
        factory: Factory = {"device": device, "dtype": dtype}
        if embed_dim <= 0 or num_heads <= 0:
            raise ValueError(
                f"embed_dim and num_heads must be greater than 0, got "
                f"embed_dim={embed_dim} and num_heads={num_heads} instead"
            )
        super().__init__()
        self.embed_dim = embed_dim
        self.kdim = embed_dim if kdim is None else kdim
        self.vdim = embed_dim if vdim is None else vdim
        self.num_heads = num_heads
        self.dropout = dropout
        self.batch_first = batch_first
        self.head_dim = embed_dim // num_heads
        if self.head_dim * num_heads != embed_dim:
            raise AssertionError("embed_dim must be divisible by num_heads")
        is_packed = self.kdim == self.vdim == embed_dim
        for name, rows, columns in (
            ("in_proj_weight", 3 * embed_dim, embed_dim),
            ("q_proj_weight", embed_dim, embed_dim),
            ("k_proj_weight", embed_dim, self.kdim),
            ("v_proj_weight", embed_dim, self.vdim),
        ):
            is_used = is_packed == (name == "in_proj_weight")
            one = parameter(rows, columns, **factory) if is_used else None
            self.register_parameter(name, one)
        self.register_parameter(
            "in_proj_bias", parameter(3 * embed_dim, **factory) if bias else None
        )
        self.out_proj = NonDynamicallyQuantizableLinear(
            embed_dim, embed_dim, bias, **factory
        )
        for name in ("bias_k", "bias_v"):
            one = parameter(1, 1, embed_dim, **factory) if add_bias_kv else None
            self.register_parameter(name, one)
        self.add_zero_attn = add_zero_attn
        self.reset_parameters()

    def reset_parameters(self) -> None:
        """Draw new parameters."""
        for name, one in self.named_parameters(recurse=False):
            if name.endswith("weight"):
                init.xavier_uniform_(one)
            elif name in {"bias_k", "bias_v"}:
                init.xavier_normal_(one)
        if self.in_proj_bias is not None:
            init.zeros_(self.in_proj_bias)
            init.zeros_(self.out_proj.bias)

    def forward(
        self,
        query: Tensor,
        key: Tensor,
        value: Tensor,
        key_padding_mask: Tensor | None = None,
        need_weights: bool = True,
        attn_mask: Tensor | None = None,
        average_attn_weights: bool = True,
        is_causal: bool = False,
    ) -> tuple[Tensor, Tensor | None]:
        """Return the attended value of each query, and the attention weights.

        Args:
            query: Shape ``(L, N, embed_dim)``, or ``(N, L, ...)`` if `batch_first`, or
                without ``N``.
            key: Shape ``(S, N, kdim)``, with ``N`` where `query` has it.
            value: Shape ``(S, N, vdim)``, with ``N`` where `query` has it.
            key_padding_mask: Shape ``(N, S)``: True for keys to ignore, or a value to
                add to their scores.
            need_weights: True if the weights are returned.
            attn_mask: Shape ``(L, S)`` or ``(N * num_heads, L, S)``: True for keys that
                a query ignores, or a value to add to their scores.
            average_attn_weights: True if the weights are averaged over heads.
            is_causal: A hint that `attn_mask` hides later keys.

        Raises:
            RuntimeError: Masks do not fit, or the hint comes without a mask.
        """
        if is_causal and attn_mask is None:
            raise RuntimeError(
                "Need attn_mask if specifying the is_causal hint. You may use the "
                "Transformer module method `generate_square_subsequent_mask` to create "
                "this mask."
            )
        padding, mask = (
            None if one is None else as_addend(one, query)
            for one in (key_padding_mask, attn_mask)
        )
        is_batched = query.ndim == 3
        if not is_batched:
            query, key, value = (one.unsqueeze(1) for one in (query, key, value))
            padding = None if padding is None else padding.unsqueeze(0)
        elif self.batch_first:
            query, key, value = _turned(query, key, value)
        self._check_shapes(query, key, value)
        is_causal = is_causal and padding is None and not need_weights
        mask = None if is_causal or mask is None else self._as_3d(mask, query, key)
        q, k, v = self._project(query, key, value)
        q, k, v, padding, mask = self._by_heads(q, k, v, padding, mask)
        mask = self._merged(padding, mask, k)
        if need_weights:
            output, weights = self._attend(q, k, v, mask)
            weights = weights.mean(1) if average_attn_weights else weights
        else:
            output, weights = self._attend_fused(q, k, v, mask, is_causal), None
        if not is_batched:
            return output.squeeze(1), None if weights is None else weights.squeeze(0)
        return output.transpose(1, 0) if self.batch_first else output, weights

    # From here on the sequence is the first dimension, the batch the second; and ops
    # come in PyTorch's order, for a backward runs them in the opposite one.
    # Source: torch/nn/functional.py, multi_head_attention_forward.

    def _project(self, query: Tensor, key: Tensor, value: Tensor) -> Sequence[Tensor]:
        """Queries, keys and values, each multiplied with its matrix."""
        weight, bias, size = self.in_proj_weight, self.in_proj_bias, self.embed_dim
        if weight is not None and query is key and key is value:
            return _in_parts(F.linear(query, weight, bias), 3)
        if weight is not None and key is value:
            weights = weight.split([size, 2 * size])
            biases = (None, None) if bias is None else bias.split([size, 2 * size])
            queries = F.linear(query, weights[0], biases[0])
            return (queries, *_in_parts(F.linear(key, weights[1], biases[1]), 2))
        weights = (
            weight.chunk(3)
            if weight is not None
            else (self.q_proj_weight, self.k_proj_weight, self.v_proj_weight)
        )
        biases = (None,) * 3 if bias is None else bias.chunk(3)
        given = (query, key, value)
        return [F.linear(*one) for one in zip(given, weights, biases, strict=True)]

    def _by_heads(
        self, q: Tensor, k: Tensor, v: Tensor, *masks: Tensor | None
    ) -> tuple[Any, ...]:
        """Split everything by head, with unmasked keys and values for every batch."""
        batch = k.shape[1]

        def widened() -> tuple[Tensor | None, ...]:
            return tuple(None if one is None else F.pad(one, (0, 1)) for one in masks)

        if self.bias_k is not None:
            k = cat([k, self.bias_k.repeat(1, batch, 1)])
            v = cat([v, self.bias_v.repeat(1, batch, 1)])
            masks = widened()
        q, k, v = self._by_head(q), self._by_head(k), self._by_head(v)
        if self.add_zero_attn:
            shape = (batch * self.num_heads, 1, self.head_dim)
            zero = zeros(shape, dtype=k.dtype, device=k.device)
            k, v = cat([k, zero], 1), cat([v, zero], 1)
            masks = widened()
        return (q, k, v, *masks)

    def _by_head(self, x: Tensor) -> Tensor:
        """``(L, N, embed_dim)`` to ``(N * num_heads, L, head_dim)``."""
        length, batch, _ = x.shape
        return x.view(length, batch * self.num_heads, self.head_dim).transpose(0, 1)

    def _attend(
        self, q: Tensor, k: Tensor, v: Tensor, mask: Tensor | None
    ) -> tuple[Tensor, Tensor]:
        """Return the attended values, and the weights ``(N, num_heads, L, S)``."""
        scaled, keys = q * math.sqrt(1 / self.head_dim), k.transpose(-2, -1)
        matches = bmm(scaled, keys) if mask is None else baddbmm(mask, scaled, keys)
        weights = matches.softmax(-1)
        if self.dropout and self.training:
            weights = F.dropout(weights, self.dropout)
        heads, length, _ = q.shape
        batch = heads // self.num_heads
        mixed = bmm(weights, v).transpose(0, 1).reshape(length * batch, self.embed_dim)
        output = self.out_proj(mixed).view(length, batch, self.embed_dim)
        return output, weights.view(batch, self.num_heads, length, k.shape[1])

    def _attend_fused(
        self, q: Tensor, k: Tensor, v: Tensor, mask: Tensor | None, is_causal: bool
    ) -> Tensor:
        """Return the attended values, without weights."""
        heads, length, _ = q.shape
        batch = heads // self.num_heads
        if mask is not None:
            shape = (batch, self.num_heads, -1, k.shape[1])
            mask = mask.unsqueeze(0) if mask.shape[0] == 1 else mask.view(shape)
        q, k, v = (
            one.view(batch, self.num_heads, one.shape[1], self.head_dim)
            for one in (q, k, v)
        )
        probability = self.dropout if self.training else 0.0
        mixed = F.scaled_dot_product_attention(q, k, v, mask, probability, is_causal)
        rows = mixed.permute(2, 0, 1, 3).reshape(batch * length, self.embed_dim)
        return self.out_proj(rows).view(length, batch, self.embed_dim)

    def _check_shapes(self, query: Tensor, key: Tensor, value: Tensor) -> None:
        if query.shape[-1] != self.embed_dim:
            raise AssertionError(
                f"was expecting embedding dimension of {self.embed_dim}, but got "
                f"{query.shape[-1]}"
            )
        if self.in_proj_weight is not None and key.shape != value.shape:
            raise AssertionError(
                f"key shape {key.shape} does not match value shape {value.shape}"
            )

    def _as_3d(self, mask: Tensor, query: Tensor, key: Tensor) -> Tensor:
        """A mask of shape ``(1, L, S)``, or ``(N * num_heads, L, S)``."""
        length, batch = query.shape[:2]
        if mask.ndim == 2:
            _check_mask("2D", mask, (length, key.shape[0]))
            return mask.unsqueeze(0)
        if mask.ndim == 3:
            heads = batch * self.num_heads
            _check_mask("3D", mask, (heads, length, key.shape[0]))
            return mask
        raise RuntimeError(f"attn_mask's dimension {mask.ndim} is not supported")

    def _merged(
        self, padding: Tensor | None, mask: Tensor | None, k: Tensor
    ) -> Tensor | None:
        """Both masks as one to add to matches of shape ``(N * num_heads, L, S)``."""
        if padding is None:
            return mask
        heads, length, _ = k.shape
        padding = (
            padding.view(heads // self.num_heads, 1, 1, length)
            .expand(-1, self.num_heads, -1, -1)
            .reshape(heads, 1, length)
        )
        return padding if mask is None else mask + padding


def _turned(query: Tensor, key: Tensor, value: Tensor) -> Sequence[Tensor]:
    """Move the batch to the second dimension; shared tensors stay shared."""
    if key is not value:
        return [one.transpose(1, 0) for one in (query, key, value)]
    if query is key:
        return (query.transpose(1, 0),) * 3
    query, key = query.transpose(1, 0), key.transpose(1, 0)
    return query, key, key


def _in_parts(x: Tensor, count: int) -> Sequence[Tensor]:
    """Parts of the last dimension, each on its own in memory."""
    parts = x.unflatten(-1, (count, x.shape[-1] // count)).unsqueeze(0)
    parts = parts.transpose(0, -2).squeeze(-2).contiguous()
    return [parts[i] for i in range(count)]


def as_addend(mask: Tensor, like: Tensor) -> Tensor:
    """Return a mask as an addend of scores: minus infinity where it was True."""
    if mask.dtype.kind == "b":
        shape, dtype = mask.shape, like.dtype
        addend = zeros(shape, dtype=dtype, device=mask.device)
        return addend.masked_fill(mask, -math.inf)
    return mask


def _check_mask(what: str, mask: Tensor, shape: tuple[int, ...]) -> None:
    if tuple(mask.shape) != shape:
        raise RuntimeError(
            f"The shape of the {what} attn_mask is {mask.shape}, but should be {shape}."
        )
