"""Attention with several heads."""

import math

from gradviz.backends.device import Device
from gradviz.nn import functional as F  # noqa: N812 - PyTorch's habit
from gradviz.nn import init
from gradviz.nn.factory import Factory, parameter
from gradviz.nn.linear import NonDynamicallyQuantizableLinear
from gradviz.nn.module import Module
from gradviz.ops.recording.promotion import DTypeLike
from gradviz.ops.shapes.joining import cat
from gradviz.tensors.creation import zeros
from gradviz.tensors.tensor import Tensor


class MultiheadAttention(Module):
    """Mixes values, by how well the keys beside them match queries (Vaswani et al.).

    Args:
        embed_dim: Length of a query, and of what is returned for it.
        num_heads: Into how many parts vectors fall, each with a match of its own.
        dropout: How likely a match is left out, when training.
        bias: Whether there are biases.
        add_bias_kv: Whether there is one more key and value, both learned.
        add_zero_attn: Whether there is one more key and value, both 0.
        kdim: Length of a key; `embed_dim` if not given.
        vdim: Length of a value; `embed_dim` if not given.
        batch_first: Whether the batch is the first dimension, or the sequence.
        device: See `Factory`.
        dtype: Likewise.

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
        """What each query gets, and how well it matched.

        Args:
            query: Shape ``(L, N, embed_dim)``, or ``(N, L, ...)`` if `batch_first`, or
                without ``N``.
            key: Shape ``(S, N, kdim)`` likewise.
            value: Shape ``(S, N, vdim)`` likewise.
            key_padding_mask: Shape ``(N, S)``: True for keys to ignore, or what to add
                to their matches.
            need_weights: Whether the matches are wanted.
            attn_mask: Shape ``(L, S)`` or ``(N * num_heads, L, S)``: likewise.
            average_attn_weights: Whether the heads' matches are averaged.
            is_causal: A hint that `attn_mask` hides what comes later.

        Raises:
            RuntimeError: Masks do not fit, or the hint comes without a mask.
        """
        if is_causal and attn_mask is None:
            raise RuntimeError(
                "Need attn_mask if specifying the is_causal hint. You may use the "
                "Transformer module method `generate_square_subsequent_mask` to create "
                "this mask."
            )
        is_batched = query.ndim == 3
        if not is_batched:
            query, key, value = (one.unsqueeze(0) for one in (query, key, value))
            if key_padding_mask is not None:
                key_padding_mask = key_padding_mask.unsqueeze(0)
        elif not self.batch_first:
            query, key, value = (one.transpose(0, 1) for one in (query, key, value))
        self._check_shapes(query, key, value)
        mask = self._merged(key_padding_mask, attn_mask, query, key)
        q, k, v = self._project(query, key, value)
        k, v, mask = self._with_more(k, v, mask)
        q, k, v = map(self._split, (q, k, v))
        if need_weights:
            heads, weights = self._attend(q, k, v, mask)
            weights = weights.mean(1) if average_attn_weights else weights
        else:
            probability = self.dropout if self.training else 0.0
            heads = F.scaled_dot_product_attention(q, k, v, mask, probability)
            weights = None
        output = self.out_proj(heads.transpose(1, 2).flatten(2))
        if not is_batched:
            return output.squeeze(0), None if weights is None else weights.squeeze(0)
        return output if self.batch_first else output.transpose(0, 1), weights

    def _project(self, query: Tensor, key: Tensor, value: Tensor) -> list[Tensor]:
        """Queries, keys and values, each multiplied with its matrix."""
        given = (query, key, value)
        weight, bias = self.in_proj_weight, self.in_proj_bias
        if weight is not None and query is key and key is value:
            return list(F.linear(query, weight, bias).chunk(3, -1))
        weights = (
            weight.chunk(3)
            if weight is not None
            else (self.q_proj_weight, self.k_proj_weight, self.v_proj_weight)
        )
        biases = (None,) * 3 if bias is None else bias.chunk(3)
        return [F.linear(*one) for one in zip(given, weights, biases, strict=True)]

    def _with_more(
        self, keys: Tensor, values: Tensor, mask: Tensor | None
    ) -> tuple[Tensor, Tensor, Tensor | None]:
        """Keys and values with those that are in every batch; nobody masks them."""
        shape = (keys.shape[0], 1, self.embed_dim)
        if self.bias_k is not None:
            keys = cat([keys, self.bias_k.expand(shape)], 1)
            values = cat([values, self.bias_v.expand(shape)], 1)
            mask = None if mask is None else F.pad(mask, (0, 1))
        if self.add_zero_attn:
            zero = zeros(shape, dtype=keys.dtype, device=keys.device)
            keys, values = cat([keys, zero], 1), cat([values, zero], 1)
            mask = None if mask is None else F.pad(mask, (0, 1))
        return keys, values, mask

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

    def _split(self, x: Tensor) -> Tensor:
        """``(N, L, embed_dim)`` to ``(N, num_heads, L, head_dim)``."""
        batch, length, _ = x.shape
        parts = x.reshape(batch, length, self.num_heads, self.head_dim)
        return parts.transpose(1, 2)

    def _attend(
        self, q: Tensor, k: Tensor, v: Tensor, mask: Tensor | None
    ) -> tuple[Tensor, Tensor]:
        matches = (q * (1 / math.sqrt(self.head_dim))) @ k.transpose(-2, -1)
        if mask is not None:
            matches = matches + mask
        weights = matches.softmax(-1)
        if self.dropout and self.training:
            weights = F.dropout(weights, self.dropout)
        return weights @ v, weights

    def _merged(
        self,
        key_padding_mask: Tensor | None,
        attn_mask: Tensor | None,
        query: Tensor,
        key: Tensor,
    ) -> Tensor | None:
        """Both masks as one to add to matches of shape ``(N, heads, L, S)``."""
        batch, length = query.shape[:2]
        mask = None
        if attn_mask is not None:
            mask = as_addend(attn_mask, query)
            if attn_mask.ndim == 2:
                _check_mask("2D", attn_mask, (length, key.shape[1]))
            elif attn_mask.ndim == 3:
                heads = batch * self.num_heads
                _check_mask("3D", attn_mask, (heads, length, key.shape[1]))
                mask = mask.reshape(batch, self.num_heads, length, key.shape[1])
            else:
                raise RuntimeError(
                    f"attn_mask's dimension {attn_mask.ndim} is not supported"
                )
        if key_padding_mask is not None:
            padding = as_addend(key_padding_mask, query)
            padding = padding.reshape(batch, 1, 1, key.shape[1])
            mask = padding if mask is None else mask + padding
        return mask


def as_addend(mask: Tensor, like: Tensor) -> Tensor:
    """A mask as what is added to matches: where it was True, minus infinity."""
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
