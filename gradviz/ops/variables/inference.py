"""Inference mode: tensors made in it never take part in differentiation.

An inference tensor counts no changes and remembers no views. The blocks themselves are
in `gradviz.autograd.grad_mode`.
"""

import itertools
import weakref
from collections.abc import Generator, Iterator
from typing import Final, NamedTuple

from gradviz.engine.graph.grad_mode import GRAD_ENABLED
from gradviz.modes import Entered, Mode, undoing

#: Those that any context is in: nobody asks further while there are none.
INFERENCE_BLOCKS: Final[set[weakref.ref[Entered]]] = set()


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
    """Return whether ops return inference tensors in this context."""
    if not INFERENCE_BLOCKS:
        return False
    block = _INNERMOST.get()
    return block is not None and block.is_on


class Leaving(NamedTuple):
    """State that leaving a block restores.

    Attributes:
        undo: Gives inference mode and gradient mode back what they were before the
            block, once it is exhausted: by `leave`, or by `if_dropped`.
        if_dropped: See `_left_when_dropped`.
    """

    undo: Iterator[object]
    if_dropped: Generator[None, None, None]


def enter(mode: bool, blocks: list[Leaving]) -> None:
    """Turn the mode on or off in this context, and gradient mode the other way.

    Args:
        mode: True if it is to be turned on.
        blocks: Gets what `leave` takes, before anything is changed: whatever strikes
            then, the block is left when the list is gone.
    """
    block = InferenceBlock(is_on=mode)
    undo = itertools.chain(_INNERMOST.undoing(), undoing(GRAD_ENABLED))
    leaving = Leaving(undo, _left_when_dropped(block, undo))
    next(leaving.if_dropped)
    blocks.append(leaving)
    _INNERMOST.set(block)
    GRAD_ENABLED.set(not mode)


def leave(blocks: list[Leaving]) -> None:
    """Undo the last `enter` with this list."""
    leaving = blocks.pop()
    list(leaving.undo)  # in one call
    leaving.if_dropped.close()


def _left_when_dropped(
    block: InferenceBlock, undo: Iterator[object]
) -> Generator[None, None, None]:
    """Leave `block` when this generator is dropped, unless it has been left.

    An interrupt may strike ``__exit__`` before its first line. Then the object that was
    entered goes when the error has been handled, and this generator with it. In another
    context, or under another block, nothing is undone.

    Source: c10/core/InferenceMode.h, whose destructor does this.
    """
    try:
        yield
    finally:
        if _INNERMOST.get() is block:
            list(undo)
