"""Transformers: stacks of layers, for one sequence or from one to another."""

import copy
import math

from gradviz.backends.device import Device
from gradviz.nn import init
from gradviz.nn.containers import ModuleList
from gradviz.nn.factory import Factory
from gradviz.nn.module import Module
from gradviz.nn.normalization import LayerNorm
from gradviz.nn.transformer_layers import (
    ActivationFunction,
    TransformerDecoderLayer,
    TransformerEncoderLayer,
)
from gradviz.ops.conventions.promotion import DTypeLike
from gradviz.tensors.creation.factories import full
from gradviz.tensors.tensor import Tensor


class TransformerEncoder(Module):
    """Several copies of a layer, one after the other.

    Args:
        encoder_layer: The layer.
        num_layers: Number of copies.
        norm: Normalizes at the end.
        enable_nested_tensor: Accepted; changes nothing.
        mask_check: Accepted; changes nothing.
    """

    def __init__(
        self,
        encoder_layer: TransformerEncoderLayer,
        num_layers: int,
        norm: Module | None = None,
        enable_nested_tensor: bool = True,
        mask_check: bool = True,
    ) -> None:
        del enable_nested_tensor, mask_check
        super().__init__()
        self.layers = ModuleList(
            copy.deepcopy(encoder_layer) for _ in range(num_layers)
        )
        self.num_layers = num_layers
        self.norm = norm

    def forward(
        self,
        src: Tensor,
        mask: Tensor | None = None,
        src_key_padding_mask: Tensor | None = None,
        is_causal: bool | None = None,
    ) -> Tensor:
        """A sequence of the same shape; see `MultiheadAttention` for the masks."""
        x = src
        for layer in self.layers:
            x = layer(x, mask, src_key_padding_mask, is_causal=bool(is_causal))
        return x if self.norm is None else self.norm(x)


class TransformerDecoder(Module):
    """Several copies of a layer, one after the other.

    Args:
        decoder_layer: The layer.
        num_layers: Number of copies.
        norm: Normalizes at the end.
    """

    def __init__(
        self,
        decoder_layer: TransformerDecoderLayer,
        num_layers: int,
        norm: Module | None = None,
    ) -> None:
        super().__init__()
        self.layers = ModuleList(
            copy.deepcopy(decoder_layer) for _ in range(num_layers)
        )
        self.num_layers = num_layers
        self.norm = norm

    def forward(
        self,
        tgt: Tensor,
        memory: Tensor,
        tgt_mask: Tensor | None = None,
        memory_mask: Tensor | None = None,
        tgt_key_padding_mask: Tensor | None = None,
        memory_key_padding_mask: Tensor | None = None,
        tgt_is_causal: bool | None = None,
        memory_is_causal: bool = False,
    ) -> Tensor:
        """A sequence of the shape of `tgt`; see `MultiheadAttention` for the masks."""
        x = tgt
        for layer in self.layers:
            x = layer(
                x,
                memory,
                tgt_mask,
                memory_mask,
                tgt_key_padding_mask,
                memory_key_padding_mask,
                bool(tgt_is_causal),
                memory_is_causal,
            )
        return x if self.norm is None else self.norm(x)


class Transformer(Module):
    """An encoder for one sequence and a decoder for another (Vaswani et al., 2017).

    The arguments besides these are those of `TransformerEncoderLayer`.

    Args:
        num_encoder_layers: Number of layers of the encoder.
        num_decoder_layers: Number of layers of the decoder.
        custom_encoder: Takes the encoder's place.
        custom_decoder: Takes the decoder's place.
    """

    def __init__(
        self,
        d_model: int = 512,
        nhead: int = 8,
        num_encoder_layers: int = 6,
        num_decoder_layers: int = 6,
        dim_feedforward: int = 2048,
        dropout: float = 0.1,
        activation: str | ActivationFunction = "relu",
        custom_encoder: Module | None = None,
        custom_decoder: Module | None = None,
        layer_norm_eps: float = 1e-5,
        batch_first: bool = False,
        norm_first: bool = False,
        bias: bool = True,
        device: Device | str | None = None,
        dtype: DTypeLike = None,
    ) -> None:
        factory: Factory = {"device": device, "dtype": dtype}
        super().__init__()
        layer = (d_model, nhead, dim_feedforward, dropout, activation, layer_norm_eps)
        more = (batch_first, norm_first, bias)

        def norm() -> LayerNorm:
            return LayerNorm(d_model, layer_norm_eps, bias=bias, **factory)

        self.encoder = custom_encoder or TransformerEncoder(
            TransformerEncoderLayer(*layer, *more, **factory),
            num_encoder_layers,
            norm(),
        )
        self.decoder = custom_decoder or TransformerDecoder(
            TransformerDecoderLayer(*layer, *more, **factory),
            num_decoder_layers,
            norm(),
        )
        self.d_model = d_model
        self.nhead = nhead
        self.batch_first = batch_first
        for one in self.parameters():
            if one.ndim > 1:
                init.xavier_uniform_(one)

    def forward(
        self,
        src: Tensor,
        tgt: Tensor,
        src_mask: Tensor | None = None,
        tgt_mask: Tensor | None = None,
        memory_mask: Tensor | None = None,
        src_key_padding_mask: Tensor | None = None,
        tgt_key_padding_mask: Tensor | None = None,
        memory_key_padding_mask: Tensor | None = None,
        src_is_causal: bool | None = None,
        tgt_is_causal: bool | None = None,
        memory_is_causal: bool = False,
    ) -> Tensor:
        """A sequence of the shape of `tgt`; see `MultiheadAttention` for the masks."""
        memory = self.encoder(src, src_mask, src_key_padding_mask, src_is_causal)
        return self.decoder(
            tgt,
            memory,
            tgt_mask,
            memory_mask,
            tgt_key_padding_mask,
            memory_key_padding_mask,
            tgt_is_causal,
            memory_is_causal,
        )

    @staticmethod
    def generate_square_subsequent_mask(
        sz: int, device: Device | str | None = None, dtype: DTypeLike = None
    ) -> Tensor:
        """Return a mask of later elements: minus infinity above the diagonal."""
        return full((sz, sz), -math.inf, dtype=dtype, device=device).triu(1)
