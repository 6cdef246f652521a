"""Recurrent cells: one step along a sequence."""

import math
from collections.abc import Callable
from typing import ClassVar

from gradviz.backends.device import Device
from gradviz.nn import functional as F  # noqa: N812 - PyTorch's habit
from gradviz.nn import init
from gradviz.nn.factory import Factory, parameter
from gradviz.nn.module import Module
from gradviz.ops.conventions.promotion import DTypeLike
from gradviz.tensors.creation.factories import zeros
from gradviz.tensors.tensor import Tensor

#: ``W_hh h + b_hh``, given ``h``.
OfHidden = Callable[[Tensor], Tensor]

#: ``W_ih x + b_ih``, which a layer knows before the step, and a cell computes in it.
OfInput = Callable[[], Tensor]

#: One tensor for each part of the state: one, or two for LSTM.
State = tuple[Tensor, ...]

#: Takes what the input contributes, the state, and `OfHidden`.
CellStep = Callable[[OfInput, State, OfHidden], State]

# Ops come in PyTorch's order, for a backward runs them in the opposite one.
# Source: aten/src/ATen/native/RNN.cpp, SimpleCell, LSTMCell and GRUCell.


def tanh_step(of_input: OfInput, state: State, of_hidden: OfHidden) -> State:
    """The state after one step."""
    return ((of_hidden(state[0]) + of_input()).tanh(),)


def relu_step(of_input: OfInput, state: State, of_hidden: OfHidden) -> State:
    """Like `tanh_step`, with another nonlinearity."""
    return ((of_hidden(state[0]) + of_input()).relu(),)


def lstm_step(of_input: OfInput, state: State, of_hidden: OfHidden) -> State:
    """Hidden state and cell after one step; gates are input, forget, cell, output."""
    hidden, cell = state
    into, keep, new, out = (of_hidden(hidden) + of_input()).unsafe_chunk(4, 1)
    into, keep, new, out = into.sigmoid(), keep.sigmoid(), new.tanh(), out.sigmoid()
    cell = keep * cell + into * new
    return out * cell.tanh(), cell


def gru_step(of_input: OfInput, state: State, of_hidden: OfHidden) -> State:
    """The state after one step; gates are reset, update, new."""
    (hidden,) = state
    reset_x, update_x, new_x = of_input().unsafe_chunk(3, 1)
    reset_h, update_h, new_h = of_hidden(hidden).unsafe_chunk(3, 1)
    reset = (reset_h + reset_x).sigmoid()
    update = (update_h + update_x).sigmoid()
    new = (new_x + new_h * reset).tanh()
    return ((hidden - new) * update + new,)


