"""Making messages part of the graph: a send where they leave, a receive at their end.

Source: torch/csrc/distributed/autograd/utils.cpp (D12).
"""

from collections.abc import Sequence

from gradviz.distributed.backward.context import DistAutogradContext
from gradviz.distributed.backward.functions import (
    Propagate,
    RecvRpcBackward,
    SendRpcBackward,
)
from gradviz.engine.graph.grad_mode import GRAD_ENABLED
from gradviz.engine.graph.node import Edge
from gradviz.ops.variables.variable import Variable, gradient_edge, metadata_of


def need_gradients(tensors: Sequence[Variable]) -> bool:
    """Return whether a message with these tensors needs recording."""
    return GRAD_ENABLED.get() and any(one.requires_grad for one in tensors)


def add_send_rpc_backward(
    context: DistAutogradContext,
    tensors: Sequence[Variable],
    *,
    message_id: int,
    peer: int,
    function: str,
) -> SendRpcBackward:
    """Record that `tensors` are sent, of those that need gradients."""
    needing = [one for one in tensors if one.requires_grad]
    node = SendRpcBackward(
        [gradient_edge(one) for one in needing],
        [metadata_of(one.array) for one in needing],
        message_id=message_id,
        peer=peer,
        function=function,
    )
    context.add_send_function(message_id, node)
    return node


def add_recv_rpc_backward(
    tensors: Sequence[Variable],
    *,
    message_id: int,
    peer: int,
    propagate: Propagate,
) -> RecvRpcBackward | None:
    """Record that `tensors` have come: those that need gradients get them from here."""
    needing = [one for one in tensors if one.requires_grad]
    if not needing:
        return None
    node = RecvRpcBackward(
        [metadata_of(one.array) for one in needing],
        message_id=message_id,
        peer=peer,
        propagate=propagate,
    )
    for index, tensor in enumerate(needing):
        tensor.edge = Edge(node, index)
    return node
