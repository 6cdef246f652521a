"""Whether a gradient belongs to the engine alone, so that it may be overwritten."""

import sys
from typing import Final

from gradviz.engine.protocols import Gradient

# Note [Stealing a gradient]
# ~~~~~~~~~~~~~~~~~~~~~~~~~~
# A gradient that nobody else can see may be added to in place, or kept without a copy.
# Nobody else can see it if the list that holds it has the only reference to it, and
# if its memory is its own (a view would share it with its base). PyTorch asks
# `use_count()`; here it is the reference count, always taken of an *element of a list*:
# evaluating that expression takes one reference on every interpreter, while what a
# local variable counts for differs between them. Where even that does not hold (an
# interpreter with deferred counts), `_COUNTS_ARE_EXACT` is False and every gradient is
# copied: slower, never wrong.

_one_reference: Final = [object()]
_COUNTS_ARE_EXACT: Final = sys.getrefcount(_one_reference[0]) == 2


def is_sole_reference(
    gradients: list[Gradient], index: int, *, others: int = 0
) -> bool:
    """Whether only the list, and `others` places we know of, hold the gradient."""
    return _COUNTS_ARE_EXACT and sys.getrefcount(gradients[index]) <= 2 + others


def owns_its_memory(gradient: Gradient) -> bool:
    """Whether `gradient` is an array with memory of its own that may be written.

    False for views (which may alias another gradient, or repeat one element through
    a stride of zero), for read-only arrays, and for whatever is no array.
    """
    flags = getattr(gradient, "flags", None)
    return flags is not None and flags.owndata and getattr(flags, "writeable", True)


def is_writeable(gradient: Gradient) -> bool:
    """Whether nothing forbids writing to `gradient`."""
    return bool(getattr(getattr(gradient, "flags", None), "writeable", True))


def fits(gradient: Gradient, other: Gradient) -> bool:
    """Whether ``gradient += other`` gives what ``gradient + other`` gives."""
    shape = getattr(gradient, "shape", None)
    return (
        shape is not None
        and shape == getattr(other, "shape", None)
        and bool(gradient.dtype == getattr(other, "dtype", None))
    )
