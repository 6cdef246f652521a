"""Cells run along sequences of different lengths."""

from collections.abc import Callable, Sequence
from typing import Any

from gradviz.nn import functional as F  # noqa: N812 - PyTorch's habit
from gradviz.ops.shapes.joining import cat
from gradviz.tensors.tensor import Tensor

#: One tensor for each part of a cell's state: one, or two for LSTM.
State = tuple[Tensor, ...]

#: Takes what the input contributes, the state, and a function of the hidden state.
Step = Callable[[Tensor, State, Callable[[Tensor], Tensor]], State]


def projected(step: Step, weight: Tensor) -> Step:
    """A step whose hidden states are multiplied with a matrix."""

    def projecting(inputs: Tensor, state: State, of_hidden: Any) -> State:
        hidden, *others = step(inputs, state, of_hidden)
        return (F.linear(hidden, weight), *others)

    return projecting


def run_packed(
    advance: Callable[[Tensor, State], State],
    inputs: Tensor,
    state: State,
    sizes: Sequence[int],
    *,
    backwards: bool,
) -> tuple[Tensor, State]:
    """Run a cell along packed sequences, of which longer ones come first.

    Args:
        advance: Takes inputs and state of so many sequences, returns their next state.
        inputs: Packed.
        state: The first, of all sequences.
        sizes: How many sequences there are at each time.
        backwards: Whether to begin at the ends, which come one after the other.

    Returns:
        All outputs, packed, and the last state of each sequence.
    """
    first, ended = state, []
    outputs = []
    steps = inputs.split(list(sizes))
    state = tuple(one[: sizes[-1]] for one in first) if backwards else first
    for one in reversed(steps) if backwards else steps:
        size, now = len(one), len(state[0])
        if size > now:
            joining = (part[now:size] for part in first)
            state = tuple(map(cat, zip(state, joining, strict=True)))
        elif size < now:
            ended.append(tuple(part[size:] for part in state))
            state = tuple(part[:size] for part in state)
        state = advance(one, state)
        outputs.append(state[0])
    last = tuple(map(cat, zip(state, *reversed(ended), strict=True)))
    return cat(outputs[::-1] if backwards else outputs), last
