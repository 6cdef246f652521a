"""The writer of a flight recorder: it fills a ring, and saves that when it is asked."""

import contextlib
from collections import deque
from collections.abc import Callable, Hashable, Iterable, Iterator, Mapping, Sequence
from typing import TYPE_CHECKING, Final, TypeAlias

import msgspec
import numpy as np

from gradviz.trace.events import Event, TaskBegun, TaskCompleted, TaskFailed, TaskPushed
from gradviz.trace.format.clock import Clock, read_pair
from gradviz.trace.format.columns import RowLayout
from gradviz.trace.format.model import Header
from gradviz.trace.format.row_layouts import LAYOUTS, Inferred
from gradviz.trace.format.scope import Scope
from gradviz.trace.format.strings import Strings
from gradviz.trace.format.table import Column
from gradviz.trace.probe import Push
from gradviz.trace.recording.buffer import Buffers, Taken
from gradviz.trace.recording.node_filter import NodeFilter
from gradviz.trace.recording.pending_graph import PendingGraph
from gradviz.trace.recording.rings.ring import Ring
from gradviz.trace.recording.sink import MemorySink
from gradviz.trace.recording.writer import Writer

if TYPE_CHECKING:  # loaded where it is asked for
    from gradviz.trace.recording.rings.step_ring import StepRing

#: Takes the frames of a trace.
Save: TypeAlias = Callable[[Iterable[bytes]], None]

#: About so many numbers of a slice are a byte of the ring: it forgets by small pieces.
_NUMBERS_A_BYTE: Final = 1 / 64

#: A slice has at least so many numbers, and at most as many as go into a frame.
_LEAST_NUMBERS: Final = 1 << 10
_MOST_NUMBERS: Final = 1 << 17

#: Indices of the task and the node in a row, and of the kind of a push.
_TASK: Final = 1
_NODE: Final = 2
_WHAT: Final = LAYOUTS[TaskPushed].width - 1


class RingWriter(Writer):
    """Keeps the last part of a recording in memory; see `Writer` for its arguments.

    Args:
        known: See `Ring`.
    """

    def __init__(
        self,
        buffers: Buffers,
        strings: Strings,
        graph: PendingGraph,
        clock: Clock,
        interval_s: float | None,
        scope: Scope,
        nodes: NodeFilter | None,
        known: Callable[[], tuple[set[int], set[int]]],
    ) -> None:
        # Before the writer's thread, which the rest of it starts.
        self._step_ring: StepRing | None = None
        if scope.kept_steps is not None:
            self._step_ring = _step_ring(scope, known)
        self._ring = self._step_ring or Ring(scope.ring_bytes, known)
        self._borders: deque[int] = deque()
        #: When the last step ended, and the passes under way then.
        self._last_border = clock()
        self._under_way: set[int] = set()
        self._most = min(
            max(int(scope.ring_bytes * _NUMBERS_A_BYTE), _LEAST_NUMBERS), _MOST_NUMBERS
        )
        self._saves: deque[Save] = deque()
        self._is_abandoned = False
        super().__init__(
            buffers, strings, graph, MemorySink(), clock, interval_s, scope, nodes
        )

    def end_step(self, now: int) -> None:
        """End a step, at a time that no event has. Any thread."""
        self._borders.append(now)

    def save(self, save: Save) -> None:
        """Pass a trace of the latest events to `save`, which must not raise.

        Called from inside a write, by a signal handler or a finalizer, it has that done
        when the write is: see Note [Inside a write] in `writer`.
        """
        if self._is_inside():
            self._saves.append(save)
            self._is_called_back = True
            return
        self.flush()
        self._save(save)

    def flush(self) -> None:
        """Flush as `Writer.flush` does; save pending traces."""
        super().flush()
        self._save_all()

    def close(self, timeout_s: float) -> None:
        """See `Writer.close`."""
        super().close(timeout_s)
        self._save_all()

    def abandon(self) -> None:
        """See `Writer.abandon`."""
        super().abandon()
        self._is_abandoned = True

    def _save_all(self) -> None:
        while self._saves and not self._is_inside():
            with contextlib.suppress(IndexError):  # another thread was faster
                self._save(self._saves.popleft())

    def _save(self, save: Save) -> None:
        if self._is_abandoned:
            return
        with self._lock:
            header = self._header_of_ring()
            frames = list(self._ring.frames(header, read_pair(self._clock)))
        save(frames)

    def _header_of_ring(self) -> Header:
        """The header, which says how many steps of a `StepRing` are kept."""
        if self._step_ring is None:
            return self.header
        replace = msgspec.structs.replace
        scope = replace(self.header.scope, kept_steps=self._step_ring.kept_steps())
        return replace(self.header, scope=scope)

    # --- all below: with the lock held ---------------------------------------------

    def _round(self) -> None:
        if self._sink is None:
            return
        try:
            self._fill()
        except Exception as error:  # noqa: BLE001 - whatever it is, nothing may fail
            self._give_up(error)

    def _fill(self) -> None:
        """Take everything and put it into the ring."""
        ring = self._ring
        # Before the rows: whatever came before a border is in these.
        borders = [self._borders.popleft() for _ in range(len(self._borders))]
        taken = self._buffers.take()
        ring.begin_round(
            self._new_definitions(),
            begun=_column(taken, TaskBegun, _TASK),
            roots=_roots(taken),
            ended=_ended(taken),
        )
        rest: Sequence[Taken] = taken
        for border in borders:
            step, rest = cut(rest, self._kept_layouts, border)
            self._add(step)
            self._end_step(step, border)
        self._add(rest)
        self._pass_on(rest)
        for one in taken:
            self._count(dropped=one.num_dropped)
            ring.add_dropped(one.thread, one.num_dropped)
        ring.end_round()

    def _add(self, taken: Sequence[Taken]) -> None:
        """Put rows into the ring."""
        ring = self._ring
        for piece in in_slices(taken, self._kept_layouts, self._most):
            before = self._counts.events
            payloads: list[bytes] = []
            for one in piece:
                encoded, num_dropped = self._encoded(one)
                payloads += encoded
                ring.add_dropped(one.thread, num_dropped)
            ring.add(payloads, self._counts.events - before)

    def _end_step(self, step: Sequence[Taken], border: int) -> None:
        """A step has ended, of which `step` are the last rows."""
        self._pass_on(step)
        duration, self._last_border = border - self._last_border, border
        if self._step_ring is not None:
            self._step_ring.end_step(duration, has_open=bool(self._under_way))

    def _pass_on(self, taken: Sequence[Taken]) -> None:
        """Note which passes are under way after these rows."""
        self._under_way.update(_column(taken, TaskBegun, _TASK))
        self._under_way.difference_update(_ended(taken))


