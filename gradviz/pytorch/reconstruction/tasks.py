"""Tasks of PyTorch's engine: how they must have come into queues, and out of them.

See the notes in `pass_events`.

Note [Hooks between functions]
~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~
PyTorch's profiler sees functions, and hooks run between them. Which hooks a node has is
known, and so is their order: see Note [Hooks that can be named] in `hook_plan`. What
lies between two functions of a thread is then the time of the hooks that run there,
with the little that the engine does besides. Of one hook it is the time; of several,
even of two nodes, only the last is reported to return: they have a time together.
Hooks before a function are reported with it, and to no end, if one of them ran a pass.
"""

from collections.abc import Sequence
from typing import Final

from gradviz.pytorch.nodes.seen_node import CPP_HOOK, PlannedHook, SeenNode
from gradviz.pytorch.reconstruction.inferred_rows import FlatRows, PassRows
from gradviz.pytorch.reconstruction.seen_queues import (
    ReadyNode,
    ReplayedPass,
    RunningNode,
    RunState,
    SeenEngine,
    SeenQueue,
    SeenThread,
    is_called,
)
from gradviz.pytorch.reconstruction.unexplained import report_unexplained
from gradviz.trace.events import (
    CaptureTaken,
    HookCalled,
    HookReturned,
    NodeCompleted,
    NodeStarted,
)
from gradviz.trace.probe import INFERRED_SUFFIX, How, Probe, Push

#: Number of values that say that a hook was called, and that one returned.
_CALL_WIDTH: Final = 9
_WIDTH: Final = 5

# Python looks a member of an enum up by a call before version 3.12.
_UNKNOWN: Final = How.UNKNOWN
_NODE: Final = Push.NODE

#: The processor time of a node, which nobody measures.
NO_TIME: Final = -1


def note_maker(task: ReadyNode, made_by: int) -> None:
    """Note which thread made a node that runs; see Note [Who made a node] in `places`.

    Args:
        task: The node's, of a pass.
        made_by: PyTorch's number of the thread, 0 if it is not known.
    """
    node = task.node
    if made_by and (node.made_by != made_by or node.placed_by != made_by):
        node.made_by = made_by
        if node.placed_by != made_by:
            task.of.misplaced.append(node)


def report_release(
    replay: ReplayedPass, thread: SeenThread, rows: PassRows, node: SeenNode, t_ns: int
) -> None:
    """A node has ended: a leaf's gradient is in ``.grad``, and its buffer is free."""
    about = replay.about
    if node.seen_nr < 0:
        how = about.adds if node in about.had_grad else How.UNKNOWN
        rows.accumulated += thread.tick(t_ns), about.task, node.id, how
    inputs = node.input_metadata
    if len(inputs) == 1:  # nearly always
        size_bytes = 0 if inputs[0] is None else inputs[0].size_bytes
    else:
        given = replay.given.pop(node, None) if inputs else None
        size_bytes = node.input_bytes() if given is None else sum(given.values())
    last_ns = thread.last_ns  # as `tick` has it, here and below
    thread.last_ns = last_ns = t_ns if t_ns > last_ns else last_ns + 1
    rows.freed += last_ns, about.task, node.id, size_bytes


def report_gradients(
    engine: SeenEngine,
    replay: ReplayedPass,
    thread: SeenThread,
    rows: PassRows,
    node: SeenNode,
    t_ns: int,
) -> None:
    """Report the gradients that an ended node gave, edge by edge."""
    about = replay.about
    task, needed, captures = about.task, about.needed, about.captures
    assert about.graph is not None
    waiting = about.graph.dependencies
    for edge in node.next_edges:
        after = edge.node
        if after is None:
            continue
        waiting[after] = remaining = waiting[after] - 1
        if needed is not None and after not in needed and after not in captures:
            continue
        inputs, input_nr = after.input_metadata, edge.input_nr
        one = inputs[input_nr] if input_nr < len(inputs) else None
        size_bytes = 0 if one is None else one.size_bytes
        if len(inputs) > 1:
            replay.given.setdefault(after, {})[input_nr] = size_bytes
        last_ns = thread.last_ns
        thread.last_ns = last_ns = t_ns if t_ns > last_ns else last_ns + 1
        rows.buffered += (
            last_ns,
            task,
            after.id,
            node.id,
            input_nr,
            remaining,
            size_bytes,
            _UNKNOWN,
        )
        if remaining == 0 and after not in replay.ran:
            push(engine, replay, thread, rows, after, t_ns, node.id, _NODE)


