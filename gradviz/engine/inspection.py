"""What an engine is doing, in words: for a pass that hangs, or seems to.

Everything here only looks, without locks, at things that may change meanwhile: it
must work on an engine whose locks are all taken. What it says is therefore as of
about now.
"""

from collections.abc import Iterable, Sequence

from gradviz.engine.graph_task import GraphTask
from gradviz.engine.ready_queue import ReadyQueue
from gradviz.engine.sync import stacks
from gradviz.engine.worker import Worker

_MAX_LISTED = 10


def describe_state(
    passes: Sequence[GraphTask],
    queues: Iterable[ReadyQueue],
    states: Iterable[Worker],
) -> str:
    """Passes under way, queues, unmet dependencies, threads with their stacks."""
    lines = [f"{_count(len(passes), 'pass', 'passes')} under way"]
    for graph_task in passes:
        lines += _pass_lines(graph_task)
    seen: dict[int, ReadyQueue] = {queue.id: queue for queue in queues}
    for graph_task in passes:
        queue = graph_task.cpu_ready_queue
        seen[queue.id] = queue
    lines.append(_count(len(seen), "queue", "queues"))
    for queue in seen.values():
        names = [repr(task.node) for task in queue.snapshot() if task.node]
        unseen = queue.num_unseen
        not_looked_at = f" ({unseen} not looked at yet)" if unseen else ""
        num_tasks = _count(len(queue), "task", "tasks")
        lines.append(f"  {queue.name}: {num_tasks}{_listed(names)}{not_looked_at}")
    busy = [
        worker for worker in states if worker.graph_task is not None or worker.calls
    ]
    stack_of = stacks() if busy else {}
    for worker in busy:
        lines += _thread_lines(worker, stack_of.get(worker.thread_id, []))
    return "\n".join(lines) + "\n"


def progress(passes: Sequence[GraphTask]) -> tuple[tuple[int, int, int], ...]:
    """A value that changes whenever one of the passes does."""
    return tuple(
        (graph_task.id, graph_task.outstanding_tasks, sum(graph_task.remaining()))
        for graph_task in passes
    )


def _pass_lines(graph_task: GraphTask) -> list[str]:
    home = graph_task.home
    thread = home.thread_name if isinstance(home, Worker) else "?"
    parent = "" if graph_task.parent is None else f", inside {graph_task.parent!r}"
    lines = [
        f"  {graph_task!r}: called by {thread}{parent}",
        (
            f"    depth {graph_task.reentrant_depth}; "
            f"{_count(graph_task.outstanding_tasks, 'task', 'tasks')} queued or "
            f"running, {len(graph_task.helpers)} of them on other threads"
        ),
    ]
    if graph_task.error is not None:
        lines.append(f"    has failed: {graph_task.error!r}")
    unmet = [
        f"{node!r} waits for {graph_task.dependencies.get(node, 0)} more gradients"
        for node in tuple(graph_task.not_ready)
    ]
    lines += [f"    {line}" for line in unmet[:_MAX_LISTED]]
    if len(unmet) > _MAX_LISTED:
        lines.append(f"    and {len(unmet) - _MAX_LISTED} more")
    return lines


def _thread_lines(worker: Worker, stack: Sequence[str]) -> list[str]:
    lines = [f"thread {worker.thread_name}"]
    for graph_task, node in worker.calls:
        lines.append(f"  {node!r} of {graph_task!r} called backward, which waits;")
    if worker.node is not None:
        lines.append(f"  runs {worker.node!r} of {worker.graph_task!r}")
    outer = {graph_task for graph_task, _ in worker.calls}
    if worker.graph_task in outer and worker.in_user_code:
        lines.append(
            "  that node belongs to a pass whose own node waits below it on this "
            "thread: if the one needs a lock that the other holds, they wait for each "
            "other for ever. Do not hold a lock across a backward inside a backward."
        )
    return lines + [f"    {frame}" for frame in stack]


def _count(number: int, one: str, many: str) -> str:
    return f"{number} {one if number == 1 else many}"


def _listed(names: Sequence[str]) -> str:
    if not names:
        return ""
    more = f" and {len(names) - _MAX_LISTED} more" * (len(names) > _MAX_LISTED)
    return f": {', '.join(names[:_MAX_LISTED])}{more}"
