"""Hand-over of gradients to the buffers of their receivers, and of those to queues.

The fields of nodes read here are constant; the fields of the pass changed here are
guarded by the GraphTask's mutex, unless the pass is private.
"""

from collections.abc import Sequence
from typing import Final

from gradviz.backends.current_streams import on_stream
from gradviz.engine.graph.input_buffer import InputBuffer, Ready, StreamBuffer, add
from gradviz.engine.graph.node import Edge, Node
from gradviz.engine.graph.protocols import Gradient, name_of, size_bytes
from gradviz.engine.tasks.graph_task import GraphTask
from gradviz.engine.threads.worker import Worker
from gradviz.trace.node_reports import NodeReports
from gradviz.trace.probe import How

# when compiled: found
_FIRST: Final = How.FIRST
_UNDEFINED: Final = How.UNDEFINED


def hand_on(
    worker: Worker,
    graph_task: GraphTask,
    reports: NodeReports | None,
    node: Node,
    outputs: Sequence[Gradient],
    num_bytes: int,
) -> None:
    """Put each output into the buffer of its receiver, and push ready receivers.

    It goes edge by edge in order, so that receivers of equal priority enter their queue
    in PyTorch's order. Then the node is done, which is reported: in a single report if
    the node's only gradient makes its receiver ready, as for most nodes.

    Args:
        worker: The calling thread, which has run the node.
        graph_task: The pass.
        reports: The node reporter, None for none.
        node: The node that made the gradients.
        outputs: One for each of its edges; empty if it has none.
        num_bytes: Bytes of the gradients that the node received, now released.

    Raises:
        RuntimeError: An edge leads to a node that is not part of this pass.

    Source: torch/csrc/autograd/engine.cpp, Engine::evaluate_function (E8-E10).
    """
    worker.has_count = True
    dependencies, goes_short = graph_task.dependencies, graph_task.goes_short
    edges = node.next_edges
    in_one = (
        reports is not None
        and len(edges) == 1
        and outputs[0] is not None
        and _goes_short(graph_task, edges[0])
    )
    if reports is not None and not in_one:
        reports.buffer_freed(graph_task.id, node.id, num_bytes)
    index = -1
    for edge in edges:
        index += 1  # when compiled: index
        receiver, gradient = edge.node, outputs[index]
        if receiver is None:
            continue
        if not in_one and not (  # `_goes_short`, without the cost of a call
            goes_short
            and dependencies.get(receiver) == 1
            and receiver not in graph_task.not_ready
        ):
            _arrive_or_add(worker, graph_task, reports, node, edge, gradient)
            continue
        dependencies[receiver] = 0
        inputs = [gradient]
        if (num_inputs := len(receiver.input_metadata)) != 1:
            inputs = [None] * num_inputs
            inputs[edge.input_nr] = gradient
        worker.push_own(graph_task, receiver, inputs)
        if reports is not None:
            freed_bytes = num_bytes if in_one else None
            _report_ready(
                worker, graph_task, reports, node, edge, gradient, freed_bytes
            )
    if reports is not None and not in_one:
        reports.node_completed(graph_task.id, node.id)


def _goes_short(graph_task: GraphTask, edge: Edge) -> bool:
    """Return whether the receiver of `edge` waits for its gradient alone.

    And whether the pass allows it; see Note [The short way through a node].
    """
    receiver = edge.node
    return (
        graph_task.goes_short
        and receiver is not None
        and graph_task.dependencies.get(receiver) == 1
        and receiver not in graph_task.not_ready
    )


