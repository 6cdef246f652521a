"""Where the gradients of a node gather, and when each of them is ready."""

from collections.abc import Sequence
from typing import NamedTuple

from gradviz.backends.stream import Event, Stream
from gradviz.engine.protocols import Gradient


class Ready(NamedTuple):
    """When a gradient on an accelerator is ready.

    Attributes:
        stream: When its work is done that was there when the gradient was handed on.
        event: Says so; None if nobody will have to wait.
        accumulation: Where others are added to the gradient.
        producer: The id of the node that made it, -1 for the caller.
        is_sum: Whether the engine has added it up, and nobody has seen it yet.
    """

    stream: Stream
    event: Event | None
    accumulation: Stream
    producer: int
    is_sum: bool = False


class StreamBuffer(list[Gradient]):
    """An input buffer in a pass that knows of streams.

    Attributes:
        ready: For each gradient when it is ready; None where nothing has come, and for
            what nobody has to wait for. Guarded like the buffer itself: by the mutex of
            the GraphTask until the node runs.
    """

    __slots__ = ("ready",)

    def __init__(self, gradients: Sequence[Gradient]) -> None:
        super().__init__(gradients)
        self.ready: list[Ready | None] = [None] * len(gradients)
