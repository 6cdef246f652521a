"""The layers of transformers: attention, and two linear layers after it."""

from collections.abc import Callable

from gradviz.backends.device import Device
from gradviz.nn import functional as F  # noqa: N812 - PyTorch's habit
from gradviz.nn.attention import MultiheadAttention
from gradviz.nn.dropout import Dropout
from gradviz.nn.factory import Factory
from gradviz.nn.linear import Linear
from gradviz.nn.module import Module
from gradviz.nn.normalization import LayerNorm
from gradviz.ops.conventions.promotion import DTypeLike
from gradviz.tensors.tensor import Tensor

#: From a tensor, one of the same shape.
ActivationFunction = Callable[[Tensor], Tensor]


class TransformerEncoderLayer(Module):
    """Attention of a sequence to itself, then two linear layers.

    Args:
        d_model: Length of a vector.
        nhead: Number of heads.
        dim_feedforward: Length of a vector between the two linear layers.
        dropout: Probability that an element is left out, when training.
        activation: Between the linear layers: ``relu``, ``gelu``, or a function.
        layer_norm_eps: See `LayerNorm`.
        batch_first: True if the batch is the first dimension, False if the sequence is.
        norm_first: True if each part normalizes what it takes, False if what it
            returns.
        bias: True if there are biases.
        device: Device of the parameters; None for the CPU.
        dtype: Their type; None for the default one.

    Source: torch/nn/modules/transformer.py.
    """

    def __init__(
        self,
        d_model: int,
        nhead: int,
        dim_feedforward: int = 2048,
        dropout: float = 0.1,
        activation: str | ActivationFunction = "relu",
        layer_norm_eps: float = 1e-5,
        batch_first: bool = False,
        norm_first: bool = False,
        bias: bool = True,
        device: Device | str | None = None,
        dtype: DTypeLike = None,
    ) -> None:
        factory: Factory = {"device": device, "dtype": dtype}
        super().__init__()
        self.self_attn = MultiheadAttention(
            d_model, nhead, dropout, bias, batch_first=batch_first, **factory
        )
        self.linear1 = Linear(d_model, dim_feedforward, bias, **factory)
        self.dropout = Dropout(dropout)
        self.linear2 = Linear(dim_feedforward, d_model, bias, **factory)
        self.norm_first = norm_first
        self.norm1 = LayerNorm(d_model, layer_norm_eps, bias=bias, **factory)
        self.norm2 = LayerNorm(d_model, layer_norm_eps, bias=bias, **factory)
        self.dropout1 = Dropout(dropout)
        self.dropout2 = Dropout(dropout)
        self.activation = _activation(activation)

    def forward(
        self,
        src: Tensor,
        src_mask: Tensor | None = None,
        src_key_padding_mask: Tensor | None = None,
        is_causal: bool = False,
    ) -> Tensor:
        """A sequence of the same shape; see `MultiheadAttention` for the masks."""

        def attend(x: Tensor) -> Tensor:
            attended, _ = self.self_attn(
                x,
                x,
                x,
                key_padding_mask=src_key_padding_mask,
                need_weights=False,
                attn_mask=src_mask,
                is_causal=is_causal,
            )
            return self.dropout1(attended)

        x = src
        if self.norm_first:
            x = x + attend(self.norm1(x))
            return x + self._feed_forward(self.norm2(x))
        x = self.norm1(x + attend(x))
        return self.norm2(x + self._feed_forward(x))

    def _feed_forward(self, x: Tensor) -> Tensor:
        inner = self.dropout(self.activation(self.linear1(x)))
        return self.dropout2(self.linear2(inner))


class TransformerDecoderLayer(Module):
    """Attention of a sequence to itself and to another, then two linear layers.

    The arguments are those of `TransformerEncoderLayer`.
    """

    def __init__(
        self,
        d_model: int,
        nhead: int,
        dim_feedforward: int = 2048,
        dropout: float = 0.1,
        activation: str | ActivationFunction = "relu",
        layer_norm_eps: float = 1e-5,
        batch_first: bool = False,
        norm_first: bool = False,
        bias: bool = True,
        device: Device | str | None = None,
        dtype: DTypeLike = None,
    ) -> None:
        factory: Factory = {"device": device, "dtype": dtype}
        super().__init__()
        for name in ("self_attn", "multihead_attn"):
            attention = MultiheadAttention(
                d_model, nhead, dropout, bias, batch_first=batch_first, **factory
            )
            self.add_module(name, attention)
        self.linear1 = Linear(d_model, dim_feedforward, bias, **factory)
        self.dropout = Dropout(dropout)
        self.linear2 = Linear(dim_feedforward, d_model, bias, **factory)
        self.norm_first = norm_first
        for number in (1, 2, 3):
            norm = LayerNorm(d_model, layer_norm_eps, bias=bias, **factory)
            self.add_module(f"norm{number}", norm)
        for number in (1, 2, 3):
            self.add_module(f"dropout{number}", Dropout(dropout))
        self.activation = _activation(activation)

    def forward(
        self,
        tgt: Tensor,
        memory: Tensor,
        tgt_mask: Tensor | None = None,
        memory_mask: Tensor | None = None,
        tgt_key_padding_mask: Tensor | None = None,
        memory_key_padding_mask: Tensor | None = None,
        tgt_is_causal: bool = False,
        memory_is_causal: bool = False,
    ) -> Tensor:
        """A sequence of the shape of `tgt`; see `MultiheadAttention` for the masks."""

        def attend(x: Tensor) -> Tensor:
            attended, _ = self.self_attn(
                x,
                x,
                x,
                key_padding_mask=tgt_key_padding_mask,
                need_weights=False,
                attn_mask=tgt_mask,
                is_causal=tgt_is_causal,
            )
            return self.dropout1(attended)

        def remember(x: Tensor) -> Tensor:
            attended, _ = self.multihead_attn(
                x,
                memory,
                memory,
                key_padding_mask=memory_key_padding_mask,
                need_weights=False,
                attn_mask=memory_mask,
                is_causal=memory_is_causal,
            )
            return self.dropout2(attended)

        x = tgt
        if self.norm_first:
            x = x + attend(self.norm1(x))
            x = x + remember(self.norm2(x))
            return x + self._feed_forward(self.norm3(x))
        x = self.norm1(x + attend(x))
        x = self.norm2(x + remember(x))
        return self.norm3(x + self._feed_forward(x))

    def _feed_forward(self, x: Tensor) -> Tensor:
        inner = self.dropout(self.activation(self.linear1(x)))
        return self.dropout3(self.linear2(inner))


def _activation(activation: str | ActivationFunction) -> ActivationFunction:
    match activation:
        case "relu":
            return F.relu
        case "gelu":
            return F.gelu
        case str():
            raise RuntimeError(f"activation should be relu/gelu, not {activation}")
        case _:
            return activation
