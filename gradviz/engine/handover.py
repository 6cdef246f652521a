"""Where a node's gradients go: into buffers of their receivers, and these to queues.

What is read of nodes is constant; what is changed of the pass is guarded by the
GraphTask's mutex, unless the pass is private.
"""

from collections.abc import Sequence
from typing import Final

from gradviz.backends.current_streams import on_stream
from gradviz.engine.graph_task import GraphTask
from gradviz.engine.input_buffer import InputBuffer, Ready, StreamBuffer, add
from gradviz.engine.node import Edge, Node
from gradviz.engine.protocols import Gradient, name_of, size_bytes
from gradviz.engine.worker import Worker
from gradviz.trace.probe import How

# Found once: to look a member up in its enum takes 80 ns before Python 3.12.
_FIRST: Final = How.FIRST
_UNDEFINED: Final = How.UNDEFINED


def hand_on(
    worker: Worker,
    graph_task: GraphTask,
    node: Node,
    outputs: Sequence[Gradient],
    num_bytes: int,
) -> None:
    """Put each output into the buffer of its receiver, and push who is ready.

    Edge by edge in their order, so that receivers of equal priority enter their queue
    in PyTorch's order. Then the node is done, which a listener is told.

    Args:
        worker: The calling thread, which has run the node.
        graph_task: The pass.
        node: Whose gradients they are.
        outputs: One for each of its edges; empty if it has none.
        num_bytes: How many the gradients had that the node was given, which are gone.

    Raises:
        RuntimeError: An edge leads to a node that this pass does not know.

    Source: torch/csrc/autograd/engine.cpp, Engine::evaluate_function (E8-E10).
    """
    worker.has_count = True
    dependencies, goes_short = graph_task.dependencies, graph_task.goes_short
    reports = None if graph_task.probe is None else worker.reports(graph_task)
    in_one = reports is not None and _has_one_to_hand_on(node, outputs)
    if reports is not None and not in_one:
        reports.buffer_freed(graph_task.id, node.id, num_bytes)
    index = -1
    for edge in node.next_edges:
        index += 1
        receiver = edge.node
        if receiver is None:
            continue
        gradient = outputs[index]
        # See Note [The short way through a node].
        if (
            goes_short
            and dependencies.get(receiver) == 1
            and receiver not in graph_task.not_ready
        ):
            dependencies[receiver] = 0
            inputs = [gradient]
            if (num_inputs := len(receiver.input_metadata)) != 1:
                inputs = [None] * num_inputs
                inputs[edge.input_nr] = gradient
            worker.push_own(graph_task, receiver, inputs)
            if in_one:
                _report_passed_on(worker, graph_task, node, edge, gradient, num_bytes)
                return
            if reports is not None:
                _report_ready(worker, graph_task, node, edge, gradient)
            continue
        if in_one:
            reports.buffer_freed(graph_task.id, node.id, num_bytes)  # type: ignore[union-attr]
        _arrive_or_add(worker, graph_task, node, edge, gradient)
    if reports is not None:
        reports.node_completed(graph_task.id, node.id)


def _arrive_or_add(
    worker: Worker,
    graph_task: GraphTask,
    producer: Node,
    edge: Edge,
    gradient: Gradient,
) -> None:
    """Have a gradient arrive, with what is in its place already added to it.

    Note [Adding outside the lock]
    ~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~
    Two gradients for one place are added with a ``+`` that may be anybody's code and
    may take long: nothing to do under the mutex, as PyTorch does it. So whoever finds
    the place taken takes that gradient out, adds the two outside, and tries again; a
    third thread may meanwhile have put its own there, and then that is added as well.
    An edge counts as arrived only when its gradient stays in the buffer. Until then at
    least one edge is missing, so the receiver cannot run while anyone still adds.

    Backends are called as other people's code is: without the mutex.
    """
    receiver, streams = edge.node, graph_task.streams
    assert receiver is not None
    ready: Ready | None = None
    if streams is not None and graph_task.should_execute(receiver):
        worker.in_user_code = True
        ready = streams.handed_on(producer, receiver, gradient)
        worker.in_user_code = False
    how = _FIRST
    while taken := arrive(worker, graph_task, producer, edge, gradient, how, ready):
        worker.in_user_code = True
        how, ready = _added(graph_task, producer, edge, taken, gradient, ready)
        worker.in_user_code = False
        gradient = taken.pop()


def arrive(
    worker: Worker,
    graph_task: GraphTask,
    producer: Node,
    edge: Edge,
    gradient: Gradient,
    how: How,
    ready: Ready | None = None,
) -> InputBuffer | None:
    """Put a gradient into its place, if that is free, count its edge, push the last's.

    Takes the GraphTask's mutex, unless the pass is private.

    Args:
        worker: The calling thread.
        graph_task: The pass.
        producer: Whose gradient it is.
        edge: Where it goes.
        gradient: What arrives, None for an undefined gradient.
        how: Whether it is a sum, for a listener.
        ready: When it is, in a pass that knows of streams.

    Returns:
        None if the gradient has arrived. Otherwise a list with the gradient that was
        in its place, taken out and held by nobody else: add the two, and try again.

    Raises:
        RuntimeError: This pass does not know the receiver.
    """
    if graph_task.is_private:
        return _arrive(worker, graph_task, producer, edge, gradient, how, ready)
    with graph_task.mutex:
        return _arrive(worker, graph_task, producer, edge, gradient, how, ready)


