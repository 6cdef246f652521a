"""The order of a pass with its reasons, predicted without running it."""

from collections.abc import Callable, Iterator, Sequence
from typing import NamedTuple

from gradviz.backends.device import CPU
from gradviz.engine.graph.node import MAX_SEQUENCE_NR, Edge, Node, begin
from gradviz.engine.tasks.discovery import (
    compute_dependencies,
    compute_exec_info,
    min_topological_nr,
)
from gradviz.engine.tasks.graph_task import ExecInfo
from gradviz.ready_order import PyTorchSchedule, Schedule, in_order


class Position(NamedTuple):
    """One node's place in the predicted order.

    Attributes:
        node: The node.
        reason: Reason that it runs here and not later.
    """

    node: Node
    reason: str


def predicted_order(
    roots: Sequence[Edge | tuple[Node, int]],
    *,
    outputs: Sequence[Edge | tuple[Node, int]] = (),
    accumulate_grad: bool = True,
    schedule: Callable[[], Schedule] = PyTorchSchedule,
) -> tuple[Position, ...]:
    """Return the order in which a pass would run its nodes on one thread.

    This is the real order wherever one queue decides it: on the CPU, on one device, or
    with multithreading disabled. For several devices it is the order of each, as far as
    the others do not delay it. Nodes of a reentrant backward are not known until it
    runs; because they share the queue with the outer pass, they may change the order
    among equals (leaves) in both.

    Args:
        roots: The roots, as for `Engine.execute`.
        outputs: The outputs that restrict it, as for `Engine.execute`.
        accumulate_grad: True if leaves get their gradients, as for `Engine.execute`.
        schedule: Makes the policy.

    Returns:
        The nodes that would be run or captured, without the GraphRoot of a pass with
        several roots.

    Source: torch/csrc/autograd/engine.cpp, get_current_graph_task_execution_order.
    Differs: counts dependencies from the graph and not from the running pass, so it
    works at any time (C2).
    """
    targets = [Edge(*edge) for edge in outputs]
    root = _root(roots)
    smallest = min_topological_nr(targets)
    waiting = compute_dependencies(root, smallest).counts
    infos: dict[Node, ExecInfo] = {}
    if targets:
        infos = compute_exec_info(
            root,
            targets,
            accumulate_grad=accumulate_grad,
            min_topological_nr=smallest,
        )
    queue = schedule()
    order = _simulate(root, waiting, infos, queue)
    return tuple(
        Position(node, _reason(node, queue))
        for node in order
        if not isinstance(node, _Roots)
    )


def nodes_in_predicted_order(
    roots: Sequence[Edge | tuple[Node, int]],
) -> tuple[Node, ...]:
    """Return the nodes of `predicted_order` without the costly reasons."""
    root = _root(roots)
    waiting = compute_dependencies(root, 0).counts
    order = _simulate(root, waiting, {}, PyTorchSchedule())
    return tuple(node for node in order if not isinstance(node, _Roots))


def _root(roots: Sequence[Edge | tuple[Node, int]]) -> Node:
    """Return the first node of a pass from these edges."""
    starts = [Edge(*edge) for edge in roots]
    only = starts[0].node if len(starts) == 1 else None
    return _Roots(starts) if only is None else only


def _simulate(
    root: Node, waiting: dict[Node, int], infos: dict[Node, ExecInfo], queue: Schedule
) -> Iterator[Node]:
    """Run the queue with only names in it."""

    def receivers(node: Node) -> Iterator[Node]:
        if infos and not infos[node].is_needed:
            return
        for edge in node.next_edges:
            receiver = edge.node
            info = infos.get(receiver) if receiver else None
            if receiver and (not infos or (info and info.should_execute)):
                yield receiver

    return in_order(root, waiting, receivers, lambda node: node.sequence_nr, queue)


def _reason(node: Node, others: Schedule) -> str:
    """Say why `node` runs before the other ready nodes; see Q2-Q4."""
    if not len(others):
        return "nothing else is ready"
    priorities = [other.priority for other in others]
    num_equal = priorities.count(node.sequence_nr)
    if node.sequence_nr == MAX_SEQUENCE_NR:
        why = "leaves come before all other nodes"
    elif all(priority <= node.sequence_nr for priority in priorities):
        why = f"of {len(priorities) + 1} ready it was made last in the forward pass"
    else:
        why = f"the policy chose it out of {len(priorities) + 1}"
    if num_equal:
        why += f"; {num_equal} equal to it follow in the order of the heap"
    return why


class _Roots(Node):
    """Stands for the start of a pass; never executed."""

    def __init__(self, roots: Sequence[Edge]) -> None:
        # Not numbered like a node of the program: a prediction changes nothing.
        begin(self, tuple(roots), (), CPU, 0)
