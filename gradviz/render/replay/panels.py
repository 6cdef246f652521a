"""The parts of the screen of a replay: each some lines, as wide and high as it is told.

None makes more lines than it has room for, however long a queue is: it says how much
more there would be.
"""

from collections.abc import Sequence
from typing import Final, NamedTuple

from rich.text import Text

from gradviz.analysis.executions import definition
from gradviz.analysis.moment import Countdown, QueuedTask, WorkingThread
from gradviz.analysis.node_stages import Neighbourhood, NodeAt, NodeStage
from gradviz.analysis.replay import Replay, ReplayedEvent
from gradviz.render.replay.words import ReplayWords, clean_name, sequence_nr
from gradviz.render.text import clean, count, duration, place, size
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
_RUNS: Final = "bold green"
_GIVEN: Final = "bold magenta"
_FAILED: Final = "bold red"
_DIM: Final = "dim"

_STYLES: Final[dict[type[AnyEvent], str]] = {
    TaskPushed: _PUSHED,
    TaskPopped: _POPPED,
    NodeStarted: _RUNS,
    NodeCompleted: "green",
    GradientBuffered: _GIVEN,
    NodeFailed: _FAILED,
    NodeSkipped: _FAILED,
    TaskFailed: _FAILED,
}

_STAGE_STYLES: Final[dict[NodeStage, str]] = {
    "not reached": _DIM,
    "waiting": "magenta",
    "queued": "cyan",
    "popped": "yellow",
    "running": _RUNS,
    "completed": "green",
    "captured": "green",
    "failed": _FAILED,
    "skipped": _FAILED,
    "left over": _FAILED,
}


#: Names are shortened in narrower panels.
_NARROW: Final = 50


class Shown(NamedTuple):
    """What the screen shows.

    Attributes:
        replay: Of which replay.
        words: What puts it into words.
        now: The event, and the state after it.
        around: The node that is looked at, if there is one.
        note: What stands behind its name, such as that it is followed.
    """

    replay: Replay
    words: ReplayWords
    now: ReplayedEvent
    around: Neighbourhood | None
    note: str

    def name(self, node: int, width: int) -> str:
        """What a node is called in a panel of some width."""
        return self.words.short(node) if width < _NARROW else self.words.node(node)


def style_of(event: AnyEvent) -> str:
    """The colour of a kind of event: the same for what it did to a task or node."""
    return _STYLES.get(type(event), "")


def row(width: int, left: Text, right: str = "") -> Text:
    """A line exactly so wide; the left part gives way to the right one."""
    room = width - len(right) - 1 if right else width
    if room < 4:
        room, right = width, ""
    line = left.copy()
    line.no_wrap = True
    line.truncate(max(room, 0), overflow="ellipsis", pad=True)
    if right:
        line.append(f" {right}", style=_DIM)
    return line


def headed(title: str, lines: Sequence[Text], width: int, height: int) -> list[Text]:
    """A panel: its title, its lines, empty ones below."""
    head = Text(f"─ {title} ", style="bold")
    head.truncate(width, overflow="ellipsis")
    head.append("─" * (width - head.cell_len), style=_DIM)
    empty = Text(" " * width)
    return [head, *lines, *[empty] * (height - 1 - len(lines))][:height]


def queues(shown: Shown, width: int, height: int) -> list[Text]:
    """Every queue that has tasks, what would be popped first on top."""
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
        lines = [row(width, Text("  nothing is ready", style=_DIM))]
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
    fits = room - 1 if total <= room - 1 else room - 2
    for number, task in enumerate(tasks[: max(fits, 0)]):
        lines.append(_task(shown, number, task, width))
    if (more := total - len(lines) + 1) and len(lines) < room:
        lines.append(row(width, Text(f"     and {more:,} more", style=_DIM)))
    return lines


def _task(shown: Shown, number: int, task: QueuedTask, width: int) -> Text:
    event = shown.now.event
    is_new = isinstance(event, TaskPushed) and (event.node, event.task) == (
        task.node,
        task.task,
    )
    depth = f"depth {task.reentrant_depth} " if task.reentrant_depth else ""
    word = "" if width < _NARROW else "seq "
    seq = f"{word}{sequence_nr(task)}" if task.node >= 0 else ""
    waited = duration(shown.now.moment.t_ns - task.pushed_ns)
    style = _PUSHED if is_new else "bold" if number == 0 else ""
    left = Text.assemble(
        (f"{number:>3}  ", _DIM), (shown.name(task.node, width), style)
    )
    return row(width, left, f"{depth}{seq} {waited:>8}")


def workers(shown: Shown, width: int, height: int) -> list[Text]:
    """Each thread, and what it runs, the innermost last."""
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
        if worker.asleep_on is None:
            idle = "idle"
        else:
            which = worker.asleep_on
            named = words.queue(which) if width >= _NARROW else str(which)
            idle = f"sleeps on queue {named}"
        return [row(width, Text.assemble(name, (idle, _DIM)))]
    lines = []
    for depth, one in enumerate(worker.running):
        begin = name if not depth else "  " * depth + "└ "
        node = (shown.name(one.node, width), _RUNS)
        text = Text.assemble(begin, node)
        lines.append(row(width, text, duration(now - one.started_ns)))
    if worker.asleep_on is not None:
        asleep = f"  sleeps on queue {words.queue(worker.asleep_on)}"
        lines.append(row(width, Text(asleep, style=_DIM)))
    return lines


