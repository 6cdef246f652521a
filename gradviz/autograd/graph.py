"""``torch.autograd.graph``: the graph, its nodes, and what is saved in it.

Under PyTorch's names are what PyTorch has here; `queue_callback`, `node_creation_hook`
and the questions about the current pass are private there.
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
from gradviz.engine import node as engine_node
from gradviz.engine import stream_mismatch
from gradviz.ops.recording import creation_hooks
from gradviz.ops.recording.variable import Variable
from gradviz.ops.recording.version import INFERENCE
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
    """What every ``grad_fn`` is an instance of.

    Not to be subclassed: nodes for the engine are subclasses of `gradviz.engine.Node`.
    """


Node.register(engine_node.Node)


def increment_version(tensor: Variable | Iterable[Variable]) -> None:
    """Say that tensors were changed in place by other means than gradviz's.

    Whatever was saved of them before will be refused by a backward.

    Args:
        tensor: One or several; those made in inference mode count no changes.
    """
    for one in (tensor,) if isinstance(tensor, Variable) else tensor:
        if (version := one.shared_version()) is not INFERENCE:
            version.value += 1


def set_warn_on_accumulate_grad_stream_mismatch(enabled: bool) -> None:
    """Whether to warn, once, of a leaf that works on another stream (C4).

    Args:
        enabled: The default is True. Being enabled again it warns once more.
    """
    stream_mismatch.set_enabled(enabled)


@contextlib.contextmanager
def node_creation_hook(hook: Callable[[engine_node.Node], None]) -> Iterator[None]:
    """Call `hook` with each node that an op makes in the block (C19).

    Once a node, when its tensors have been saved; of nested hooks the outer one first.
    The threads of a backward inherit the hooks of the thread that called it.

    Raises:
        RuntimeError: The hook returned something, or ran an op that would make a node.
    """
    with creation_hooks.telling(hook):
        yield
