"""The recurrent layers."""

from typing import TYPE_CHECKING, Any, TypeVar

from gradviz.backends.device import Device
from gradviz.nn.cells import CellStep, gru_step, lstm_step, relu_step, tanh_step
from gradviz.nn.factory import Factory
from gradviz.nn.recurrent import Recurrent
from gradviz.nn.utils.rnn import PackedSequence
from gradviz.ops.conventions.promotion import DTypeLike
from gradviz.tensors.tensor import Tensor

#: Outputs are packed as the input is.
Steps = TypeVar("Steps", Tensor, PackedSequence)


class _OneState(Recurrent):
    """Layers that keep one state from step to step."""

    if TYPE_CHECKING:

        def __call__(
            self, input: Steps, hx: Tensor | None = None
        ) -> tuple[Steps, Tensor]:
            """See `forward`."""

    def forward(self, input: Any, hx: Tensor | None = None) -> tuple[Any, Tensor]:
        """Shape ``(L, N, input_size)``, or packed; returns all outputs, last states."""
        output, (last,) = self._call(input, None if hx is None else (hx,))
        return output, last


class RNN(_OneState):
    """``h = tanh(W_ih x + b_ih + W_hh h + b_hh)`` at each step.

    The arguments besides this are those of `Recurrent`.

    Args:
        nonlinearity: ``tanh`` or ``relu``.
    """

    _num_gates = 1

    def __init__(
        self,
        input_size: int,
        hidden_size: int,
        num_layers: int = 1,
        nonlinearity: str = "tanh",
        bias: bool = True,
        batch_first: bool = False,
        dropout: float = 0.0,
        bidirectional: bool = False,
        device: Device | str | None = None,
        dtype: DTypeLike = None,
    ) -> None:
        factory: Factory = {"device": device, "dtype": dtype}
        if nonlinearity not in {"tanh", "relu"}:
            raise ValueError(
                f"Unknown nonlinearity '{nonlinearity}'. Select from 'tanh' or 'relu'."
            )
        super().__init__(
            input_size,
            hidden_size,
            num_layers,
            bias,
            batch_first,
            dropout,
            bidirectional,
            **factory,
        )
        self.nonlinearity = nonlinearity

    def _step(self) -> CellStep:
        return tanh_step if self.nonlinearity == "tanh" else relu_step


class LSTM(Recurrent):
    """Long short-term memory (Hochreiter & Schmidhuber, 1997); see `Recurrent`."""

    _num_gates = 4
    _num_states = 2

    if TYPE_CHECKING:

        def __call__(
            self, input: Steps, hx: tuple[Tensor, Tensor] | None = None
        ) -> tuple[Steps, tuple[Tensor, ...]]:
            """See `forward`."""

    def forward(
        self, input: Any, hx: tuple[Tensor, Tensor] | None = None
    ) -> tuple[Any, tuple[Tensor, ...]]:
        """Shape ``(L, N, input_size)``, or packed; returns all outputs, last states."""
        return self._call(input, hx)

    def _step(self) -> CellStep:
        return lstm_step


class GRU(_OneState):
    """Gated recurrent units (Cho et al., 2014); see `Recurrent`."""

    _num_gates = 3

    def _step(self) -> CellStep:
        return gru_step
