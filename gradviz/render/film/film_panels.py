"""Panels beside the graph of a film: queues, threads and countdowns, as rows.

Each panel has as many rows as it needs in the fullest frame, if there is room, so that
nothing moves but what changes.
"""

from collections import Counter
from collections.abc import Iterator, Sequence
from typing import Final, NamedTuple

from gradviz.analysis.moments.event_replay import ReplayedEvent
from gradviz.analysis.moments.moment import Countdown, QueuedTask, WorkingThread
from gradviz.analysis.moments.node_stages import NodeStage
from gradviz.analysis.tables.executions import definition
from gradviz.render.replay.panel_lines import shares
from gradviz.render.replay.words import MAX_NESTED, ReplayWords
from gradviz.render.words.moment_text import idle_text, sequence_nr_text
from gradviz.render.words.text import clean, count
from gradviz.trace.format.model import Trace

#: Of more queues only the fullest have a panel.
MAX_QUEUES: Final = 3
#: A dot for each gradient, up to so many.
MAX_DOTS: Final = 4


class PanelRow(NamedTuple):
    """A row of a panel. Texts are clean, but not yet escaped.

    Attributes:
        left: Subject of the row.
        right: Further text, the shorter the better.
        detail: Text that may follow `left`, as much of it as there is room for.
        stage: The stage of a node, whose color the row has; None for no color.
    """

    left: str
    right: str = ""
    detail: str = ""
    stage: NodeStage | None = None


class PanelContent(NamedTuple):
    """The contents of a panel in one frame.

    Attributes:
        title: Name of the contents, and their count.
        rows: The first rows.
        num_rows: Number of rows that there would be.
    """

    title: str
    rows: tuple[PanelRow, ...]
    num_rows: int


class FilmPanel(NamedTuple):
    """A panel, frame by frame, and how many rows it has room for."""

    contents: tuple[PanelContent, ...]
    room: int


def film_panels(
    frames: Sequence[ReplayedEvent], words: ReplayWords, trace: Trace, room: int
) -> list[FilmPanel]:
    """Return the panels of a film, from top to bottom.

    Args:
        frames: The moments that are shown, with as many rows as there is room for.
        words: Words for the moments.
        trace: The trace.
        room: Number of rows for all panels, their titles included.
    """
    sizes: Counter[int] = Counter()
    for shown in frames:
        sizes.update(shown.moment.num_queued)
    ids = sorted(one for one, _ in sizes.most_common(MAX_QUEUES))
    told = _PanelRows(words, trace)
    columns = [
        *([told.queue(one, queue) for one in frames] for queue in ids),
        [told.threads(one) for one in frames],
        [told.countdowns(one) for one in frames],
    ]
    wanted = [1 + max(one.num_rows for one in column) for column in columns]
    return [
        FilmPanel(tuple(column), max(own - 1, 1))
        for column, own in zip(columns, shares(wanted, room), strict=True)
    ]


class _PanelRows:
    """Puts moments into rows.

    Args:
        words: Words for the moments.
        trace: The trace.
    """

    def __init__(self, words: ReplayWords, trace: Trace) -> None:
        self._words = words
        self._trace = trace

    def queue(self, shown: ReplayedEvent, queue: int) -> PanelContent:
        """Return the tasks of a queue, the next to be popped on top."""
        moment = shown.moment
        total = moment.num_queued.get(queue, 0)
        tasks = moment.queues.get(queue, ())
        return PanelContent(
            f"Queue {self._words.queue(queue)}: {count(total, 'task')}",
            tuple(map(self._task, tasks)),
            total,
        )

    def _task(self, task: QueuedTask) -> PanelRow:
        name = self._words.short(task.node, task.task)
        if task.node < 0:
            return PanelRow(name)
        seq, detail = sequence_nr_text(task), self._parameter(task.node)
        return PanelRow(name, f"seq {seq}", detail, "queued")

    def _parameter(self, node: int) -> str:
        """The leaf that a node accumulates into, if it has a name."""
        names = definition(self._trace, node).parameters
        return clean(names[0]) if names else ""

    def threads(self, shown: ReplayedEvent) -> PanelContent:
        """Return a row for each thread, with the nodes that it runs."""
        moment = shown.moment
        return PanelContent(
            f"Running: {count(moment.num_workers, 'thread')}",
            tuple(map(self._thread, moment.workers)),
            moment.num_workers,
        )

    def _thread(self, worker: WorkingThread) -> PanelRow:
        name = self._words.thread(worker.thread)
        running = worker.running[-MAX_NESTED:]
        if not running:
            asleep = worker.asleep_on
            queue = None if asleep is None else str(asleep)
            return PanelRow(name, idle_text(queue))
        nodes = [self._words.short(one.node, one.task) for one in running]
        return PanelRow(" > ".join(nodes), name, stage="running")

    def countdowns(self, shown: ReplayedEvent) -> PanelContent:
        """The nodes that have got gradients, those that wait for more first."""
        moment = shown.moment
        ready = moment.num_countdowns - moment.num_waiting
        title = f"Countdowns: {count(moment.num_waiting, 'node')} waiting"
        return PanelContent(
            title + (f", {ready:,} ready" if ready else ""),
            tuple(map(self._countdown, moment.countdowns)),
            moment.num_countdowns,
        )

    def _countdown(self, one: Countdown) -> PanelRow:
        more = f"waits for {one.remaining:,} more" if one.remaining else "ready"
        name = self._words.short(one.node, one.task)
        return PanelRow(
            f"{dots(len(one.gradients), one.remaining)}  {name}",
            more,
            self._parameter(one.node),
            "waiting" if one.remaining else "queued",
        )


def dots(has: int, remaining: int) -> str:
    """A full dot for each gradient that came, an empty one for each still to come."""
    total = has + remaining
    if total <= MAX_DOTS:
        return "●" * has + "○" * remaining
    return f"{has:,}/{total:,}"


def rows_of(panel: FilmPanel) -> Iterator[tuple[str, tuple[PanelRow, ...]]]:
    """The title and the rows of a panel in each frame, as there is room for them."""
    for content in panel.contents:
        rows = content.rows[: panel.room]
        if content.num_rows > panel.room:
            kept = rows[: panel.room - 1]
            more = PanelRow(f"and {content.num_rows - len(kept):,} more")
            rows = (*kept, more)
        yield content.title, rows
