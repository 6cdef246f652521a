"""Inference mode: what is made in it never takes part in differentiation.

An inference tensor counts no changes and remembers no views. The blocks themselves are
in `gradviz.autograd.grad_mode`.
"""

from typing import Final

from gradviz.modes import Entered, Mode

#: Those that any context is in, by id: nobody asks further while there are none.
INFERENCE_BLOCKS: Final[set[int]] = set()


class InferenceBlock(Entered):
    """A block that turns the mode on or off."""

    __slots__ = ("is_on",)

    def __init__(self, *, is_on: bool) -> None:
        super().__init__(INFERENCE_BLOCKS)
        self.is_on = is_on


_INNERMOST: Final[Mode[InferenceBlock | None]] = Mode(
    "gradviz.inference_mode", default=None
)


def is_on() -> bool:
    """Whether what ops return in this context are inference tensors."""
    if not INFERENCE_BLOCKS:
        return False
    block = _INNERMOST.get()
    return block is not None and block.is_on


def enter(mode: bool) -> InferenceBlock | None:
    """Turn the mode on or off in this context; returns the block that it was in."""
    before = _INNERMOST.get()
    _INNERMOST.set(InferenceBlock(is_on=mode))
    return before


def leave(before: InferenceBlock | None) -> None:
    """Undo an `enter`, which returned `before`."""
    _INNERMOST.set(before)
