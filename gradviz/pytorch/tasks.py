"""Tasks of PyTorch's engine: how they must have come into queues, and out of them.

See the notes in `inference`.
"""

from typing import Final

from gradviz.pytorch.doubts import doubt
from gradviz.pytorch.queues import (
    ReadyNode,
    ReplayedPass,
    SeenEngine,
    SeenQueue,
    SeenThread,
    is_called,
)
from gradviz.pytorch.seen_node import SeenNode
from gradviz.pytorch.sheet import Sheet
from gradviz.trace.events import CaptureTaken, NodeCompleted, NodeStarted
from gradviz.trace.probe import How, Probe, Push

#: The processor time of a node, which nobody measures.
NO_TIME: Final = -1


def hand_on(
    engine: SeenEngine,
    replay: ReplayedPass,
    thread: SeenThread,
    sheet: Sheet,
    node: SeenNode,
    t_ns: int,
) -> None:
    """A node has ended: its gradients go to those after it, edge by edge."""
    about = replay.about
    needed, captures = about.needed, about.captures
    for edge in node.next_edges:
        after = edge.node
        if after is None:
            continue
        after.waiting -= 1
        if needed is not None and after not in needed and after not in captures:
            continue
        inputs, input_nr = after.input_metadata, edge.input_nr
        one = inputs[input_nr] if input_nr < len(inputs) else None
        sheet.buffered += (
            thread.tick(t_ns),
            about.task,
            after.id,
            node.id,
            input_nr,
            after.waiting,
            0 if one is None else one.size_bytes,
            How.UNKNOWN,
        )
        if after.waiting == 0 and after not in replay.ran:
            push(engine, replay, thread, sheet, after, t_ns, node.id, Push.NODE)


def push(
    engine: SeenEngine,
    replay: ReplayedPass,
    thread: SeenThread,
    sheet: Sheet,
    node: SeenNode,
    t_ns: int,
    producer: int,
    what: Push,
) -> ReadyNode:
    """A node is ready: it goes into the queue of its device, or that of its pass.

    Args:
        engine: Where the queues are.
        replay: The pass.
        thread: Which pushes it.
        sheet: What there is to tell of the pass on that thread.
        node: The node.
        t_ns: When.
        producer: The node that gave it its last gradient, -1 for none.
        what: Whether it is the root.
    """
    queue = replay.queue if node.runs_on == "cpu" else engine.device(node.runs_on)
    about = replay.about
    if queue.id not in replay.queues:
        replay.queues.add(queue.id)
        _name(queue, about.listener, thread)
    priority = replay.depth_part | node.sequence_nr
    task = ReadyNode(node, replay, queue, priority)
    queue.schedule.push(task)
    replay.outstanding += 1
    sheet.pushed += (
        thread.tick(t_ns),
        about.task,
        node.id,
        queue.id,
        about.depth,
        node.seen_nr,
        len(queue.schedule),
        replay.outstanding,
        producer,
        what,
    )
    return task


def take_unexpected(
    engine: SeenEngine,
    queue: SeenQueue,
    thread: SeenThread,
    name: str,
    seen_nr: int,
    t_ns: int,
) -> ReadyNode | None:
    """Find what began though it was not its turn, and say so; None if unknown."""
    first = queue.first()
    expected = "nothing" if first is None else first.node.text
    for task in queue.tasks():
        if is_called(task.node, name, seen_nr) and not task.of.is_closed:
            queue.remove(task)
            reason = f"it ran before {expected}"
            doubt(task.of, thread, task.node, t_ns, reason)
            return task
    # A thread that has called none belongs to the engine, and runs those of others.
    for replay in reversed(thread.passes or engine.open):
        graph = replay.about.graph
        for node in () if graph is None else graph.nodes:
            if is_called(node, name, seen_nr) and node not in replay.ran:
                reason = f"it ran before {expected}, and was not ready"
                doubt(replay, thread, node, t_ns, reason)
                sheet = replay.sheet(thread)
                task = push(engine, replay, thread, sheet, node, t_ns, -1, Push.NODE)
                task.queue.remove(task)
                return task
    if engine.open:
        reason = f"{name} ran, and is in no graph that is known"
        doubt(engine.open[-1], thread, None, t_ns, reason)
    return None


def take_captured(queue: SeenQueue, thread: SeenThread, t_ns: int) -> None:
    """Take out what runs nothing: see Note [What is not seen]."""
    while (task := queue.first()) is not None:
        replay, node = task.of, task.node
        if replay.is_closed:
            queue.schedule.pop()
            continue
        if not replay.runs_nothing(node):
            return
        queue.schedule.pop()
        sheet, number = replay.sheet(thread), replay.about.task
        popped = thread.tick(t_ns), number, node.id, queue.id, len(queue.schedule)
        sheet.popped += popped
        sheet.inferred(NodeStarted).extend((thread.tick(t_ns), number, node.id))
        for index in replay.about.captures.get(node, ()):
            captured = thread.tick(t_ns), number, node.id, index
            sheet.inferred(CaptureTaken).extend(captured)
        ended = thread.tick(t_ns), number, node.id, NO_TIME
        sheet.inferred(NodeCompleted).extend(ended)
        replay.outstanding -= 1
        replay.ran.add(node)


def _name(queue: SeenQueue, listener: Probe, thread: SeenThread) -> None:
    index = queue.device.rpartition(":")[2]
    if queue.device:
        name, device = queue.device, int(index) if index.isdigit() else 0
    else:
        name, device = f"CPU of {thread.name}", -1
    # Every view that has a queue says what it is called.
    listener.queue_defined(queue.id, f"{name} (inferred)", device)
