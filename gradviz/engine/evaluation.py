"""Running one node: its inputs, its hooks, its checks, and handing on its gradients.

Everything here happens on the thread that popped the task. What it reads of the node
is constant; what it changes of the pass is guarded by the GraphTask's mutex.
"""

from collections.abc import Sequence

from gradviz.backends.device import CPU
from gradviz.engine import anomaly
from gradviz.engine.basic_nodes import AccumulateGrad
from gradviz.engine.device_queues import DeviceQueues
from gradviz.engine.graph_task import GraphTask, NodeTask
from gradviz.engine.hooks import call_post_hooks, call_pre_hooks, call_tensor_pre_hooks
from gradviz.engine.input_buffer import InputBuffer, add
from gradviz.engine.node import Node
from gradviz.engine.protocols import Gradient, size_bytes
from gradviz.engine.thread_state import ThreadState
from gradviz.engine.validation import validate_outputs
from gradviz.trace.probe import How, Push


def evaluate_function(
    state: ThreadState,
    queues: DeviceQueues,
    graph_task: GraphTask,
    node: Node,
    inputs: InputBuffer,
) -> None:
    """Run `node` and hand its gradients on.

    Args:
        state: The calling thread's.
        queues: Where nodes that become ready are pushed.
        graph_task: The pass.
        node: What to run.
        inputs: The only reference to its gradients; emptied once the node has run.

    Raises:
        BaseException: Whatever the node, a hook or a check raises.

    Source: torch/csrc/autograd/engine.cpp, Engine::evaluate_function (E1-E10).
    """
    if graph_task.exec_info and not _capture(graph_task, node, inputs):
        return
    probe = graph_task.probe
    num_bytes = sum(map(size_bytes, inputs)) if probe else 0
    outputs = call_function(graph_task, node, inputs)
    inputs.clear()
    if probe:
        probe.buffer_freed(graph_task.id, node.id, num_bytes)
    if not graph_task.keep_graph:
        node.release_variables()
    if anomaly.current is not None and anomaly.current.check_nan:
        anomaly.check_nan(node, outputs or ())
    if outputs:
        state.in_user_code = False
        state.has_count = True
        hand_on(state, queues, graph_task, node, outputs)


def _capture(graph_task: GraphTask, node: Node, inputs: InputBuffer) -> bool:
    """Take the captures of a restricted pass; see Note [Exec info].

    A node that will run has its hooks called then, so what is captured here is raw; one
    that will not run has its tensor hooks called here, so what is captured has gone
    through them (I5).

    Returns:
        Whether the node is to run.
    """
    info = graph_task.exec_info[node]
    captured = inputs
    if not info.is_needed:
        captured = call_tensor_pre_hooks(graph_task, node, inputs)
    for capture in info.captures:
        with graph_task.mutex:
            gradient = captured[capture.input_nr]
            graph_task.captured_gradients[capture.output_index] = gradient
            if graph_task.probe:
                graph_task.probe.capture_taken(
                    graph_task.id, node.id, capture.output_index
                )
    return info.is_needed


def call_function(
    graph_task: GraphTask, node: Node, inputs: InputBuffer
) -> Sequence[Gradient]:
    """Call the node between its hooks, and check what it returns.

    Source: torch/csrc/autograd/engine.cpp, call_function (E2).
    """
    if node.hooks is not None:
        inputs = call_tensor_pre_hooks(graph_task, node, inputs)
        inputs = call_pre_hooks(graph_task, node, inputs)
    # Post hooks see what the node was given; hooks that are registered while it runs
    # are called as well, and see nothing (C7).
    given: Sequence[Gradient] = ()
    if node.hooks is not None and node.hooks.post:
        given = tuple(inputs)
    if graph_task.probe and isinstance(node, AccumulateGrad):
        how = node.accumulate(inputs)
        graph_task.probe.gradient_accumulated(graph_task.id, node.id, how)
        outputs: Sequence[Gradient] = ()
    elif graph_task.exec_info:
        outputs = node.call_restricted(inputs, _wanted(graph_task, node))
    else:
        outputs = node(inputs)
    if outputs or node.next_edges:
        outputs = validate_outputs(node.next_edges, outputs, node)
    if node.hooks is not None and node.hooks.post:
        given = given or (None,) * node.num_inputs
        outputs = call_post_hooks(graph_task, node, outputs, given)
    return outputs


def _wanted(graph_task: GraphTask, node: Node) -> tuple[bool, ...]:
    """Which of a node's gradients go anywhere in a restricted pass (I8)."""
    return tuple(
        receiver is not None and graph_task.should_execute(receiver)
        for receiver, _ in node.next_edges
    )


