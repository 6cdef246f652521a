"""A description of an engine's state, for a pass that hangs or seems to.

Everything here only reads, without locks, data that may change meanwhile: it must work
on an engine whose locks are all taken. So its descriptions are approximate.
"""

from collections.abc import Callable, Iterable, Sequence

from gradviz.engine.graph.sync import Empty, Mailbox, Sync, stacks
from gradviz.engine.tasks.graph_task import GraphTask
from gradviz.engine.tasks.passes_under_way import Passes
from gradviz.engine.tasks.ready_queue import ReadyQueue
from gradviz.engine.threads.worker import Worker

_MAX_LISTED = 10


def describe_state(
    passes: Sequence[GraphTask],
    queues: Iterable[ReadyQueue],
    states: Iterable[Worker],
) -> str:
    """Describe passes under way, queues, unmet dependencies, and threads' stacks."""
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


class Watchdog:
    """A thread that checks the passes under way from time to time.

    It cannot tell a deadlock from a slow node, so it only reports: once for each
    standstill, when no gradient has reached any node for `seconds`.

    Args:
        sync: The seam.
        passes: Returns the passes to check.
        seconds: Minimum length of a standstill, and interval between checks.
        report: Called on the watchdog's thread with no lock held.
    """

    def __init__(
        self,
        sync: Sync,
        passes: Passes,
        seconds: float,
        report: Callable[[float], None],
    ) -> None:
        self._passes = passes
        self._seconds = seconds
        self._report = report
        self._stop: Mailbox[None] = sync.mailbox()
        sync.spawn(self._watch, "gv_watchdog")

    def stop(self) -> None:
        """End the thread; do not wait for it."""
        self._stop.put(None)

    def _watch(self) -> None:
        before: object = None
        reported: object = None
        while True:
            try:
                self._stop.get(timeout=self._seconds)
            except Empty:
                now = progress(self._passes.under_way())
                if now and now == before and now != reported:
                    reported = now
                    self._report(self._seconds)
                before = now
            else:
                return


def progress(passes: Sequence[GraphTask]) -> tuple[tuple[int, int, int], ...]:
    """Return a value that changes whenever one of the passes makes progress."""
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
            f"running, {len(graph_task.outcome.helpers)} of them on other threads"
        ),
    ]
    if (error := graph_task.outcome.error) is not None:
        lines.append(f"    has failed: {error!r}")
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