def _step_ring(
    scope: Scope, known: Callable[[], tuple[set[int], set[int]]]
) -> "StepRing":
    from gradviz.trace.recording.rings.step_ring import StepRing  # noqa: PLC0415 - see above

    assert scope.kept_steps is not None
    return StepRing(scope.ring_bytes, known, scope.kept_steps.keep)


def cut(
    taken: Sequence[Taken], layouts: Mapping[Hashable, RowLayout], border: int
) -> tuple[list[Taken], list[Taken]]:
    """Cut the rows of all threads in two: those before a moment, and the others.

    Args:
        taken: Rows that the writer took.
        layouts: Of the rows.
        border: The moment.
    """
    before, after = [], []
    for one in taken:
        halves: tuple[dict[Hashable, list[int]], ...] = ({}, {})
        for key, rows in one.rows.items():
            width = layouts[key].width
            place = width * _rows_until(np.array(rows[::width]), border)
            for half, part in zip(halves, (rows[:place], rows[place:]), strict=True):
                if part:
                    half[key] = part
        before.append(Taken(one.thread, halves[0], 0))
        after.append(Taken(one.thread, halves[1], 0))
    return before, after


def in_slices(
    taken: Sequence[Taken], layouts: Mapping[Hashable, RowLayout], most: int
) -> Iterator[list[Taken]]:
    """Cut the rows of all threads into stretches of time, the earliest first.

    A round of the writer holds kind after kind and thread after thread, and a ring has
    to know which rows came last.

    Args:
        taken: Rows that the writer took.
        layouts: Of the rows.
        most: About so many numbers are in a slice.
    """
    times = [
        {key: np.array(one.rows[key][:: layouts[key].width]) for key in one.rows}
        for one in taken
    ]
    num_numbers = sum(len(one.rows[key]) for one in taken for key in one.rows)
    done = [dict.fromkeys(one.rows, 0) for one in taken]
    for border in _borders(
        [column for one in times for column in one.values()], num_numbers // most
    ):
        piece = []
        for one, columns, begins in zip(taken, times, done, strict=True):
            rows = {}
            for key in one.rows:  # see Note [Items without memory] in `buffer`
                end = layouts[key].width * _rows_until(columns[key], border)
                if end > begins[key]:
                    rows[key] = one.rows[key][begins[key] : end]
                    begins[key] = end
            if rows:
                piece.append(Taken(one.thread, rows, 0))
        if piece:
            yield piece


def _borders(times: Sequence[Column], number: int) -> Iterator[int | None]:
    """Moments between so many stretches of as many rows each; None for the end."""
    if number > 1:
        every = np.sort(np.concatenate(times))
        yield from every[np.arange(1, number) * len(every) // number].tolist()
    yield None


def _rows_until(times: Column, border: int | None) -> int:
    """Count the rows before a moment."""
    # Where a signal handler has struck, a row stands before an older one: whatever
    # slice that is in, at the end it is in one.
    return len(times) if border is None else int(np.searchsorted(times, border))


def _column(taken: Iterable[Taken], kind: type[Event], place: int) -> Iterator[int]:
    """One number of each row of a kind, inferred or not."""
    for one in taken:
        for key in (kind, Inferred(kind)):
            yield from one.rows.get(key, [])[place :: LAYOUTS[key].width]


def _ended(taken: Iterable[Taken]) -> Iterator[int]:
    """The passes that have ended."""
    taken = tuple(taken)
    yield from _column(taken, TaskCompleted, _TASK)
    yield from _column(taken, TaskFailed, _TASK)


def _roots(taken: list[Taken]) -> dict[int, int]:
    """The nodes that passes begin with, as far as that was recorded."""
    columns = (_column(taken, TaskPushed, place) for place in (_TASK, _NODE, _WHAT))
    return {
        task: node
        for task, node, what in zip(*columns, strict=True)
        if what == Push.ROOT
    }
