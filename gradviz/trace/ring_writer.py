"""The writer of a flight recorder: it fills a ring, and saves that when it is asked."""

import contextlib
from collections import deque
from collections.abc import Callable, Iterable, Iterator
from typing import Final, TypeAlias

from gradviz.trace.buffer import Buffers, Taken
from gradviz.trace.clock import Clock, read_pair
from gradviz.trace.events import Event, TaskBegun, TaskCompleted, TaskFailed, TaskPushed
from gradviz.trace.graph import PendingGraph
from gradviz.trace.joined import LAYOUTS, Inferred
from gradviz.trace.node_filter import NodeFilter
from gradviz.trace.probe import Push
from gradviz.trace.ring import Ring
from gradviz.trace.scope import Scope
from gradviz.trace.sink import MemorySink
from gradviz.trace.slices import in_slices
from gradviz.trace.strings import Strings
from gradviz.trace.writer import Writer

#: Takes the frames of a trace.
Save: TypeAlias = Callable[[Iterable[bytes]], None]

#: About so many numbers of a slice are a byte of the ring: it forgets by small pieces.
_NUMBERS_A_BYTE: Final = 1 / 64

#: A slice has at least so many numbers, and at most as many as go into a frame.
_LEAST_NUMBERS: Final = 1 << 10
_MOST_NUMBERS: Final = 1 << 17

#: Where in a row the task and the node are, and of a push what was pushed.
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
        self._ring = Ring(scope.ring_bytes, known)
        self._most = min(
            max(int(scope.ring_bytes * _NUMBERS_A_BYTE), _LEAST_NUMBERS), _MOST_NUMBERS
        )
        self._saves: deque[Save] = deque()
        self._is_abandoned = False
        super().__init__(
            buffers, strings, graph, MemorySink(), clock, interval_s, scope, nodes
        )

    def save(self, save: Save) -> None:
        """Give a trace of what was reported last to `save`, which must not raise.

        Called from inside a write, by a signal handler or a finaliser, it has that done
        when the write is: see Note [Inside a write] in `writer`.
        """
        if self._is_inside():
            self._saves.append(save)
            self._is_called_back = True
            return
        self.flush()
        self._save(save)

    def flush(self) -> None:
        """See `Writer.flush`; saves what waits to be saved."""
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
            frames = list(self._ring.frames(self.header, read_pair(self._clock)))
        save(frames)

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
        taken = self._buffers.take()
        ring.begin_round(
            self._new_definitions(),
            begun=_column(taken, TaskBegun, _TASK),
            roots=_roots(taken),
            ended=(
                *_column(taken, TaskCompleted, _TASK),
                *_column(taken, TaskFailed, _TASK),
            ),
        )
        for piece in in_slices(taken, self._kept_layouts, self._most):
            before = self._counts.events
            payloads: list[bytes] = []
            for one in piece:
                encoded, num_dropped = self._encoded(one)
                payloads += encoded
                ring.add_dropped(one.thread, num_dropped)
            ring.add(payloads, self._counts.events - before)
        for one in taken:
            self._count(dropped=one.num_dropped)
            ring.add_dropped(one.thread, one.num_dropped)
        ring.end_round()


def _column(taken: Iterable[Taken], kind: type[Event], place: int) -> Iterator[int]:
    """One number of each row of a kind, inferred or not."""
    for one in taken:
        for key in (kind, Inferred(kind)):
            yield from one.rows.get(key, [])[place :: LAYOUTS[key].width]


def _roots(taken: list[Taken]) -> dict[int, int]:
    """The nodes that passes begin with, as far as that was recorded."""
    columns = (_column(taken, TaskPushed, place) for place in (_TASK, _NODE, _WHAT))
    return {
        task: node
        for task, node, what in zip(*columns, strict=True)
        if what == Push.ROOT
    }
