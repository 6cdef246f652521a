"""Access to the pass under way, from its nodes and hooks.

Everything here concerns the shared engine and the calling thread.
"""

from collections.abc import Callable, Mapping

from gradviz.engine import default_engine
from gradviz.engine.graph.node import Node
from gradviz.engine.prediction import Position
from gradviz.engine.tasks.graph_task import ExecInfo, GraphTask


def queue_callback(callback: Callable[[], object]) -> None:
    """Run `callback` after the current pass has run its last node (C20).

    Raises:
        RuntimeError: No backward is under way on this thread.
    """
    default_engine().queue_callback(callback)


def current_graph_task_id() -> int:
    """Return the number of this thread's running pass, -1 outside (K2, G8)."""
    graph_task = default_engine().current_graph_task
    return -1 if graph_task is None else graph_task.id


def current_graph_task_keep_graph() -> bool:
    """Return whether that pass keeps its graph; True outside (K2)."""
    graph_task = default_engine().current_graph_task
    return True if graph_task is None else graph_task.keep_graph


def current_graph_task_exec_info() -> Mapping[Node, ExecInfo] | None:
    """Return that pass's needs of its nodes; empty if all, None outside (K2)."""
    graph_task = default_engine().current_graph_task
    return None if graph_task is None else graph_task.exec_info


def current_graph_task_nodes() -> frozenset[Node] | None:
    """Return the nodes it can reach, without its first; None outside (K2)."""
    graph_task = default_engine().current_graph_task
    return None if graph_task is None else frozenset(graph_task.dependencies)


def current_graph_task_execution_order() -> tuple[Position, ...]:
    """Return the order in which that pass runs its nodes, with reasons (K4).

    Raises:
        RuntimeError: No backward is under way on this thread.
    """
    return default_engine().current_execution_order()


def add_node_to_current_graph_task(node: Node) -> None:
    """Make the current, restricted pass run `node` when it comes to it (K2).

    It has no effect later than that, nor on a pass that runs everything.

    Raises:
        RuntimeError: No backward is under way on this thread.
    """
    graph_task = _current("add_node_to_current_graph_task")
    if graph_task.exec_info:
        graph_task.exec_info.setdefault(node, ExecInfo()).is_needed = True


def will_execute_node(node: Node) -> bool:
    """Return whether the current pass will run `node`, or has (K3).

    Raises:
        RuntimeError: No backward is under way on this thread; or `node` is a leaf
            whose gradient ``grad`` returns, for which neither answer would be right.

    Source: torch/csrc/autograd/python_engine / torch._C._will_engine_execute_node.
    """
    if not isinstance(node, Node):
        raise RuntimeError(
            f"_will_engine_execute_node expects an grad_fn, but got "
            f"{type(node).__name__}"
        )
    graph_task = _current("_get_should_execute_nodes")
    if node not in graph_task.dependencies and node not in {
        root for root, _ in graph_task.roots
    }:
        return False
    if not graph_task.exec_info:
        return True
    info = graph_task.exec_info.get(node)
    if info is None or not info.should_execute:
        return False
    if node.topological_nr == 0 and info.captures:
        raise RuntimeError(
            "A leaf node was passed to _will_engine_execute_node but we are currently "
            "running autograd.grad(). This is currently not supported."
        )
    return True


def _current(function: str) -> GraphTask:
    graph_task = default_engine().current_graph_task
    if graph_task is None:
        raise RuntimeError(f"{function} should only be called during the backward pass")
    return graph_task