def push(
    engine: SeenEngine,
    replay: ReplayedPass,
    thread: SeenThread,
    rows: PassRows,
    node: SeenNode,
    t_ns: int,
    producer: int,
    what: Push,
) -> ReadyNode:
    """Put a node that is ready into the queue of its device, or that of its pass.

    Args:
        engine: Engine that has the queues.
        replay: The pass.
        thread: Thread that pushes it.
        rows: Of the pass on that thread.
        node: The node.
        t_ns: Time of the push.
        producer: The node that gave it its last gradient, -1 for none.
        what: Kind of the push: that of the root or of another node.
    """
    queue = replay.queue if node.runs_on == "cpu" else engine.device(node.runs_on)
    about = replay.about
    if queue.id not in replay.queues:
        replay.queues.add(queue.id)
        _name(queue, about.listener, thread)
    priority = replay.depth_part | node.sequence_nr
    last_ns = thread.last_ns
    # Other threads pop it after that.
    thread.last_ns = pushed_ns = t_ns if t_ns > last_ns else last_ns + 1
    task = ReadyNode(node, replay, queue, priority, pushed_ns)
    schedule = queue.schedule
    schedule.push(task)
    replay.outstanding += 1
    rows.pushed += (
        pushed_ns,
        about.task,
        node.id,
        queue.id,
        about.depth,
        node.seen_nr,
        len(schedule.heap),
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
    """Find the node that started out of turn, and report that; None if unknown."""
    first = queue.first()
    expected = "nothing" if first is None else first.node.text
    for task in queue.tasks():
        if is_called(task.node, name, seen_nr) and not task.of.is_closed:
            queue.remove(task)
            reason = f"it ran before {expected}"
            report_unexplained(task.of, thread, task.node, t_ns, reason)
            return task
    # A thread that has called none belongs to the engine, and runs those of others.
    for replay in reversed(thread.passes or engine.open):
        graph = replay.about.graph
        for node in () if graph is None else graph.nodes:
            if is_called(node, name, seen_nr) and node not in replay.ran:
                reason = f"it ran before {expected}, and was not ready"
                report_unexplained(replay, thread, node, t_ns, reason)
                rows = replay.rows_of(thread)
                task = push(engine, replay, thread, rows, node, t_ns, -1, Push.NODE)
                task.queue.remove(task)
                return task
    if engine.open:
        reason = f"{name} ran, and is in no graph that is known"
        report_unexplained(engine.open[-1], thread, None, t_ns, reason)
    return None


def take_captured(
    engine: SeenEngine, queue: SeenQueue, thread: SeenThread, t_ns: int
) -> None:
    """Pop the tasks that run nothing: see Note [What is not seen].

    One whose hooks run a pass stays with its thread until that has returned. What
    belongs to a pass around others waits until these have ended.
    """
    while (task := queue.first()) is not None:
        replay = task.of
        if replay.is_closed:
            queue.schedule.pop()
            continue
        if not replay.runs_nothing(task.node) or engine.is_around_others(replay):
            return
        queue.schedule.pop()
        report_popped(task, queue, thread, t_ns)
        if engine.inner.are_to_come(task):
            num_passes, state = len(thread.passes), RunState.HOOKS_BEFORE
            run = RunningNode(thread, task, queue, t_ns, num_passes, state)
            thread.running.append(run)
            return
        capture(task, thread, t_ns)


def capture(
    task: ReadyNode, thread: SeenThread, t_ns: int, *, is_timed: bool = True
) -> None:
    """Infer that the gradient of a node that runs nothing was taken.

    Args:
        task: The node's.
        thread: Thread that takes it.
        t_ns: Time at which it takes it.
        is_timed: True if nothing but its hooks ran since the thread's last event.
    """
    replay, node = task.of, task.node
    rows, number = replay.rows_of(thread), replay.about.task
    since_ns = max(thread.last_ns, task.pushed_ns + 1)
    if call_before(task, thread, min(since_ns, t_ns)):
        if is_timed:
            return_before(task, thread, t_ns)
    else:
        rows.inferred(NodeStarted).extend((thread.tick(t_ns), number, node.id))
    for index in replay.about.captures.get(node, ()):
        captured = thread.tick(t_ns), number, node.id, index
        rows.inferred(CaptureTaken).extend(captured)
    ended = thread.tick(t_ns), number, node.id, NO_TIME
    rows.inferred(NodeCompleted).extend(ended)
    replay.outstanding -= 1
    replay.ran.add(node)


def report_popped(
    task: ReadyNode, queue: SeenQueue, thread: SeenThread, t_ns: int
) -> None:
    """Report that a task was taken out of its queue."""
    replay = task.of
    waiting = len(queue.schedule.heap)
    row = thread.tick(t_ns), replay.about.task, task.node.id, queue.id, waiting
    replay.rows_of(thread).popped += row


def _name(queue: SeenQueue, listener: Probe, thread: SeenThread) -> None:
    index = queue.device.rpartition(":")[2]
    if queue.device:
        name, device = queue.device, int(index) if index.isdigit() else 0
    else:
        name, device = f"CPU of {thread.name}", -1
    # Every view that has a queue says what it is called.
    listener.queue_defined(queue.id, name + INFERRED_SUFFIX, device)


# --- hooks, see Note [Hooks between functions] ------------------------------------


def call_before(task: ReadyNode, thread: SeenThread, t_ns: int) -> bool:
    """Report that a node begins with its hooks before the function, if it has any.

    Returns:
        True if it has any.
    """
    hooks = task.of.about.hooks.get(task.node)
    if hooks is None or not hooks.before:
        return False
    rows = task.of.rows_of(thread)
    started = rows.started
    if task.of.runs_nothing(task.node):
        started = rows.inferred(NodeStarted)
    started += thread.tick(t_ns), task.of.about.task, task.node.id
    call_hooks(hooks.before, task, thread, t_ns)
    return True


def return_before(task: ReadyNode, thread: SeenThread, t_ns: int) -> None:
    """Report that these hooks are done."""
    _finish(task.of.about.hooks[task.node].before, task, thread, t_ns)


def call_inside(task: ReadyNode, thread: SeenThread, t_ns: int) -> None:
    """Report that the function of a node calls hooks, if it does."""
    hooks = task.of.about.hooks.get(task.node)
    if hooks is not None and hooks.inside:
        call_hooks(hooks.inside, task, thread, t_ns)


def return_inside(task: ReadyNode, thread: SeenThread, t_ns: int) -> None:
    """Report that these hooks are done."""
    hooks = task.of.about.hooks.get(task.node)
    if hooks is not None and hooks.inside:
        _finish(hooks.inside, task, thread, t_ns)


def hooks_after(task: ReadyNode) -> Sequence[PlannedHook]:
    """Return the hooks after the function of a node."""
    hooks = task.of.about.hooks.get(task.node)
    return () if hooks is None else hooks.after


def is_followed_by_callback(task: ReadyNode) -> bool:
    """Tell if the hooks of the last node of a pass let its end wait for collectives.

    The hook of data-parallel training queues a callback for the end of the pass, which
    waits for the all-reduces. Nobody sees it, and it is not a time of the hooks.
    """
    return any(hook.name.function == CPP_HOOK for hook in hooks_after(task))


def call_hooks(
    hooks: Sequence[PlannedHook], task: ReadyNode, thread: SeenThread, t_ns: int
) -> None:
    """Report calls of hooks, in their order."""
    rows = task.of.rows_of(thread).inferred(HookCalled)
    for kind, index, name in hooks:
        number, node = task.of.about.task, task.node.id
        rows.extend((thread.tick(t_ns), number, node, kind, index, *name))


def ends_of_functions(replay: ReplayedPass, rows: PassRows) -> dict[int, int]:
    """Return when functions ended after which hooks were called, by the node's id."""
    after = {node.id: hooks.after for node, hooks in replay.about.hooks.items()}
    if not after:
        return {}
    calls = [iter(rows.inferred(HookCalled))] * _CALL_WIDTH
    return {
        node: t_ns
        for t_ns, _, node, kind, index, *_ in zip(*calls, strict=True)
        if after[node] and after[node][0][:2] == (kind, index)
    }


def return_after(
    hooks: Sequence[PlannedHook], task: ReadyNode, thread: SeenThread, t_ns: int
) -> None:
    """Report that the hooks after a function are done when the next one may begin."""
    thread.returned = _finish(hooks, task, thread, t_ns)
    thread.returned_ns = thread.last_ns


def join_hooks_before(thread: SeenThread, begin_ns: int) -> None:
    """Take back when hooks returned if others ran before the function that begins."""
    if thread.returned_ns >= begin_ns:
        del thread.returned[-_WIDTH:]
        thread.returned_ns = -1


def _finish(
    hooks: Sequence[PlannedHook], task: ReadyNode, thread: SeenThread, t_ns: int
) -> FlatRows:
    """Report that the last of some hooks returned; return the rows that say so."""
    kind, index, _ = hooks[-1]
    row = thread.tick(t_ns), task.of.about.task, task.node.id, kind, index
    rows = task.of.rows_of(thread).inferred(HookReturned)
    rows.extend(row)
    return rows
