"""The common part of recurrent layers: cells run along sequences, both ways."""

import math
import warnings
from collections.abc import Sequence
from typing import Any, ClassVar

from gradviz.backends.device import Device
from gradviz.nn import functional as F  # noqa: N812 - PyTorch's habit
from gradviz.nn import init
from gradviz.nn.cells import CellStep, State
from gradviz.nn.factory import Factory, parameter
from gradviz.nn.module import Module
from gradviz.nn.unrolling import each, projected, run_packed, run_packed_backwards
from gradviz.nn.utils.rnn import PackedSequence
from gradviz.ops.conventions.promotion import DTypeLike
from gradviz.ops.shapes.joining import cat, stack
from gradviz.tensors.creation.factories import zeros
from gradviz.tensors.tensor import Tensor


class Recurrent(Module):
    """Base of the recurrent layers.

    Args:
        input_size: Length of an input vector.
        hidden_size: Length of the hidden state.
        num_layers: Number of layers, each of which takes the output of the one before.
        bias: True if there are biases.
        batch_first: True if the batch is the first dimension, False if the sequence is.
        dropout: Probability of dropping elements between layers in training.
        bidirectional: True if each layer also runs backwards along the sequence.
        proj_size: LSTM only: length to which hidden states are projected; 0 for none.
        device: Device of the parameters; None for the CPU.
        dtype: Their type; None for the default one.

    Raises:
        ValueError: A size is not positive, or `dropout` no probability.
        TypeError: A size is not an integer.

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
        proj_size: int = 0,
        device: Device | str | None = None,
        dtype: DTypeLike = None,
    ) -> None:
        factory: Factory = {"device": device, "dtype": dtype}
        super().__init__()
        _check(input_size, hidden_size, num_layers, dropout)
        _check_proj_size(proj_size, hidden_size, is_lstm=self._num_states == 2)
        self.input_size = input_size
        self.hidden_size = hidden_size
        self.num_layers = num_layers
        self.bias = bias
        self.batch_first = batch_first
        self.dropout = float(dropout)
        self.bidirectional = bidirectional
        self.proj_size = proj_size
        for layer in range(num_layers):
            size = self._output_size * self._num_directions if layer else input_size
            for suffix in self._suffixes(layer):
                self._add_cell(suffix, size, factory)
        self.reset_parameters()

    @property
    def _num_directions(self) -> int:
        return 2 if self.bidirectional else 1

    @property
    def _output_size(self) -> int:
        return self.proj_size or self.hidden_size

    def _suffixes(self, layer: int) -> Sequence[str]:
        """Return the suffixes of a layer's parameter names, one per direction."""
        return (f"l{layer}", f"l{layer}_reverse")[: self._num_directions]

    def _add_cell(self, suffix: str, input_size: int, factory: Factory) -> None:
        rows = self._num_gates * self.hidden_size
        for name, shape in (
            ("weight_ih", (rows, input_size)),
            ("weight_hh", (rows, self._output_size)),
            ("bias_ih", (rows,)),
            ("bias_hh", (rows,)),
            ("weight_hr", (self.proj_size, self.hidden_size)),
        ):
            is_there = self.proj_size if name == "weight_hr" else True
            if is_there and (self.bias or name.startswith("weight")):
                one = parameter(*shape, **factory)
                self.register_parameter(f"{name}_{suffix}", one)

    def reset_parameters(self) -> None:
        """Draw new parameters, uniform within ``1 / sqrt(hidden_size)``."""
        bound = 1 / math.sqrt(self.hidden_size)
        for one in self.parameters():
            init.uniform_(one, -bound, bound)

    def flatten_parameters(self) -> None:
        """Does nothing; in PyTorch it lays parameters out for a GPU."""

    def _step(self) -> CellStep:
        raise NotImplementedError

    def _run_layers(
        self, input: Tensor, states: State, sizes: Sequence[int] | None
    ) -> tuple[Tensor, State]:
        """Run all layers.

        Args:
            input: Shape ``(L, N, input_size)``, or packed: ``(sum, input_size)``.
            states: Each of shape ``(num_layers * directions, N, length)``.
            sizes: Number of sequences at each time, if packed.

        Returns:
            All outputs of the last layer, and the last states of all cells.
        """
        sequence = input
        last: list[State] = []
        firsts = zip(*(one.unbind(0) for one in states), strict=True)
        for layer in range(self.num_layers):
            outputs = []
            for direction, suffix in enumerate(self._suffixes(layer)):
                output, final = self._run_cell(
                    sequence, next(firsts), suffix, sizes, backwards=direction == 1
                )
                outputs.append(output)
                last.append(final)
            sequence = cat(outputs, -1) if len(outputs) > 1 else outputs[0]
            if self.dropout and self.training and layer < self.num_layers - 1:
                sequence = F.dropout(sequence, self.dropout, training=True)
        return sequence, each(lambda *parts: stack(parts), *last)

    def _run_cell(
        self,
        sequence: Tensor,
        state: State,
        suffix: str,
        sizes: Sequence[int] | None,
        *,
        backwards: bool,
    ) -> tuple[Tensor, State]:
        """Run one cell along the sequence."""
        weight = getattr(self, f"weight_hh_{suffix}")
        bias = getattr(self, f"bias_hh_{suffix}") if self.bias else None
        step = self._step()
        if self.proj_size:
            step = projected(step, getattr(self, f"weight_hr_{suffix}"))
        # The contribution of the inputs is one product for all steps.
        inputs = F.linear(
            sequence,
            getattr(self, f"weight_ih_{suffix}"),
            getattr(self, f"bias_ih_{suffix}") if self.bias else None,
        )

        def advance(one: Tensor, state: State) -> State:
            return step(
                lambda: one, state, lambda hidden: F.linear(hidden, weight, bias)
            )

        if sizes is not None:
            run = run_packed_backwards if backwards else run_packed
            return run(advance, inputs, state, sizes)
        outputs = []
        steps = inputs.unbind(0)
        for one in reversed(steps) if backwards else steps:
            state = advance(one, state)
            outputs.append(state[0])
        return stack(outputs[::-1] if backwards else outputs), state

    def _call(self, input: Any, states: State | None) -> tuple[Any, State]:
        """Bring the arguments into shape, run all layers, and undo the former."""
        if isinstance(input, PackedSequence):
            return self._call_packed(input, states)
        self._check_input(input)
        is_batched = input.ndim == 3
        batch_dim = 0 if self.batch_first else 1
        sequence = input if is_batched else input.unsqueeze(batch_dim)
        batch = sequence.shape[batch_dim]
        if states is None:
            states = self._zeros(input, batch)
        else:
            self._check_states(states, batch, is_batched=is_batched)
            if not is_batched:
                states = tuple(one.unsqueeze(1) for one in states)
        if self.batch_first:
            sequence = sequence.transpose(0, 1)
        output, last = self._run_layers(sequence, states, None)
        if self.batch_first:
            is_lstm = self._num_states == 2  # PyTorch's only one that is not in place
            turn = output.transpose if is_lstm else output.transpose_
            output = turn(0, 1)
        if not is_batched:
            return output.squeeze(batch_dim), tuple(one.squeeze(1) for one in last)
        return output, last

    def _call_packed(
        self, input: PackedSequence, states: State | None
    ) -> tuple[PackedSequence, State]:
        data, batch_sizes, order, back = input
        sizes = batch_sizes.tolist()
        self._check_input(data, is_packed=True)
        if states is None:
            states = self._zeros(data, sizes[0])
        else:
            self._check_states(states, sizes[0], is_batched=True)
            if order is not None:
                states = tuple(one.index_select(1, order) for one in states)
        output, last = self._run_layers(data, states, sizes)
        if back is not None:
            last = tuple(one.index_select(1, back) for one in last)
        return PackedSequence(output, batch_sizes, order, back), last

    def _shapes(self, batch: int) -> tuple[tuple[int, ...], ...]:
        """Of the parts of the state: only hidden states are multiplied."""
        num_cells = self.num_layers * self._num_directions
        sizes = (self._output_size, self.hidden_size)
        return tuple((num_cells, batch, size) for size in sizes[: self._num_states])

    def _zeros(self, input: Tensor, batch: int) -> State:
        shapes = self._shapes(batch)
        if len(set(shapes)) == 1:
            zero = zeros(shapes[0], dtype=input.dtype, device=input.device)
            return (zero,) * len(shapes)
        return tuple(
            zeros(shape, dtype=input.dtype, device=input.device) for shape in shapes
        )

    def _check_input(self, input: Tensor, *, is_packed: bool = False) -> None:
        kind = self._get_name()
        if is_packed and input.ndim != 2:
            raise RuntimeError(f"input must have 2 dimensions, got {input.ndim}")
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

    def _check_states(self, states: State, batch: int, *, is_batched: bool) -> None:
        wanted = 3 if is_batched else 2
        if any(one.ndim != wanted for one in states):
            what = "batched" if is_batched else "unbatched"
            got = f"hx should also be {wanted}-D but got {states[0].ndim}-D tensor"
            if len(states) > 1:
                dims = ", ".join(f"{one.ndim}-D" for one in states)
                got = f"hx and cx should also be {wanted}-D but got ({dims}) tensors"
            raise RuntimeError(f"For {what} {wanted}-D input, {got}")
        names = ("hidden[0]", "hidden[1]")
        for name, one, shape in zip(names, states, self._shapes(batch), strict=False):
            expected = shape if is_batched else (shape[0], shape[2])
            if tuple(one.shape) != expected:
                what = name if len(states) > 1 else "hidden"
                raise RuntimeError(
                    f"Expected {what} size {expected}, got {list(one.shape)}"
                )

    def extra_repr(self) -> str:
        """The arguments that are not the default."""
        texts = [f"{self.input_size}, {self.hidden_size}"]
        if self.proj_size:
            texts.append(f"proj_size={self.proj_size}")
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


def _check_proj_size(proj_size: int, hidden_size: int, *, is_lstm: bool) -> None:
    if proj_size and not is_lstm:
        raise ValueError(
            "proj_size argument is only supported for LSTM, not RNN or GRU"
        )
    if proj_size < 0:
        raise ValueError(
            "proj_size should be a positive integer or zero to disable projections"
        )
    if proj_size >= hidden_size:
        raise ValueError("proj_size has to be smaller than hidden_size")


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
