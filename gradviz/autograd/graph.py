"""``torch.autograd.graph``: the graph, its nodes, and their saved tensors.

Names that PyTorch has here are PyTorch's; `queue_callback`, `node_creation_hook` and
the functions about the current pass are private there.
"""

import abc
import contextlib
from collections.abc import Callable, Iterable, Iterator

from gradviz.autograd.current_pass import (
    add_node_to_current_graph_task,
    current_graph_task_exec_info,
    current_graph_task_execution_order,
    current_graph_task_id,
    current_graph_task_keep_graph,
    current_graph_task_nodes,
    queue_callback,
    will_execute_node,
)
from gradviz.autograd.multi_grad_hook import register_multi_grad_hook
from gradviz.autograd.mutation import allow_mutation_on_saved_tensors
from gradviz.autograd.saved_tensors import (
    disable_saved_tensors_hooks,
    save_on_cpu,
    saved_tensors_hooks,
)
from gradviz.engine.graph import node as engine_node
from gradviz.engine.tasks import stream_mismatch
from gradviz.ops.dispatch import creation_hooks
from gradviz.ops.variables.variable import Variable
from gradviz.ops.variables.version import INFERENCE
from gradviz.tensors.gradient_edge import GradientEdge, get_gradient_edge

__all__ = [
    "GradientEdge",
    "Node",
    "add_node_to_current_graph_task",
    "allow_mutation_on_saved_tensors",
    "current_graph_task_exec_info",
    "current_graph_task_execution_order",
    "current_graph_task_id",
    "current_graph_task_keep_graph",
    "current_graph_task_nodes",
    "disable_saved_tensors_hooks",
    "get_gradient_edge",
    "increment_version",
    "node_creation_hook",
    "queue_callback",
    "register_multi_grad_hook",
    "save_on_cpu",
    "saved_tensors_hooks",
    "set_warn_on_accumulate_grad_stream_mismatch",
    "will_execute_node",
]


class Node(abc.ABC):  # noqa: B024 - for isinstance only
    """Base class of every ``grad_fn``, for `isinstance`.

    Not to be subclassed: nodes for the engine are subclasses of `gradviz.engine.Node`.
    """


Node.register(engine_node.Node)


def increment_version(tensor: Variable | Iterable[Variable]) -> None:
    """Count a change in place of tensors by other means than gradviz's.

    A backward will refuse values of them that were saved before.

    Args:
        tensor: One or several; those made in inference mode count no changes.
    """
    for one in (tensor,) if isinstance(tensor, Variable) else tensor:
        if (version := one.shared_version()) is not INFERENCE:
            version.value += 1


def set_warn_on_accumulate_grad_stream_mismatch(enabled: bool) -> None:
    """Set whether to warn, once, of a leaf that works on another stream (C4).

    Args:
        enabled: The default is True. Enabling it again allows one more warning.
    """
    stream_mismatch.set_enabled(enabled)


@contextlib.contextmanager
def node_creation_hook(hook: Callable[[engine_node.Node], None]) -> Iterator[None]:
    """Call `hook` with each node that an op makes in the block (C19).

    It is called once per node, after the node has saved its tensors; of nested hooks
    the outer one first. The threads of a backward inherit the hooks of the thread that
    called it.

    Raises:
        RuntimeError: The hook returned something, or ran an op that would make a node.
    """
    with creation_hooks.telling(hook):
        yield
