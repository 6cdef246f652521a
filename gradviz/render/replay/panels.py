"""The parts of a replay's screen: lines of a given width and height.

None makes more lines than it has room for, however long a queue is: it says how much
more there would be.
"""

from collections.abc import Sequence
from typing import Final, NamedTuple

from rich.text import Text

from gradviz.analysis.moments.event_replay import Replay, ReplayedEvent
from gradviz.analysis.moments.moment import Countdown, QueuedTask, WorkingThread
from gradviz.analysis.moments.node_stages import Neighborhood
from gradviz.render.replay.panel_lines import DIM, cut, headed, row, shares
from gradviz.render.replay.words import MAX_NESTED, ReplayWords, clean_name
from gradviz.render.words.moment_text import idle_text, sequence_nr_text
from gradviz.render.words.text import count, duration, size
from gradviz.trace.events import (
    AnyEvent,
    GradientBuffered,
    NodeCompleted,
    NodeFailed,
    NodeSkipped,
    NodeStarted,
    TaskFailed,
    TaskPopped,
    TaskPushed,
)

#: A dot for each gradient, up to so many.
_MAX_DOTS: Final = 4

_PUSHED: Final = "bold cyan"
_POPPED: Final = "bold yellow"
RUNS: Final = "bold green"
_GIVEN: Final = "bold magenta"
FAILED: Final = "bold red"

_STYLES: Final[dict[type[AnyEvent], str]] = {
    TaskPushed: _PUSHED,
    TaskPopped: _POPPED,
    NodeStarted: RUNS,
    NodeCompleted: "green",
    GradientBuffered: _GIVEN,
    NodeFailed: FAILED,
    NodeSkipped: FAILED,
    TaskFailed: FAILED,
}

#: Names are shortened in narrower panels.
_NARROW: Final = 50


class Shown(NamedTuple):
    """Contents of the screen.

    Attributes:
        replay: The replay.
        words: Words for its contents.
        now: The event, and the state after it.
        around: The selected node, if there is one.
        note: Text behind its name, such as that it is followed.
        pointed: Index of the selected one of its neighbors, -1 for none.
        scrolled: Number of rows by which long lists are scrolled.
    """

    replay: Replay
    words: ReplayWords
    now: ReplayedEvent
    around: Neighborhood | None
    note: str
    pointed: int = -1
    scrolled: int = 0

    def name(self, node: int, task: int, width: int) -> str:
        """Name of a node of a pass in a panel of some width."""
        told = self.words.short if width < _NARROW else self.words.node
        return told(node, task)


def style_of(event: AnyEvent) -> str:
    """Return the color of a kind of event: the same for its effect."""
    return _STYLES.get(type(event), "")


def queues(shown: Shown, width: int, height: int) -> list[Text]:
    """Return every queue with tasks, the next pop on top."""
    moment = shown.now.moment
    total = sum(moment.num_queued.values())
    title = f"Queues: {count(total, 'task')}"
    if (num := len(moment.num_queued)) > 1:
        title += f" in {num:,}"
    room = height - 1
    wanted = [1 + moment.num_queued[queue] for queue in moment.queues]
    lines: list[Text] = []
    for (queue, tasks), own in zip(
        moment.queues.items(), shares(wanted, room), strict=True
    ):
        lines += _queue(shown, queue, tasks, moment.num_queued[queue], width, own)
    if not lines:
        lines = [row(width, Text("  nothing is ready", style=DIM))]
    return headed(title, lines[:room], width, height)


def _queue(
    shown: Shown,
    queue: int,
    tasks: Sequence[QueuedTask],
    total: int,
    width: int,
    room: int,
) -> list[Text]:
    if room < 1:
        return []
    name = f"queue {shown.words.queue(queue)}"
    lines = [row(width, Text(name, style="underline"), count(total, "task"))]
    first = min(shown.scrolled, max(total - room + 1, 0))
    rows = [
        _task(shown, number, task, width)
        for number, task in enumerate(tasks[first : first + room], first)
    ]
    return [*lines, *cut(rows, width, room - 1, total - first)]


