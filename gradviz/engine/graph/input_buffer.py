"""Input buffers: a node's gradients gather here; some may be overwritten."""

from collections.abc import Sequence
from sys import getrefcount  # in one step: each leaf and each sum asks
from typing import Final, NamedTuple, TypeAlias

from gradviz.backends.stream import Event, Stream
from gradviz.engine.graph.protocols import Gradient
from gradviz.trace.probe import How

# when compiled: found
_IN_PLACE: Final = How.IN_PLACE
_OUT_OF_PLACE: Final = How.OUT_OF_PLACE

#: Gradients that have arrived at a node, one slot per input; None where nothing has
#: arrived. Guarded by the mutex of its GraphTask until the node runs.
InputBuffer: TypeAlias = list[Gradient]


class Ready(NamedTuple):
    """Stream state of one gradient on an accelerator.

    Attributes:
        stream: The stream whose work, queued by the hand-over, makes the gradient.
        event: Marks the end of that work; None if nobody will have to wait.
        accumulation: The stream on which others are added to the gradient.
        producer: The id of the node that made it, -1 for the caller.
        is_sum: True if the engine computed it as a sum and nobody has seen it yet.
    """

    stream: Stream
    event: Event | None
    accumulation: Stream
    producer: int
    is_sum: bool = False


class StreamBuffer(list[Gradient]):
    """An input buffer in a pass that uses streams.

    Attributes:
        ready: Stream state of each gradient; None where nothing has arrived or nobody
            has to wait. Guarded like the buffer itself: by the mutex of the GraphTask
            until the node runs.
    """

    __slots__ = ("ready",)

    def __init__(self, gradients: Sequence[Gradient]) -> None:
        super().__init__(gradients)
        self.ready: list[Ready | None] = [None] * len(gradients)


def add(buffer: InputBuffer, index: int, gradient: Gradient, *, copies: bool) -> How:
    """Add `gradient` to the one in ``buffer[index]``.

    Adds in place if nobody else can see it, so that a sum of many needs the memory of
    one; see Note [Stealing a gradient]. Runs the gradient's own ``+``: call it without
    locks.

    Args:
        buffer: Has a gradient at `index`.
        index: Slot in the buffer.
        gradient: Gradient to add.
        copies: Never add in place: the sums are part of a graph (``create_graph``).

    Source: torch/csrc/autograd/input_buffer.cpp, accumulate (S3).
    """
    if (
        not copies
        and is_sole_reference(buffer, index)
        and owns_its_memory(buffer[index])
        and fits(buffer[index], gradient)
    ):
        buffer[index] += gradient
        return _IN_PLACE
    buffer[index] = buffer[index] + gradient
    return _OUT_OF_PLACE


# Note [Stealing a gradient]
# ~~~~~~~~~~~~~~~~~~~~~~~~~~
# A gradient that nobody else can see may be added to in place, or kept without a copy.
# Nobody else can see it if the list that holds it has the only reference to it, and if
# it owns its memory (a view would share it with its base). PyTorch asks `use_count()`;
# we use the reference count, always of an *element of a list*: evaluating that
# expression takes one reference on every interpreter, while the count for a local
# variable differs between them. Where even that does not hold (an interpreter with
# deferred counts), `_COUNTS_ARE_EXACT` is False and every gradient is copied: slower,
# never wrong.

_one_reference: Final = [object()]
_COUNTS_ARE_EXACT: Final = getrefcount(_one_reference[0]) == 2


def is_sole_reference(
    gradients: list[Gradient], index: int, *, others: int = 0
) -> bool:
    """Return whether only the list, and `others` known holders, hold the gradient."""
    return _COUNTS_ARE_EXACT and getrefcount(gradients[index]) <= 2 + others


def owns_its_memory(gradient: Gradient) -> bool:
    """Return whether `gradient` is an array with memory of its own that is writable.

    False for views (which may alias another gradient, or repeat one element through a
    stride of zero), for read-only arrays, and for anything that is not an array.
    """
    flags = getattr(gradient, "flags", None)
    return flags is not None and flags.owndata and getattr(flags, "writeable", True)


def is_writeable(gradient: Gradient) -> bool:
    """Return whether nothing forbids writing to `gradient`."""
    return bool(getattr(getattr(gradient, "flags", None), "writeable", True))


def fits(gradient: Gradient, other: Gradient) -> bool:
    """Return whether ``gradient += other`` gives the same as ``gradient + other``."""
    shape = getattr(gradient, "shape", None)
    return (
        shape is not None
        and shape == getattr(other, "shape", None)
        and bool(gradient.dtype == getattr(other, "dtype", None))
    )