def _arrive_or_add(
    worker: Worker,
    graph_task: GraphTask,
    reports: NodeReports | None,
    producer: Node,
    edge: Edge,
    gradient: Gradient,
) -> None:
    """Deliver a gradient, adding the gradients already in its slot.

    Note [Adding outside the lock]
    ~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~
    Two gradients for one slot are added with a ``+`` that may be user code and may take
    long, so it must not run under the mutex, unlike in PyTorch. A thread that finds the
    slot taken removes that gradient, adds the two outside, and tries again; if a third
    thread has meanwhile filled the slot, that gradient is added as well. An edge counts
    as arrived only when its gradient stays in the buffer. Until then at least one edge
    is missing, so the receiver cannot run while a thread is still adding.

    Backends are called like user code: without the mutex.
    """
    receiver, streams = edge.node, graph_task.streams
    assert receiver is not None
    ready: Ready | None = None
    if streams is not None and graph_task.should_execute(receiver):
        worker.in_user_code = True
        ready = streams.handed_on(producer, receiver, gradient)
        worker.in_user_code = False
    how = _FIRST
    while taken := arrive(
        worker, graph_task, reports, producer, edge, gradient, how, ready
    ):
        worker.in_user_code = True
        how, ready = _added(graph_task, producer, edge, taken, gradient, ready)
        worker.in_user_code = False
        gradient = taken.pop()


def arrive(
    worker: Worker,
    graph_task: GraphTask,
    reports: NodeReports | None,
    producer: Node,
    edge: Edge,
    gradient: Gradient,
    how: How,
    ready: Ready | None = None,
) -> InputBuffer | None:
    """Fill a free slot with a gradient, count its edge, and push a ready receiver.

    Takes the GraphTask's mutex, unless the pass is private.

    Args:
        worker: The calling thread.
        graph_task: The pass.
        reports: The node reporter, None for none.
        producer: The node that made the gradient.
        edge: The edge it travels.
        gradient: The gradient, None if undefined.
        how: Way in which it arrives, as a sum or not, for a listener.
        ready: Stream state of the gradient, in a pass that uses streams.

    Returns:
        None if the gradient has arrived. Otherwise a list with the gradient that was
        in its slot, removed and held by nobody else: add the two, and try again.

    Raises:
        RuntimeError: The receiver is not part of this pass.
    """
    if graph_task.is_private:
        return _arrive(
            worker, graph_task, reports, producer, edge, gradient, how, ready
        )
    with graph_task.mutex:
        return _arrive(
            worker, graph_task, reports, producer, edge, gradient, how, ready
        )


def _arrive(
    worker: Worker,
    graph_task: GraphTask,
    reports: NodeReports | None,
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
    if reports is not None:
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
        worker.push(graph_task, reports, receiver, buffer, producer)
    return None


def _taken_out(buffer: InputBuffer, input_nr: int) -> InputBuffer:
    """Remove and return the gradient of a slot, and when it is ready."""
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
    """Add a gradient to the one in `taken`; return how, and when it is ready."""
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
    """Add `gradient` to the one in `taken`; an error names their nodes."""
    copies = graph_task.create_graph or not in_place
    try:
        return add(taken, 0, gradient, copies=copies)
    except Exception as error:
        error.add_note(
            f"while adding a gradient from {producer!r} to what has come for input "
            f"{edge.input_nr} of {edge.node!r}"
        )
        raise


def _report_ready(
    worker: Worker,
    graph_task: GraphTask,
    reports: NodeReports,
    producer: Node,
    edge: Edge,
    gradient: Gradient,
    freed_bytes: int | None,
) -> None:
    """Report that a sole gradient arrived and that its node was pushed.

    Args:
        worker: The calling thread.
        graph_task: The pass.
        reports: The node reporter.
        producer: The node that made the gradient.
        edge: The edge it traveled.
        gradient: The gradient.
        freed_bytes: Bytes of the gradients that `producer` received, if it is done
            now, which is reported as well; else None.
    """
    receiver, queue = edge.node, worker.ready_queue
    assert receiver is not None
    assert queue is not None
    if freed_bytes is not None:
        reports.node_passed_on(
            graph_task.id,
            producer.id,
            freed_bytes,
            receiver.id,
            edge.input_nr,
            size_bytes(gradient),
            queue.id,
            graph_task.reentrant_depth,
            receiver.sequence_nr,
            len(queue.seen),
            graph_task.outstanding_tasks,
        )
        return
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
