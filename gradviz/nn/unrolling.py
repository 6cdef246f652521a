"""Cells run along sequences of different lengths."""

from collections.abc import Callable, Sequence
from typing import Any

from gradviz.nn import functional as F  # noqa: N812 - PyTorch's habit
from gradviz.nn.cells import CellStep, State
from gradviz.ops.shapes.joining import cat
from gradviz.tensors.tensor import Tensor

#: Takes inputs and state of so many sequences, returns their next state.
Advance = Callable[[Tensor, State], State]


def projected(step: CellStep, weight: Tensor) -> CellStep:
    """Return a step that multiplies its hidden states with a matrix."""

    def projecting(of_input: Any, state: State, of_hidden: Any) -> State:
        hidden, *others = step(of_input, state, of_hidden)
        return (F.linear(hidden, weight), *others)

    return projecting


def each(function: Callable[..., Tensor], *states: State) -> State:
    """A function of each part of states; the last part first, as PyTorch does it."""
    parts = reversed(list(zip(*states, strict=True)))
    return tuple([function(*part) for part in parts][::-1])


def run_packed(
    advance: Advance, inputs: Tensor, state: State, sizes: Sequence[int]
) -> tuple[Tensor, State]:
    """Run a cell along packed sequences, of which longer ones come first.

    Args:
        advance: The cell.
        inputs: Packed.
        state: The first, of all sequences.
        sizes: Number of sequences at each time.

    Returns:
        All outputs, packed, and the last state of each sequence.

    Source: aten/src/ATen/native/RNN.cpp, PackedLayer.
    """
    outputs: list[Tensor] = []
    ended: list[State] = []
    start, last = 0, sizes[0]
    for size in sizes:
        one = inputs.narrow(0, start, size)
        if size < last:
            ended.append(_narrowed(state, size, last - size))
            state = _narrowed(state, 0, size)
        start, last = start + size, size
        state = advance(one, state)
        outputs.append(state[0])
    return cat(outputs), _joined(state, *reversed(ended))


def run_packed_backwards(
    advance: Advance, inputs: Tensor, state: State, sizes: Sequence[int]
) -> tuple[Tensor, State]:
    """Run packed sequences backwards, each from its own end; see `run_packed`.

    Source: aten/src/ATen/native/RNN.cpp, ReversedPackedLayer.
    """
    outputs: list[Tensor] = []
    first, end, last = state, sum(sizes), sizes[-1]
    state = _narrowed(first, 0, last)
    for size in reversed(sizes):
        if size > last:
            state = _joined(state, _narrowed(first, last, size - last))
        one = inputs.narrow(0, end - size, size)
        end, last = end - size, size
        state = advance(one, state)
        outputs.append(state[0])
    return cat(outputs[::-1]), state


def _narrowed(state: State, start: int, length: int) -> State:
    return each(lambda one: one.narrow(0, start, length), state)


def _joined(*states: State) -> State:
    return each(lambda *parts: cat(parts), *states)