def hand_on(
    state: ThreadState,
    queues: DeviceQueues,
    graph_task: GraphTask,
    node: Node,
    outputs: Sequence[Gradient],
) -> None:
    """Put each output into the buffer of its receiver, and push who is ready.

    Edge by edge in their order, so that receivers of equal priority enter their queue
    in PyTorch's order.

    Note [Adding outside the lock]
    ~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~
    Two gradients for one place are added with a ``+`` that may be anybody's code and
    may take long: nothing to do under the mutex, as PyTorch does it. So whoever finds
    the place taken takes that gradient out, adds the two outside, and tries again; a
    third thread may meanwhile have put its own there, and then that is added as well.
    An edge counts as arrived only when its gradient stays in the buffer. Until then at
    least one edge is missing, so the receiver cannot run while anyone still adds.

    Raises:
        RuntimeError: An edge leads to a node that this pass does not know.
    """
    arrive = _arrive if graph_task.is_private else _arrive_under_mutex
    index = -1
    for receiver, input_nr in node.next_edges:
        index += 1
        if receiver is None:
            continue
        gradient, how = outputs[index], How.FIRST
        while taken := arrive(
            state, queues, graph_task, node, receiver, input_nr, gradient, how
        ):
            state.in_user_code = True
            how = _sum(graph_task, node, receiver, input_nr, taken, gradient)
            state.in_user_code = False
            gradient = taken.pop()


def _sum(
    graph_task: GraphTask,
    producer: Node,
    receiver: Node,
    input_nr: int,
    taken: list[Gradient],
    gradient: Gradient,
) -> How:
    """Add `gradient` to the one in `taken`; an error says whose they were."""
    try:
        return add(taken, 0, gradient, copies=graph_task.create_graph)
    except Exception as error:
        error.add_note(
            f"while adding a gradient from {producer!r} to what has come for input "
            f"{input_nr} of {receiver!r}"
        )
        raise


def _arrive(
    state: ThreadState,
    queues: DeviceQueues,
    graph_task: GraphTask,
    producer: Node,
    receiver: Node,
    input_nr: int,
    gradient: Gradient,
    how: How,
) -> list[Gradient] | None:
    """Put a gradient into its place, if that is free, and count its edge.

    Called under the GraphTask's mutex, unless the pass is private.

    Returns:
        None if the gradient has arrived. Otherwise a list with the gradient that was
        in its place, taken out and held by nobody else: add the two, and try again.
    """
    not_ready = graph_task.not_ready
    remaining = graph_task.dependencies.get(receiver, 0) - 1
    if remaining < 0:
        raise RuntimeError(f"dependency not found for {receiver.name()}")
    if graph_task.exec_info and not graph_task.should_execute(receiver):
        graph_task.dependencies[receiver] = remaining
        return None
    buffer = not_ready.pop(receiver, None) if not_ready else None
    if buffer is None:
        buffer = [None] * len(receiver.input_metadata)
    elif gradient is not None and buffer[input_nr] is not None:
        not_ready[receiver] = buffer
        taken = [buffer[input_nr]]
        buffer[input_nr] = None
        return taken
    if gradient is not None:
        buffer[input_nr] = gradient
    graph_task.dependencies[receiver] = remaining
    if graph_task.probe:
        _report_arrival(graph_task, producer, receiver, input_nr, gradient, how)
    if remaining:
        not_ready[receiver] = buffer
    else:
        push(state, queues, graph_task, receiver, buffer, producer)
    return None


def _arrive_under_mutex(
    state: ThreadState,
    queues: DeviceQueues,
    graph_task: GraphTask,
    producer: Node,
    receiver: Node,
    input_nr: int,
    gradient: Gradient,
    how: How,
) -> list[Gradient] | None:
    with graph_task.mutex:
        return _arrive(
            state, queues, graph_task, producer, receiver, input_nr, gradient, how
        )


def _report_arrival(
    graph_task: GraphTask,
    producer: Node,
    receiver: Node,
    input_nr: int,
    gradient: Gradient,
    how: How,
) -> None:
    if graph_task.probe:
        graph_task.probe.gradient_buffered(
            graph_task.id,
            receiver.id,
            producer.id,
            input_nr,
            graph_task.dependencies[receiver],
            size_bytes(gradient),
            How.UNDEFINED if gradient is None else how,
        )


def push(
    state: ThreadState,
    queues: DeviceQueues,
    graph_task: GraphTask,
    node: Node,
    inputs: InputBuffer,
    producer: Node | None,
) -> None:
    """Push a node that has all its gradients to the queue of its device.

    Called under the GraphTask's mutex, unless the pass is private, by the thread of
    `state`.
    """
    queue = (
        graph_task.cpu_ready_queue
        if node.device is CPU
        else queues.queue_of(graph_task, node)
    )
    is_own = queue is state.ready_queue
    if is_own and state.has_count and producer is not None:
        state.has_count = False  # see Note [Passing on a count]
    else:
        graph_task.outstanding_tasks += 1
    if graph_task.probe:
        graph_task.probe.task_pushed(
            graph_task.id,
            node.id,
            queue.id,
            graph_task.reentrant_depth,
            node.sequence_nr,
            len(queue) + 1,
            graph_task.outstanding_tasks,
            -1 if producer is None else producer.id,
            Push.ROOT if producer is None else Push.NODE,
        )
    task = NodeTask(graph_task, node, inputs, graph_task.priority + node.sequence_nr)
    if is_own:
        queue.push_own(task)
    else:
        queue.push(task)
