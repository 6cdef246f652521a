"""Evaluation of one node: its captures, its hooks, its checks.

Everything here runs on the thread that popped the task.
`gradviz.engine.threads.handover` hands the node's gradients on.
"""

from collections.abc import Sequence

from gradviz.engine.graph import anomaly
from gradviz.engine.graph.anomaly import GRADIENT_CHECKS, SWITCHED_ON
from gradviz.engine.graph.basic_nodes import AccumulateGrad
from gradviz.engine.graph.input_buffer import InputBuffer
from gradviz.engine.graph.node import Node
from gradviz.engine.graph.protocols import Gradient, sum_of_sizes
from gradviz.engine.graph.validation import validate_outputs
from gradviz.engine.tasks.graph_task import GraphTask
from gradviz.engine.tasks.pass_streams import PassStreams
from gradviz.engine.threads.handover import hand_on
from gradviz.engine.threads.hook_calls import (
    call_post_accumulate_grad_hooks,
    call_post_hooks,
    call_pre_hooks,
    call_tensor_pre_hooks,
)
from gradviz.engine.threads.worker import Worker
from gradviz.trace.node_reports import NodeReports


def evaluate_on_stream(
    worker: Worker,
    graph_task: GraphTask,
    reports: NodeReports | None,
    streams: PassStreams,
    node: Node,
    inputs: InputBuffer,
) -> None:
    """Run `evaluate_function` with the node's stream current (E1).

    The arguments are those of `evaluate_function`, and the pass's streams.
    """
    with streams.current_for(node, is_home=worker is graph_task.home):
        streams.receive(node, inputs)
        evaluate_function(worker, graph_task, reports, node, inputs)
        worker.in_user_code = True  # this calls a backend, which may fail
        captured = _captured_at(graph_task, node)
        if captured or not node.next_edges:
            streams.leave(node, captured)
    worker.in_user_code = False


def evaluate_function(  # noqa: C901 - written out: every node goes through it
    worker: Worker,
    graph_task: GraphTask,
    reports: NodeReports | None,
    node: Node,
    inputs: InputBuffer,
) -> None:
    """Run `node` and hand its gradients on.

    Args:
        worker: The calling thread.
        graph_task: The pass.
        reports: The node reporter, None for none.
        node: The node to run.
        inputs: The only reference to its gradients; emptied once the node has run.

    Raises:
        BaseException: Any exception of the node, a hook or a check.

    Source: torch/csrc/autograd/engine.cpp, Engine::evaluate_function (E1-E10).

    Note [The short way through a node]
    ~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~
    PyTorch takes some 4 µs for a small node, of which NumPy needs 0.6 for the
    arithmetic. To be as fast in Python, a node without hooks in an unrestricted pass
    takes a short way: here past `call_function`, and in `hand_on` past the buffers, if
    its gradient is the only one that the receiver waits for. The long way has the same
    effect, with some ten more calls of 50 ns or more each.
    """
    if graph_task.exec_info and not _capture(graph_task, node, inputs):
        worker.in_user_code = False
        if reports is not None:
            reports.node_completed(graph_task.id, node.id)
        return
    num_bytes = 0 if reports is None else sum_of_sizes(inputs)
    hooks = node.hooks
    goes_short = (
        hooks is None
        and not graph_task.exec_info
        and (reports is None or not isinstance(node, AccumulateGrad))
    )
    if goes_short:
        outputs = node.call(inputs)
        if outputs or node.next_edges:
            outputs = validate_outputs(node.next_edges, outputs, node)
        if node.hooks is not hooks:  # some were registered while it ran
            outputs = _called_post_hooks(graph_task, node, outputs, ())
    else:
        outputs = call_function(graph_task, reports, node, inputs)
    if reports is not None and GRADIENT_CHECKS:
        for check in tuple(GRADIENT_CHECKS):
            check(graph_task.probe, graph_task.id, node, inputs, outputs or ())
    del inputs[:]  # like `clear`, without the attribute look-up
    if not graph_task.keep_graph:
        node.release_variables()
    if SWITCHED_ON and (mode := anomaly.current()) is not None and mode.check_nan:
        anomaly.check_nan(node, outputs or ())
    worker.in_user_code = False
    if outputs or reports is not None:
        hand_on(worker, graph_task, reports, node, outputs, num_bytes)


def _capture(graph_task: GraphTask, node: Node, inputs: InputBuffer) -> bool:
    """Capture the results of a restricted pass; see Note [Exec info].

    A node that will run has its hooks called then, so its gradients are captured raw.
    For a node that will not run, the tensor hooks are called here, and their results
    are captured (I5).

    Returns:
        True if the node is to run.
    """
    info = graph_task.exec_info[node]
    captured = inputs
    if not info.is_needed:
        captured = call_tensor_pre_hooks(graph_task, node, inputs)
    for capture in info.captures:
        if capture.hook is not None:  # user code: not under the mutex
            gradient = capture.hook(captured, capture.input_nr)
        else:
            gradient = captured[capture.input_nr]
        with graph_task.mutex:
            graph_task.captured_gradients[capture.output_index] = gradient
            if graph_task.probe:
                graph_task.probe.capture_taken(
                    graph_task.id, node.id, capture.output_index
                )
    return info.is_needed


def _captured_at(graph_task: GraphTask, node: Node) -> tuple[Gradient, ...]:
    """Return the results of the pass among the gradients of `node`."""
    info = graph_task.exec_info.get(node)
    if info is None:
        return ()
    # No mutex: this thread has just written there, and no other does.
    return tuple(
        graph_task.captured_gradients[one.output_index] for one in info.captures
    )


def call_function(
    graph_task: GraphTask,
    reports: NodeReports | None,
    node: Node,
    inputs: InputBuffer,
) -> Sequence[Gradient]:
    """Call the node between its hooks, and check what it returns.

    Source: torch/csrc/autograd/engine.cpp, call_function (E2).
    """
    if node.hooks is not None:
        inputs = call_tensor_pre_hooks(graph_task, node, inputs)
        inputs = call_pre_hooks(graph_task, node, inputs)
    # Post hooks see the node's inputs. Hooks registered while it runs are called as
    # well, and see nothing (C7).
    given: Sequence[Gradient] = ()
    if node.hooks is not None and node.hooks.post:
        given = tuple(inputs)
    if isinstance(node, AccumulateGrad):
        how = node.accumulate(inputs)
        if reports is not None:
            reports.gradient_accumulated(graph_task.id, node.id, how)
        if node.hooks is not None:
            call_post_accumulate_grad_hooks(graph_task, node)
        outputs: Sequence[Gradient] = ()
    elif graph_task.exec_info:
        outputs = node.call_restricted(inputs, _wanted(graph_task, node))
    else:
        outputs = node.call(inputs)
    if outputs or node.next_edges:
        outputs = validate_outputs(node.next_edges, outputs, node)
    return _called_post_hooks(graph_task, node, outputs, given)


def _called_post_hooks(
    graph_task: GraphTask,
    node: Node,
    outputs: Sequence[Gradient],
    given: Sequence[Gradient],
) -> Sequence[Gradient]:
    if node.hooks is None or not node.hooks.post:
        return outputs
    given = given or (None,) * node.num_inputs
    return call_post_hooks(graph_task, node, outputs, given)


def _wanted(graph_task: GraphTask, node: Node) -> tuple[bool, ...]:
    """Return which of a node's gradients a restricted pass uses (I8)."""
    return tuple(
        edge.node is not None and graph_task.should_execute(edge.node)
        for edge in node.next_edges
    )