def _task(shown: Shown, number: int, task: QueuedTask, width: int) -> Text:
    event = shown.now.event
    is_new = isinstance(event, TaskPushed) and (event.node, event.task) == (
        task.node,
        task.task,
    )
    depth = f"depth {task.reentrant_depth} " if task.reentrant_depth else ""
    word = "" if width < _NARROW else "seq "
    seq = f"{word}{sequence_nr_text(task)}" if task.node >= 0 else ""
    waited = duration(shown.now.moment.t_ns - task.pushed_ns)
    style = _PUSHED if is_new else "bold" if number == 0 else ""
    left = Text.assemble(
        (f"{number:>3}  ", DIM), (shown.name(task.node, task.task, width), style)
    )
    return row(width, left, f"{depth}{seq} {waited:>8}")


def workers(shown: Shown, width: int, height: int) -> list[Text]:
    """Return each thread with its nodes, the innermost last."""
    lines: list[Text] = []
    every = shown.now.moment.workers
    for worker in every:
        lines += _worker(shown, worker, width)
    total = shown.now.moment.num_workers
    lines = cut(lines, width, height - 1, len(lines) + total - len(every))
    return headed(f"Workers: {count(total, 'thread')}", lines, width, height)


def _worker(shown: Shown, worker: WorkingThread, width: int) -> list[Text]:
    words, now = shown.words, shown.now.moment.t_ns
    name = f"{words.thread(worker.thread)}: "
    if not worker.running:
        which, queue = worker.asleep_on, None
        if which is not None:
            queue = words.queue(which) if width >= _NARROW else str(which)
        return [row(width, Text.assemble(name, (idle_text(queue), DIM)))]
    told = worker.running[-MAX_NESTED:]
    lines = []
    if more := len(worker.running) - len(told):
        lines = [row(width, Text(f"{name}{count(more, 'node')}, and inside:"))]
    for depth, one in enumerate(told):
        begin = "  " * depth + "└ " if lines else name
        node = (shown.name(one.node, one.task, width), RUNS)
        text = Text.assemble(begin, node)
        lines.append(row(width, text, duration(now - one.started_ns)))
    if worker.asleep_on is not None:
        asleep = f"  {idle_text(words.queue(worker.asleep_on))}"
        lines.append(row(width, Text(asleep, style=DIM)))
    return lines


def waiting(shown: Shown, width: int, height: int) -> list[Text]:
    """Nodes that have got gradients, those that wait for more first."""
    moment = shown.now.moment
    total = moment.num_countdowns
    first = min(shown.scrolled, max(total - height + 1, 0))
    lines = [_countdown(shown, one, width) for one in moment.countdowns[first:]]
    title = f"Countdowns: {count(moment.num_waiting, 'node')} waiting"
    if ready := total - moment.num_waiting:
        title += f", {ready:,} ready"
    return headed(title, cut(lines, width, height - 1, total - first), width, height)


def _countdown(shown: Shown, one: Countdown, width: int) -> Text:
    event = shown.now.event
    is_new = isinstance(event, GradientBuffered) and (event.node, event.task) == (
        one.node,
        one.task,
    )
    has = len(one.gradients)
    total = has + one.remaining
    if total <= _MAX_DOTS:
        dots = "●" * has + "○" * one.remaining
    else:
        dots = f"{has:,}/{total:,}"
    style = _GIVEN if is_new else "" if one.remaining else DIM
    num_bytes = size(sum(gradient.size_bytes for gradient in one.gradients))
    left = Text.assemble(
        (f"{dots:<{_MAX_DOTS}} ", "magenta"),
        (shown.name(one.node, one.task, width), style),
    )
    more = f"{one.remaining:,} more" if one.remaining else "ready"
    waits = f"waits for {more}" if one.remaining and width >= _NARROW else more
    return row(width, left, f"{waits} {num_bytes:>8}")


def streams(shown: Shown, width: int, height: int) -> list[Text]:
    """Streams that have something to do, or wait."""
    every = shown.now.moment.streams
    told = [f"{clean_name(one.stream)}: {shown.words.stream(one)}" for one in every]
    if len(told) > height - 1:
        told = ["; ".join(told)]
    lines = [row(width, Text(one)) for one in told]
    return headed(f"Streams: {len(every):,} busy", lines, width, height)
