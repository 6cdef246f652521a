"""Recurrent layers: cells that run along a sequence, forwards and backwards."""

import math
import warnings
from collections.abc import Callable, Sequence
from typing import Any, ClassVar, Unpack

from gradviz.nn import functional as F  # noqa: N812 - PyTorch's habit
from gradviz.nn import init
from gradviz.nn.cells import gru_step, lstm_step, relu_step, tanh_step
from gradviz.nn.factory import Factory, parameter
from gradviz.nn.module import Module
from gradviz.ops.shapes.joining import cat, stack
from gradviz.tensors.creation import zeros
from gradviz.tensors.tensor import Tensor

#: One tensor for each part of a cell's state: one, or two for LSTM.
State = tuple[Tensor, ...]

#: Takes what the input contributes, the state, and a function of the hidden state.
Step = Callable[[Tensor, State, Callable[[Tensor], Tensor]], State]


class Recurrent(Module):
    """What the recurrent layers have in common.

    Args:
        input_size: Length of an input vector.
        hidden_size: Length of the hidden state.
        num_layers: How many, each of which takes what the one before returned.
        bias: Whether there are biases.
        batch_first: Whether the batch is the first dimension, or the sequence.
        dropout: How likely elements are left out between layers, when training.
        bidirectional: Whether each layer also runs backwards along the sequence.
        **factory: See `Factory`.

    Raises:
        ValueError: A size is not positive, or `dropout` no probability.
        TypeError: A size is no integer.

    Source: torch/nn/modules/rnn.py, RNNBase.
    """

    _num_gates: ClassVar[int]
    _num_states: ClassVar[int] = 1

    def __init__(
        self,
        input_size: int,
        hidden_size: int,
        num_layers: int = 1,
        bias: bool = True,
        batch_first: bool = False,
        dropout: float = 0.0,
        bidirectional: bool = False,
        **factory: Unpack[Factory],
    ) -> None:
        super().__init__()
        _check(input_size, hidden_size, num_layers, dropout)
        self.input_size = input_size
        self.hidden_size = hidden_size
        self.num_layers = num_layers
        self.bias = bias
        self.batch_first = batch_first
        self.dropout = float(dropout)
        self.bidirectional = bidirectional
        for layer in range(num_layers):
            size = hidden_size * self._num_directions if layer else input_size
            for suffix in self._suffixes(layer):
                self._add_cell(suffix, size, factory)
        self.reset_parameters()

    @property
    def _num_directions(self) -> int:
        return 2 if self.bidirectional else 1

    def _suffixes(self, layer: int) -> Sequence[str]:
        """What the names of a layer's parameters end with, for each direction."""
        return (f"l{layer}", f"l{layer}_reverse")[: self._num_directions]

    def _add_cell(self, suffix: str, input_size: int, factory: Factory) -> None:
        rows = self._num_gates * self.hidden_size
        for name, shape in (
            ("weight_ih", (rows, input_size)),
            ("weight_hh", (rows, self.hidden_size)),
            ("bias_ih", (rows,)),
            ("bias_hh", (rows,)),
        ):
            if self.bias or name.startswith("weight"):
                one = parameter(*shape, **factory)
                self.register_parameter(f"{name}_{suffix}", one)

    def reset_parameters(self) -> None:
        """Draw new parameters, uniform within ``1 / sqrt(hidden_size)``."""
        bound = 1 / math.sqrt(self.hidden_size)
        for one in self.parameters():
            init.uniform_(one, -bound, bound)

    def flatten_parameters(self) -> None:
        """Does nothing; in PyTorch it lays parameters out for a GPU."""

    def _step(self) -> Step:
        raise NotImplementedError

    def _run_layers(self, input: Tensor, states: State) -> tuple[Tensor, State]:
        """Run all layers.

        Args:
            input: Shape ``(L, N, input_size)``.
            states: Each of shape ``(num_layers * directions, N, hidden_size)``.

        Returns:
            All outputs of the last layer, and the last states of all cells.
        """
        sequence = input
        last: list[State] = []
        for layer in range(self.num_layers):
            outputs = []
            for direction, suffix in enumerate(self._suffixes(layer)):
                cell = layer * self._num_directions + direction
                first = tuple(one[cell] for one in states)
                output, final = self._run_cell(
                    sequence, first, suffix, backwards=direction == 1
                )
                outputs.append(output)
                last.append(final)
            sequence = cat(outputs, 2) if len(outputs) > 1 else outputs[0]
            if self.dropout and self.training and layer < self.num_layers - 1:
                sequence = F.dropout(sequence, self.dropout, training=True)
        return sequence, tuple(stack(part) for part in zip(*last, strict=True))

    def _run_cell(
        self, sequence: Tensor, state: State, suffix: str, *, backwards: bool
    ) -> tuple[Tensor, State]:
        """Run one cell along the sequence."""
        weight = getattr(self, f"weight_hh_{suffix}")
        bias = getattr(self, f"bias_hh_{suffix}") if self.bias else None
        step = self._step()
        # What the inputs contribute is one product for all steps.
        inputs = F.linear(
            sequence,
            getattr(self, f"weight_ih_{suffix}"),
            getattr(self, f"bias_ih_{suffix}") if self.bias else None,
        )
        outputs = []
        steps = inputs.unbind(0)
        for one in reversed(steps) if backwards else steps:
            state = step(one, state, lambda hidden: F.linear(hidden, weight, bias))
            outputs.append(state[0])
        return stack(outputs[::-1] if backwards else outputs), state

    def _call(self, input: Tensor, states: State | None) -> tuple[Tensor, State]:
        """Bring the arguments into shape, run all layers, and undo the former."""
        self._check_input(input)
        is_batched = input.ndim == 3
        sequence = input
        if not is_batched:
            sequence = sequence.unsqueeze(1)
        elif self.batch_first:
            sequence = sequence.transpose(0, 1)
        shape = (
            self.num_layers * self._num_directions,
            sequence.shape[1],
            self.hidden_size,
        )
        if states is None:
            zero = zeros(shape, dtype=input.dtype, device=input.device)
            states = (zero,) * self._num_states
        else:
            self._check_states(states, shape, is_batched=is_batched)
            if not is_batched:
                states = tuple(one.unsqueeze(1) for one in states)
        output, last = self._run_layers(sequence, states)
        if not is_batched:
            return output.squeeze(1), tuple(one.squeeze(1) for one in last)
        return (output.transpose(0, 1) if self.batch_first else output), last

    def _check_input(self, input: Tensor) -> None:
        kind = self._get_name()
        if input.ndim not in {2, 3}:
            end = " tensor instead" if kind == "RNN" else " instead"
            raise ValueError(
                f"{kind}: Expected input to be 2D or 3D, got {input.ndim}D{end}"
            )
        weight = self.weight_ih_l0
        if input.dtype != weight.dtype:
            raise ValueError(
                f"RNN input dtype ({input.dtype}) does not match weight dtype "
                f"({weight.dtype}). Convert input: input.to({weight.dtype}), or "
                f"convert model: model.to({input.dtype})"
            )
        if input.shape[-1] != self.input_size:
            raise RuntimeError(
                f"input.size(-1) must be equal to input_size. Expected "
                f"{self.input_size}, got {input.shape[-1]}"
            )

    def _check_states(
        self, states: State, shape: tuple[int, ...], *, is_batched: bool
    ) -> None:
        wanted = 3 if is_batched else 2
        if any(one.ndim != wanted for one in states):
            what = "batched" if is_batched else "unbatched"
            raise RuntimeError(
                f"For {what} {wanted}-D input, hx should also be {wanted}-D but got "
                f"{states[0].ndim}-D tensor"
            )
        expected = shape if is_batched else (shape[0], shape[2])
        for name, one in zip(("hidden[0]", "hidden[1]"), states, strict=False):
            if tuple(one.shape) != expected:
                what = name if len(states) > 1 else "hidden"
                raise RuntimeError(
                    f"Expected {what} size {expected}, got {list(one.shape)}"
                )

    def extra_repr(self) -> str:
        """The arguments that are not the default."""
        texts = [f"{self.input_size}, {self.hidden_size}"]
        if self.num_layers != 1:
            texts.append(f"num_layers={self.num_layers}")
        if not self.bias:
            texts.append("bias=False")
        if self.batch_first:
            texts.append("batch_first=True")
        if self.dropout:
            texts.append(f"dropout={self.dropout}")
        if self.bidirectional:
            texts.append("bidirectional=True")
        return ", ".join(texts)


