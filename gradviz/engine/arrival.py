"""A gradient arrives at a node: in its place, with what was there, and it is counted.

What is read of nodes is constant; what is changed of the pass is guarded by the
GraphTask's mutex, unless the pass is private.
"""

from gradviz.backends.device import CPU
from gradviz.engine.device_queues import DeviceQueues
from gradviz.engine.graph_task import GraphTask, NodeTask
from gradviz.engine.input_buffer import InputBuffer, add
from gradviz.engine.node import Node
from gradviz.engine.protocols import Gradient, name_of, size_bytes
from gradviz.engine.thread_state import ThreadState
from gradviz.trace.probe import How, Push


def arrive(
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

    Raises:
        RuntimeError: This pass does not know the receiver.
    """
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
    elif gradient is not None and buffer[input_nr] is not None:
        not_ready[receiver] = buffer
        taken = [buffer[input_nr]]
        buffer[input_nr] = None
        return taken
    if gradient is not None:
        buffer[input_nr] = gradient
    graph_task.dependencies[receiver] = remaining
    if graph_task.probe:
        graph_task.probe.gradient_buffered(
            graph_task.id,
            receiver.id,
            producer.id,
            input_nr,
            remaining,
            size_bytes(gradient),
            How.UNDEFINED if gradient is None else how,
        )
    if remaining:
        not_ready[receiver] = buffer
    else:
        push(state, queues, graph_task, receiver, buffer, producer)
    return None


def arrive_under_mutex(
    state: ThreadState,
    queues: DeviceQueues,
    graph_task: GraphTask,
    producer: Node,
    receiver: Node,
    input_nr: int,
    gradient: Gradient,
    how: How,
) -> list[Gradient] | None:
    """As `arrive`; takes the mutex."""
    with graph_task.mutex:
        return arrive(
            state, queues, graph_task, producer, receiver, input_nr, gradient, how
        )


def add_up(
    graph_task: GraphTask,
    producer: Node,
    receiver: Node,
    input_nr: int,
    taken: list[Gradient],
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
            f"{input_nr} of {receiver!r}"
        )
        raise


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
        if node.runs_on is CPU
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
