"""Inference mode: what is made in it never takes part in differentiation.

An inference tensor counts no changes and remembers no views. The blocks themselves are
in `gradviz.autograd.grad_mode`.
"""

from typing import Final

from gradviz.modes import Mode

_IS_ON: Final = Mode("gradviz.inference_mode", default=False)

#: How many blocks there are in all contexts: nobody asks further while it is 0.
num_blocks = 0


def is_on() -> bool:
    """Whether what ops return in this context are inference tensors."""
    return num_blocks > 0 and _IS_ON.get()


def enter(mode: bool) -> bool:
    """Turn the mode on or off in this context, until `leave`; returns what it was."""
    global num_blocks
    num_blocks += 1
    before = _IS_ON.get()
    _IS_ON.set(mode)
    return before


def leave(before: bool) -> None:
    """Undo an `enter`, which returned `before`."""
    global num_blocks
    num_blocks -= 1
    _IS_ON.set(before)
