"""Preparation of a distributed pass on one worker: its nodes, and which of them run.

Pure functions of the graph, like those of `gradviz.engine.tasks.discovery`.
"""

from collections.abc import Callable, Sequence

import numpy as np

from gradviz.distributed.backward.context import DistAutogradContext
from gradviz.distributed.backward.distributed_task import DistGraphTask
from gradviz.distributed.backward.functions import RecvRpcBackward, SendRpcBackward
from gradviz.engine.graph.basic_nodes import GraphRoot
from gradviz.engine.graph.input_buffer import InputBuffer
from gradviz.engine.graph.node import Edge, Node
from gradviz.engine.graph.protocols import Gradient, name_of
from gradviz.engine.graph.validation import validate_outputs
from gradviz.engine.tasks.discovery import (
    Dependencies,
    compute_dependencies,
    compute_exec_info,
)
from gradviz.engine.tasks.graph_task import Capture, ExecInfo
from gradviz.engine.threads.hook_calls import call_post_hooks, call_pre_hooks
from gradviz.ops.variables.variable import AccumulateGrad, Variable, gradient_edge


def validate_roots_and_retrieve_edges(
    roots: Sequence[object],
) -> tuple[list[Edge], list[Gradient]]:
    """Return the edges of a pass's roots, and the initial gradients (D2).

    Raises:
        RuntimeError: There are none; one needs no gradient, has more than one element,
            or is a leaf.
        TypeError: One is not a tensor.
    """
    if not roots:
        raise RuntimeError("No tensors provided for gradient computation.")
    edges: list[Edge] = []
    gradients: list[Gradient] = []
    for index, root in enumerate(roots):
        if not isinstance(root, Variable):
            raise TypeError(
                f"backward(): roots[{index}] is a {type(root).__name__}, expected "
                f"a tensor"
            )
        if not root.requires_grad:
            raise RuntimeError("requires_grad not set on root")
        if root.array.size != 1:
            raise RuntimeError(
                f"roots[{index}] is not a scalar, all roots need to be scalar"
            )
        if root.grad_fn is None:
            raise RuntimeError(
                f"roots[{index}] does not have a valid gradient function."
            )
        edges.append(gradient_edge(root))
        gradients.append(np.ones_like(root.array))
    return edges, list(validate_outputs(edges, gradients))


def prepare(
    graph_task: DistGraphTask, context: DistAutogradContext, begin: Node
) -> Dependencies:
    """Discover the nodes of a pass on this worker (D3, D4).

    It may begin at `begin`, and at everything that was sent in the context: each send
    counts as outstanding from now on, for gradients will come for all of them (D14).

    Args:
        graph_task: The pass, to be filled in.
        context: Context in which it runs.
        begin: The root of the pass; on other workers the send that was fed first.

    Returns:
        The result of the walk.

    Raises:
        RuntimeError: The graph ends in something that is not a leaf and came from no
            other worker.

    Source: torch/csrc/distributed/autograd/engine/dist_engine.cpp, computeDependencies.
    """
    sends = [one for one in context.send_functions().values() if one is not begin]
    starts: list[Node] = [begin, *sends]
    root = GraphRoot((), ())
    root.next_edges = tuple(map(Edge, starts))
    found = compute_dependencies(root, 0)
    del found.counts[begin]
    for send in sends:
        found.counts[send] = 0
    graph_task.dependencies = found.counts
    graph_task.outstanding_tasks = len(sends) + isinstance(begin, SendRpcBackward)
    leaves = [one for one in found.counts if not one.next_edges]
    for leaf in leaves:
        if not isinstance(leaf, (AccumulateGrad, RecvRpcBackward)):
            raise RuntimeError(
                f"a distributed backward ends in {name_of(leaf)}, which is neither a "
                f"leaf nor what came from another worker"
            )
    if not leaves:
        return found
    graph_task.exec_info = compute_exec_info(
        root, [*map(Edge, leaves)], accumulate_grad=False, min_topological_nr=0
    )
    graph_task.captured_gradients = [None] * len(leaves)
    for index, leaf in enumerate(leaves):
        info = graph_task.exec_info[leaf]
        info.captures.clear()
        if isinstance(leaf, AccumulateGrad):
            hook = accumulating(graph_task, context, leaf)
            info.captures.append(Capture(0, index, hook))
        else:  # it only looks like a leaf: it must run
            info.is_needed = True
    for start in starts:
        graph_task.exec_info.setdefault(start, ExecInfo()).is_needed = True
    return found


def accumulating(
    graph_task: DistGraphTask, context: DistAutogradContext, node: AccumulateGrad
) -> Callable[[InputBuffer, int], Gradient]:
    """Return the capture hook of a leaf: it adds to the context, not ``.grad`` (D5).

    The node's own hooks are called around that, even if no gradient came.

    Source: dist_engine.cpp, DistAccumulateGradCaptureHook.
    """

    def hook(gradients: InputBuffer, input_nr: int) -> Gradient:
        gradients = call_pre_hooks(graph_task, node, gradients)
        leaf = node.leaf
        if gradients[input_nr] is not None and leaf is not None:
            context.accumulate_gradient(leaf, gradients, input_nr)
        call_post_hooks(graph_task, node, (), tuple(gradients))
        # Nothing is captured: the context has it, and may add to it in place.

    return hook
