"""Where a node's gradients go: to their receivers, the way that is right for the pass.

What is read of nodes is constant; what is changed of the pass is guarded by the
GraphTask's mutex, unless the pass is private.
"""

from collections.abc import Sequence

from gradviz.engine.arrival import add_up, arrive, arrive_under_mutex
from gradviz.engine.device_queues import DeviceQueues
from gradviz.engine.graph_task import GraphTask, NodeTask
from gradviz.engine.node import Node
from gradviz.engine.protocols import Gradient, size_bytes
from gradviz.engine.streamed_handover import hand_on_with_streams
from gradviz.engine.thread_state import ThreadState
from gradviz.trace.probe import How, Probe


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
    put = arrive if graph_task.is_private else arrive_under_mutex
    goes_short = graph_task.is_private and not graph_task.exec_info
    dependencies, probe = graph_task.dependencies, graph_task.probe
    index = -1
    for receiver, input_nr in node.next_edges:
        index += 1
        if receiver is None:
            continue
        gradient = outputs[index]
        # See Note [The short way through a node].
        if (
            goes_short
            and dependencies.get(receiver) == 1
            and receiver not in graph_task.not_ready
        ):
            _push_next(state, graph_task, receiver, input_nr, gradient)
            if probe:
                _report_ready(
                    probe, state, graph_task, node, receiver, input_nr, gradient
                )
            continue
        if graph_task.streams is not None:
            hand_on_with_streams(
                state,
                queues,
                graph_task,
                graph_task.streams,
                node,
                node.next_edges[index],
                gradient,
            )
            continue
        how = How.FIRST
        while taken := put(
            state, queues, graph_task, node, receiver, input_nr, gradient, how
        ):
            state.in_user_code = True
            how = add_up(graph_task, node, receiver, input_nr, taken, gradient)
            state.in_user_code = False
            gradient = taken.pop()


def hand_on_and_report(
    probe: Probe,
    state: ThreadState,
    queues: DeviceQueues,
    graph_task: GraphTask,
    node: Node,
    outputs: Sequence[Gradient],
    num_bytes: int,
) -> None:
    """As `hand_on`, and report that and the completion of `node` to `probe`.

    The gradients that the node was given are gone by now; they had `num_bytes`.
    """
    state.has_count = True
    if outputs and len(node.next_edges) == 1 and graph_task.is_private:
        receiver, input_nr = node.next_edges[0]
        gradient = outputs[0]
        if (
            receiver is not None
            and gradient is not None
            and not graph_task.exec_info
            and graph_task.dependencies.get(receiver) == 1
            and receiver not in graph_task.not_ready
        ):
            _push_next(state, graph_task, receiver, input_nr, gradient)
            queue = graph_task.cpu_ready_queue
            reports = (state is graph_task.home and graph_task.home_reports) or probe
            reports.node_passed_on(
                graph_task.id,
                node.id,
                num_bytes,
                receiver.id,
                input_nr,
                size_bytes(gradient),
                queue.id,
                graph_task.reentrant_depth,
                receiver.sequence_nr,
                queue.num_seen(),
                graph_task.outstanding_tasks,
            )
            return
    probe.buffer_freed(graph_task.id, node.id, num_bytes)
    if outputs:
        hand_on(state, queues, graph_task, node, outputs)
    probe.node_completed(graph_task.id, node.id)


def _push_next(
    state: ThreadState,
    graph_task: GraphTask,
    receiver: Node,
    input_nr: int,
    gradient: Gradient,
) -> None:
    """Push a node of a private pass that waits for this gradient and no other.

    What `arrive` and `push` do for it, without looking for gradients that came
    before and for the queue of its device.
    """
    graph_task.dependencies[receiver] = 0
    inputs = [gradient]
    if (num_inputs := len(receiver.input_metadata)) != 1:
        inputs = [None] * num_inputs
        inputs[input_nr] = gradient
    if state.has_count:
        state.has_count = False  # see Note [Passing on a count]
    else:
        graph_task.outstanding_tasks += 1
    task = NodeTask.__new__(NodeTask)  # filled in here: 50 ns less than by a call
    task.graph_task = graph_task
    task.node = receiver
    task.inputs = inputs
    task.priority = graph_task.priority + receiver.sequence_nr
    graph_task.cpu_ready_queue.push_own(task)


def _report_ready(
    probe: Probe,
    state: ThreadState,
    graph_task: GraphTask,
    producer: Node,
    receiver: Node,
    input_nr: int,
    gradient: Gradient,
) -> None:
    queue = graph_task.cpu_ready_queue
    reports = (state is graph_task.home and graph_task.home_reports) or probe
    reports.node_readied(
        graph_task.id,
        receiver.id,
        producer.id,
        input_nr,
        size_bytes(gradient),
        How.UNDEFINED if gradient is None else How.FIRST,
        queue.id,
        graph_task.reentrant_depth,
        receiver.sequence_nr,
        queue.num_seen(),
        graph_task.outstanding_tasks,
    )