class Cell(Module):
    """Base of the recurrent cells.

    Args:
        input_size: Length of an input vector.
        hidden_size: Length of the hidden state.
        bias: True if there are biases.
        device: Device of the parameters; None for the CPU.
        dtype: Their type; None for the default one.

    Source: torch/nn/modules/rnn.py, RNNCellBase.
    """

    _num_gates: ClassVar[int]
    _num_states: ClassVar[int] = 1

    def __init__(
        self,
        input_size: int,
        hidden_size: int,
        bias: bool = True,
        device: Device | str | None = None,
        dtype: DTypeLike = None,
    ) -> None:
        factory: Factory = {"device": device, "dtype": dtype}
        super().__init__()
        self.input_size = input_size
        self.hidden_size = hidden_size
        self.bias = bias
        rows = self._num_gates * hidden_size
        self.weight_ih = parameter(rows, input_size, **factory)
        self.weight_hh = parameter(rows, hidden_size, **factory)
        for name in ("bias_ih", "bias_hh"):
            self.register_parameter(name, parameter(rows, **factory) if bias else None)
        self.reset_parameters()

    def reset_parameters(self) -> None:
        """Draw new parameters, uniform within ``1 / sqrt(hidden_size)``."""
        bound = 1 / math.sqrt(self.hidden_size) if self.hidden_size else 0
        for one in self.parameters():
            init.uniform_(one, -bound, bound)

    def _advance(self, step: CellStep, input: Tensor, state: State | None) -> State:
        """Take a step, of one vector or of a batch."""
        if input.ndim not in {1, 2}:
            raise ValueError(
                f"{self._get_name()}: Expected input to be 1D or 2D, got "
                f"{input.ndim}D instead"
            )
        is_batched = input.ndim == 2
        batch = input if is_batched else input.unsqueeze(0)
        if batch.shape[1] != self.input_size:
            raise RuntimeError(
                f"input has inconsistent input_size: got {batch.shape[1]} expected "
                f"{self.input_size}"
            )
        if state is None:
            shape = (batch.shape[0], self.hidden_size)
            zero = zeros(shape, dtype=input.dtype, device=input.device)
            state = (zero,) * self._num_states
        else:
            self._check_dims(state)
            if not is_batched:
                state = tuple(one.unsqueeze(0) for one in state)
            self._check_sizes(state, batch.shape[0])
        after = step(
            lambda: F.linear(batch, self.weight_ih, self.bias_ih),
            state,
            lambda one: F.linear(one, self.weight_hh, self.bias_hh),
        )
        return after if is_batched else tuple(one.squeeze(0) for one in after)

    def _check_dims(self, state: State) -> None:
        for number, one in enumerate(state):
            if one.ndim not in {1, 2}:
                name = "hidden" if len(state) == 1 else f"hx[{number}]"
                raise ValueError(
                    f"{self._get_name()}: Expected {name} to be 1D or 2D, got "
                    f"{one.ndim}D instead"
                )

    def _check_sizes(self, state: State, batch: int) -> None:
        for number, one in enumerate(state):
            if batch != one.shape[0]:
                raise RuntimeError(
                    f"Input batch size {batch} doesn't match hidden{number} batch size "
                    f"{one.shape[0]}"
                )
            if one.shape[1] != self.hidden_size:
                raise RuntimeError(
                    f"hidden{number} has inconsistent hidden_size: got {one.shape[1]}, "
                    f"expected {self.hidden_size}"
                )

    def extra_repr(self) -> str:
        """The arguments."""
        texts = [f"{self.input_size}, {self.hidden_size}"]
        if not self.bias:
            texts.append("bias=False")
        nonlinearity = getattr(self, "nonlinearity", "tanh")
        if nonlinearity != "tanh":
            texts.append(f"nonlinearity={nonlinearity}")
        return ", ".join(texts)


class RNNCell(Cell):
    """``h = tanh(W_ih x + b_ih + W_hh h + b_hh)``.

    The arguments besides this are those of `Cell`.

    Args:
        nonlinearity: ``tanh`` or ``relu``.
    """

    _num_gates = 1

    def __init__(
        self,
        input_size: int,
        hidden_size: int,
        bias: bool = True,
        nonlinearity: str = "tanh",
        device: Device | str | None = None,
        dtype: DTypeLike = None,
    ) -> None:
        factory: Factory = {"device": device, "dtype": dtype}
        super().__init__(input_size, hidden_size, bias, **factory)
        self.nonlinearity = nonlinearity

    def forward(self, input: Tensor, hx: Tensor | None = None) -> Tensor:
        """Shape ``(N, input_size)``; returns the next state.

        Raises:
            RuntimeError: The nonlinearity is not known.
        """
        step = {"tanh": tanh_step, "relu": relu_step}.get(self.nonlinearity)
        if step is None:
            raise RuntimeError(f"Unknown nonlinearity: {self.nonlinearity}")
        return self._advance(step, input, None if hx is None else (hx,))[0]


class LSTMCell(Cell):
    """One step of an `LSTM`."""

    _num_gates = 4
    _num_states = 2

    def forward(
        self,
        input: Tensor,
        hx: tuple[Tensor, Tensor] | None = None,
    ) -> tuple[Tensor, ...]:
        """Shape ``(N, input_size)``; returns the next hidden state and cell."""
        return self._advance(lstm_step, input, hx)


class GRUCell(Cell):
    """One step of a `GRU`."""

    _num_gates = 3

    def forward(self, input: Tensor, hx: Tensor | None = None) -> Tensor:
        """Shape ``(N, input_size)``; returns the next state."""
        return self._advance(gru_step, input, None if hx is None else (hx,))[0]