class RNN(Recurrent):
    """``h = tanh(W_ih x + b_ih + W_hh h + b_hh)`` at each step.

    Args:
        input_size: See `Recurrent`.
        hidden_size: Likewise.
        num_layers: Likewise.
        nonlinearity: ``tanh`` or ``relu``.
        bias: See `Recurrent`.
        batch_first: Likewise.
        dropout: Likewise.
        bidirectional: Likewise.
        **factory: See `Factory`.
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
        **factory: Unpack[Factory],
    ) -> None:
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

    def forward(
        self,
        input: Tensor,
        hx: Tensor | None = None,
    ) -> tuple[Tensor, Tensor]:
        """Shape ``(L, N, input_size)``; returns all outputs and the last state."""
        output, (last,) = self._call(input, None if hx is None else (hx,))
        return output, last

    def _step(self) -> Step:
        return tanh_step if self.nonlinearity == "tanh" else relu_step


class LSTM(Recurrent):
    """Long short-term memory (Hochreiter & Schmidhuber, 1997); see `Recurrent`."""

    _num_gates = 4
    _num_states = 2

    def forward(
        self,
        input: Tensor,
        hx: tuple[Tensor, Tensor] | None = None,
    ) -> tuple[Tensor, tuple[Tensor, ...]]:
        """Shape ``(L, N, input_size)``; returns all outputs, last states and cells."""
        return self._call(input, hx)

    def _step(self) -> Step:
        return lstm_step


class GRU(Recurrent):
    """Gated recurrent units (Cho et al., 2014); see `Recurrent`."""

    _num_gates = 3

    def forward(
        self,
        input: Tensor,
        hx: Tensor | None = None,
    ) -> tuple[Tensor, Tensor]:
        """Shape ``(L, N, input_size)``; returns all outputs and the last state."""
        output, (last,) = self._call(input, None if hx is None else (hx,))
        return output, last

    def _step(self) -> Step:
        return gru_step


def _check(input_size: Any, hidden_size: Any, num_layers: int, dropout: Any) -> None:
    if isinstance(dropout, bool) or not 0 <= dropout <= 1:
        raise ValueError(
            "dropout should be a number in range [0, 1] representing the probability "
            "of an element being zeroed"
        )
    if dropout > 0 and num_layers == 1:
        warnings.warn(
            f"dropout option adds dropout after all but last recurrent layer, so "
            f"non-zero dropout expects num_layers greater than 1, but got "
            f"dropout={dropout} and num_layers={num_layers}",
            stacklevel=4,
        )
    for name, size in (("input_size", input_size), ("hidden_size", hidden_size)):
        if not isinstance(size, int):
            raise TypeError(f"{name} should be of type int, got: {type(size).__name__}")
        if size <= 0:
            raise ValueError(f"{name} must be greater than zero")
    if num_layers <= 0:
        raise ValueError("num_layers must be greater than zero")
