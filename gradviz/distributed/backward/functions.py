"""The nodes where a graph leaves a worker, and where it comes in."""

from collections.abc import Callable, Sequence
from typing import TypeAlias

import numpy as np

from gradviz.engine.graph.node import Edge, InputMetadata, Node
from gradviz.engine.graph.protocols import Gradient

#: Sends the gradients of what came by a message back to where it came from. Given the
#: node, and a gradient for each of its inputs.
Propagate: TypeAlias = Callable[["RecvRpcBackward", Sequence[Gradient]], object]


class SendRpcBackward(Node):
    """Source of gradients that come from the worker to which tensors were sent.

    A pass starts here with the gradients that a message has brought.

    Args:
        edges: Destinations of the gradients, one for each tensor that was sent and
            needs one.
        input_metadata: Expected shapes, dtypes and devices.
        message_id: The message that sent the tensors.
        peer: The worker that received them.
        function: The function called there, or called here; for display.

    Attributes:
        message_id: As given, like the others.

    Source: torch/csrc/distributed/autograd/functions/sendrpc_backward.h (D13).
    Differs: the gradients are the node's inputs, and it keeps nothing itself.
    """

    __slots__ = ("function", "message_id", "peer")

    def __init__(
        self,
        edges: Sequence[Edge],
        input_metadata: Sequence[InputMetadata],
        *,
        message_id: int,
        peer: int,
        function: str,
    ) -> None:
        super().__init__(edges, input_metadata)
        self.message_id = message_id
        self.peer = peer
        self.function = function

    def call(self, inputs: list[Gradient]) -> Sequence[Gradient]:
        """The gradients, as they came."""
        return tuple(inputs)

    def describe(self) -> str:
        """Describe the message."""
        return (
            f"message {self.message_id} to node {self.peer} (function {self.function})"
        )


class RecvRpcBackward(Node):
    """Sink of gradients, which it sends back to the worker that sent the tensors.

    Args:
        input_metadata: Shape, dtype and device of each tensor that needs a gradient.
        message_id: The message that brought the tensors.
        peer: The worker that sent them.
        propagate: Sends the gradients there.

    Attributes:
        message_id: As given, like `peer`.

    Source: torch/csrc/distributed/autograd/functions/recvrpc_backward.h (D13).
    """

    __slots__ = ("_propagate", "message_id", "peer")

    input_metadata: Sequence[InputMetadata]

    def __init__(
        self,
        input_metadata: Sequence[InputMetadata],
        *,
        message_id: int,
        peer: int,
        propagate: Propagate,
    ) -> None:
        super().__init__((), input_metadata)
        self.message_id = message_id
        self.peer = peer
        self._propagate = propagate

    def call(self, inputs: list[Gradient]) -> Sequence[Gradient]:
        """Send the gradients, zeros for those that did not come; hand nothing on."""
        gradients = tuple(
            np.zeros(metadata.shape, metadata.dtype)
            if gradient is None
            else np.asarray(gradient)  # of no dimensions NumPy makes scalars
            for gradient, metadata in zip(inputs, self.input_metadata, strict=True)
        )
        self._propagate(self, gradients)
        return ()
