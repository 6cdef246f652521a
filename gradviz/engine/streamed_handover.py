"""Handing gradients on in a pass that has streams: whoever adds them waits for both."""

from gradviz.backends.current_streams import on_stream
from gradviz.engine.arrival import add_up, arrive, arrive_under_mutex
from gradviz.engine.device_queues import DeviceQueues
from gradviz.engine.graph_task import GraphTask
from gradviz.engine.input_buffer import Ready, StreamBuffer
from gradviz.engine.node import Edge, Node
from gradviz.engine.pass_streams import PassStreams
from gradviz.engine.protocols import Gradient
from gradviz.engine.thread_state import ThreadState
from gradviz.trace.probe import How


def hand_on_with_streams(
    state: ThreadState,
    queues: DeviceQueues,
    graph_task: GraphTask,
    streams: PassStreams,
    producer: Node,
    edge: Edge,
    gradient: Gradient,
) -> None:
    """As `hand_on` does with one gradient, in a pass that knows of streams.

    Backends are called as other people's code is: without the mutex.
    """
    receiver, input_nr = edge
    assert receiver is not None
    how = How.FIRST
    if not graph_task.should_execute(receiver):  # nothing is put anywhere
        arrive_under_mutex(
            state, queues, graph_task, producer, receiver, input_nr, gradient, how
        )
        return
    state.in_user_code = True
    ready = streams.handed_on(producer, receiver, gradient)
    state.in_user_code = False
    while taken := _arrive_when_ready(
        state, queues, graph_task, producer, edge, gradient, how, ready
    ):
        state.in_user_code = True
        earlier = taken.ready[0]
        if earlier is None or ready is None:  # nobody has to wait
            how = add_up(graph_task, producer, receiver, input_nr, taken, gradient)
        else:
            plan = streams.prepare_sum(receiver, taken, earlier, gradient, ready)
            with on_stream(plan.stream):
                how = add_up(
                    graph_task,
                    producer,
                    receiver,
                    input_nr,
                    taken,
                    gradient,
                    in_place=streams.may_overwrite(earlier),
                )
            ready = streams.summed(plan, producer)
        state.in_user_code = False
        gradient = taken.pop()


def _arrive_when_ready(
    state: ThreadState,
    queues: DeviceQueues,
    graph_task: GraphTask,
    producer: Node,
    edge: Edge,
    gradient: Gradient,
    how: How,
    ready: Ready | None,
) -> StreamBuffer | None:
    """As `arrive_under_mutex`, with when the gradient is ready; takes the mutex."""
    receiver, input_nr = edge
    assert receiver is not None
    with graph_task.mutex:
        buffer = graph_task.not_ready.get(receiver)
        if not isinstance(buffer, StreamBuffer):
            buffer = StreamBuffer([None] * len(receiver.input_metadata))
            graph_task.not_ready[receiver] = buffer
        earlier = buffer.ready[input_nr]
        if gradient is not None:
            buffer.ready[input_nr] = ready  # before the buffer may be pushed
        taken = arrive(
            state, queues, graph_task, producer, receiver, input_nr, gradient, how
        )
        if taken is None:
            return None
        buffer.ready[input_nr] = None
        taken_out = StreamBuffer(taken)
        taken_out.ready[0] = earlier
        return taken_out