def waiting(shown: Shown, width: int, height: int) -> list[Text]:
    """Nodes that have got gradients, those that wait for more first."""
    moment = shown.now.moment
    lines = [_countdown(shown, one, width) for one in moment.countdowns]
    total = moment.num_countdowns
    title = f"Countdowns: {count(moment.num_waiting, 'node')} waiting"
    if ready := total - moment.num_waiting:
        title += f", {ready:,} ready"
    return headed(title, cut(lines, width, height - 1, total), width, height)


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
    style = _GIVEN if is_new else "" if one.remaining else _DIM
    num_bytes = size(sum(gradient.size_bytes for gradient in one.gradients))
    left = Text.assemble(
        (f"{dots:<{_MAX_DOTS}} ", "magenta"), (shown.name(one.node, width), style)
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


def node(shown: Shown, width: int, height: int) -> list[Text]:
    """The node that is looked at, and its neighbours."""
    around = shown.around
    if around is None:
        return headed("Node", [], width, height)
    one = around.node
    about = definition(shown.replay.trace, one.node)
    where = [
        clean(", ".join(about.parameters) or about.module),
        clean(place(about.location)),
        clean(about.device),
    ]
    state = Text.assemble(
        (_stage(shown, one), _STAGE_STYLES[one.stage]),
        (f"  {'  '.join(filter(None, where))}", _DIM),
    )
    half = (width - 1) // 2
    room, other = max(height - 2, 0), width - half - 1
    left = _side(shown, "gets from", around.givers, around.num_givers, half, room)
    right = _side(
        shown, "gives to", around.receivers, around.num_receivers, other, room
    )
    beside = [Text.assemble(a, " ", b) for a, b in zip(left, right, strict=True)]
    lines = [row(width, state), *beside]
    title = f"{shown.words.node(one.node)} of pass {one.task}{shown.note}"
    return headed(title, lines[: height - 1], width, height)


def _side(
    shown: Shown, word: str, some: Sequence[NodeAt], total: int, width: int, room: int
) -> list[Text]:
    """Neighbours of one side, and empty lines up to `room`."""
    lines = [] if some else [row(width, Text(f"{word} nobody", style=_DIM))]
    for number, one in enumerate(some):
        begin = word if not number else " " * len(word)
        stage = (f"  {shown.words.stage(one)}", _STAGE_STYLES[one.stage])
        line = Text.assemble((f"{begin} ", _DIM), shown.name(one.node, width), stage)
        lines.append(row(width, line))
    kept = cut(lines, width, room, max(total, 1))
    return [*kept, *[Text(" " * width)] * (room - len(kept))]


def _stage(shown: Shown, one: NodeAt) -> str:
    now = shown.now.moment
    said = shown.words.stage(one)
    if one.stage == "queued":
        for queue, tasks in now.queues.items():
            for number, task in enumerate(tasks):
                if (task.task, task.node) == (one.task, one.node):
                    of = now.num_queued[queue]
                    said = f"place {number} of {of:,} in queue {queue}"
    if one.since_ns is None:
        return said
    return f"{said}, for {duration(now.t_ns - one.since_ns)}"


def events(shown: Shown, width: int, height: int) -> list[Text]:
    """What happened before, what happens now, what comes."""
    here, total = shown.now.place, len(shown.replay)
    room = height - 1
    first = max(min(here - room // 2, total - room), 0)
    lines = []
    for number in range(first, min(first + room, total)):
        event = shown.replay.event(number)
        is_now = number == here
        begin = f"{'▸' if is_now else ' '}{number + 1:>{len(str(total))}} "
        style = style_of(event) if is_now else style_of(event).replace("bold ", "")
        line = Text.assemble(
            (begin, "bold" if is_now else _DIM),
            (shown.words.sentence(event), style),
        )
        lines.append(row(width, line))
    return headed("Events", lines, width, height)


def cut(
    lines: Sequence[Text], width: int, room: int, total: int | None = None
) -> list[Text]:
    """As many lines as there is room for; the last one tells how many more."""
    total = len(lines) if total is None else total
    if total <= room:
        return list(lines)
    kept = list(lines[: max(room - 1, 0)])
    more = Text(f"  and {total - len(kept):,} more", style=_DIM)
    return [*kept, row(width, more)][: max(room, 0)]


def shares(wanted: Sequence[int], room: int) -> list[int]:
    """How `room` is parted, so that the smallest gets all it wants first."""
    given = [0] * len(wanted)
    left = room
    order = sorted(range(len(wanted)), key=wanted.__getitem__)
    for number, place_ in enumerate(order):
        fair = left // (len(order) - number)
        given[place_] = min(wanted[place_], fair)
        left -= given[place_]
    return given