def _arrive(
    worker: Worker,
    graph_task: GraphTask,
    producer: Node,
    edge: Edge,
    gradient: Gradient,
    how: How,
    ready: Ready | None,
) -> InputBuffer | None:
    receiver, input_nr = edge.node, edge.input_nr
    assert receiver is not None
    not_ready = graph_task.not_ready
    remaining = graph_task.dependencies.get(receiver, 0) - 1
    if remaining < 0:
        raise RuntimeError(f"dependency not found for {name_of(receiver)}")
    if graph_task.exec_info and not graph_task.should_execute(receiver):
        graph_task.dependencies[receiver] = remaining
        return None
    buffer = not_ready.pop(receiver, None) if not_ready else None
    if buffer is None:
        buffer = [None] * len(receiver.input_metadata)
        if graph_task.streams is not None:
            buffer = StreamBuffer(buffer)
    elif gradient is not None and buffer[input_nr] is not None:
        not_ready[receiver] = buffer
        return _taken_out(buffer, input_nr)
    if gradient is not None:
        buffer[input_nr] = gradient
        if isinstance(buffer, StreamBuffer):
            buffer.ready[input_nr] = ready
    graph_task.dependencies[receiver] = remaining
    if graph_task.probe is not None:
        reports = worker.reports(graph_task)
        reports.gradient_buffered(
            graph_task.id,
            receiver.id,
            producer.id,
            input_nr,
            remaining,
            size_bytes(gradient),
            _UNDEFINED if gradient is None else how,
        )
    if remaining:
        not_ready[receiver] = buffer
    else:
        worker.push(graph_task, receiver, buffer, producer)
    return None


def _taken_out(buffer: InputBuffer, input_nr: int) -> InputBuffer:
    """The gradient of a place, and when it is ready; neither is left there."""
    taken = [buffer[input_nr]]
    buffer[input_nr] = None
    if isinstance(buffer, StreamBuffer):
        taken = StreamBuffer(taken)
        taken.ready[0] = buffer.ready[input_nr]
        buffer.ready[input_nr] = None
    return taken


def _added(
    graph_task: GraphTask,
    producer: Node,
    edge: Edge,
    taken: InputBuffer,
    gradient: Gradient,
    ready: Ready | None,
) -> tuple[How, Ready | None]:
    """Add a gradient to the one in `taken`; how that was done, and when it is ready."""
    streams = graph_task.streams
    earlier = taken.ready[0] if isinstance(taken, StreamBuffer) else None
    if streams is None or earlier is None or ready is None:  # nobody has to wait
        return _add_up(graph_task, producer, edge, taken, gradient), ready
    assert edge.node is not None
    plan = streams.prepare_sum(edge.node, taken, earlier, gradient, ready)
    with on_stream(plan.stream):
        in_place = streams.may_overwrite(earlier)
        how = _add_up(graph_task, producer, edge, taken, gradient, in_place=in_place)
    return how, streams.summed(plan, producer)


def _add_up(
    graph_task: GraphTask,
    producer: Node,
    edge: Edge,
    taken: InputBuffer,
    gradient: Gradient,
    *,
    in_place: bool = True,
) -> How:
    """Add `gradient` to the one in `taken`; an error says whose they were."""
    copies = graph_task.create_graph or not in_place
    try:
        return add(taken, 0, gradient, copies=copies)
    except Exception as error:
        error.add_note(
            f"while adding a gradient from {producer!r} to what has come for input "
            f"{edge.input_nr} of {edge.node!r}"
        )
        raise


def _has_one_to_hand_on(node: Node, outputs: Sequence[Gradient]) -> bool:
    """Whether a node has one edge and a gradient for it, as most have."""
    if len(node.next_edges) != 1:
        return False
    edge = node.next_edges[0]
    return edge.node is not None and outputs[0] is not None


def _report_passed_on(
    worker: Worker,
    graph_task: GraphTask,
    producer: Node,
    edge: Edge,
    gradient: Gradient,
    num_bytes: int,
) -> None:
    """Tell all that there is to a node whose only gradient has made another ready."""
    receiver, queue = edge.node, worker.ready_queue
    assert receiver is not None
    assert queue is not None
    reports = worker.reports(graph_task)
    reports.node_passed_on(
        graph_task.id,
        producer.id,
        num_bytes,
        receiver.id,
        edge.input_nr,
        size_bytes(gradient),
        queue.id,
        graph_task.reentrant_depth,
        receiver.sequence_nr,
        len(queue.seen),
        graph_task.outstanding_tasks,
    )


def _report_ready(
    worker: Worker,
    graph_task: GraphTask,
    producer: Node,
    edge: Edge,
    gradient: Gradient,
) -> None:
    """Tell that a gradient has come, as the only one, and that its node was pushed."""
    receiver, queue = edge.node, worker.ready_queue
    assert receiver is not None
    assert queue is not None
    reports = worker.reports(graph_task)
    reports.node_readied(
        graph_task.id,
        receiver.id,
        producer.id,
        edge.input_nr,
        size_bytes(gradient),
        _UNDEFINED if gradient is None else _FIRST,
        queue.id,
        graph_task.reentrant_depth,
        receiver.sequence_nr,
        len(queue.seen),
        graph_task.outstanding_tasks,
    )
