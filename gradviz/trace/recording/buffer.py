"""Buffers: reports of threads that the writer has not taken yet.

A thread's buffer holds a list of integers for each layout of rows (`row_layouts`), row
after row. The thread extends it, the writer empties it from the front, and neither
waits for the other.

Note [Taking rows]
~~~~~~~~~~~~~~~~~~
Two threads change a list, with no lock between them:

* the owner calls ``rows.extend(row)`` with a tuple of integers;
* the writer copies the `n` items that are there, and deletes the first `n`.

Each of these is one C call that runs no Python code (the items are integers, so no code
of their own compares, hashes or finalizes them), and so atomic under the interpreter's
lock. In between, the list can only grow, at its end. So `n` is a whole number of rows,
the first `n` items stay the same until the writer deletes them, and items appended
meanwhile are not touched. A list is never replaced by another one: the owner may just
have fetched it, and would append to a list that nobody reads any more.

A signal handler or a finalizer may report something between the two halves of a report
(the clock, the append). Its row then precedes an older one; readers sort.

Note [Whole rows]
~~~~~~~~~~~~~~~~~
For the most frequent events of a backward (`WHOLE`) the list holds the tuples, and the
writer joins them: copying the numbers out and freeing the tuple is a seventh of the
cost of recording a node. Elsewhere it costs more than it saves. Waiting tuples wake the
garbage collector sooner, and give it more to inspect: while a program runs forward,
that made a long recording a tenth to a fifth slower. A backward frees more than it
makes, so its rows cost the collector about as much as they save.

Nor may just any tuple be kept. To release a lock at the end of a `with`, CPython before
3.13 makes a tuple of three; it takes one from a stock of freed tuples, and so needs no
memory. If rows of three were kept, the stock might be empty at that moment, the lock
would stay locked, and the engine would hang.

Note [Items without memory]
~~~~~~~~~~~~~~~~~~~~~~~~~~~
A recorded program may run out of memory at any allocation, and must end with a
`MemoryError`, not with a crash. ``for ... in d.items()`` can crash CPython 3.11: the
iterator makes a pair to reuse, and if there is no memory for that pair, it is freed
before the collector knows of it. So the reporting threads and the writer iterate over
the keys, whose iterator makes no pair.
"""

import itertools
import operator
import threading
import weakref
from collections import deque
from collections.abc import Callable, Hashable, Iterable, Mapping
from typing import Any, Final, NamedTuple, Protocol, TypeAlias

from gradviz.trace.format.clock import Clock
from gradviz.trace.format.columns import RowLayout
from gradviz.trace.format.row_layouts import LAYOUTS
from gradviz.trace.node_reports import JOINED, NodeReports
from gradviz.trace.recording.processor_time import ThreadTime

#: At so many integers in a list the writer is called before its time.
MANY: Final = 50_000

#: At so many the thread's events are dropped until the writer has caught up.
TOO_MANY: Final = 1_000_000

#: Layouts of which the rows are kept whole; see Note [Whole rows].
WHOLE: Final = frozenset(JOINED) - {"node_recorded"}  # which the forward pass reports

#: The place of rows that nobody keeps: it never holds any.
_NOWHERE: Final[deque[Any]] = deque(maxlen=0)


class Rows(Protocol):
    """A list of rows as its thread sees it."""

    def append(self, row: tuple[int, ...], /) -> None:
        """Add a row to those that are kept whole."""

    def extend(self, row: tuple[int, ...], /) -> None:
        """Add a row to others."""

    def __len__(self) -> int:
        """Rows that wait for the writer; integers, if they are not kept whole."""


class ThreadRows(Protocol):
    """Per-thread data of a recording."""

    buffer: "ThreadBuffer"
    rows: dict[Hashable, Rows]
    reports: NodeReports

    @property
    def time(self) -> ThreadTime:
        """Return the thread's running time."""


#: Given a thread's rows and time, makes what it reports its nodes to.
MakeReports: TypeAlias = Callable[[dict[Hashable, Rows], ThreadTime], NodeReports]


class Taken(NamedTuple):
    """Rows that the writer took from one thread.

    Attributes:
        thread: The thread's number.
        rows: The rows of each layout that had any, joined into one list.
        num_dropped: Events that were dropped since the last time.
    """

    thread: int
    rows: dict[Hashable, list[int]]
    num_dropped: int


class Buffers:
    """The buffers of all threads.

    Args:
        local: `threading.local`, or what stands for it under another scheduler: a
            subclass's ``__init__`` runs anew in each thread.
        thread_name: The name of the calling thread.
        thread_clock: Time that the calling thread has been running; None: not known.
        reports: Given a thread's rows and time, makes what it reports its nodes to.
        layouts: Of those rows that are kept.

    Attributes:
        local: Each thread's own; made when a thread first looks at it.
    """

    def __init__(
        self,
        *,
        local: type[threading.local],
        thread_name: Callable[[], str],
        reports: MakeReports,
        thread_clock: Clock | None = None,
        layouts: Mapping[Hashable, RowLayout] = LAYOUTS,
    ) -> None:
        self._thread_name = thread_name
        self._layouts = layouts
        self._next_number = itertools.count().__next__
        self._all: list[ThreadBuffer] = []
        self._new_threads: list[tuple[int, str]] = []
        self._is_closed = False
        #: The buffers of threads that have reported something, the last of each number
        #: of the operating system's.
        self._own: dict[int, ThreadBuffer] = {}
        #: By that number and their own: those of threads that are told of, having ended
        #: or reported nothing. Each has a life.
        self._others: dict[tuple[int, int], tuple[_Life, ThreadBuffer]] = {}
        add, own, make_reports = self._add, self._own, reports

        class OfThread(local):  # type: ignore[valid-type, misc]
            # For a finalizer that runs while `__init__` does: its events are dropped.
            buffer = _dropping()
            rows = buffer.rows
            time = ThreadTime(None)
            reports = make_reports(rows, time)

            def __init__(self) -> None:
                self.time = ThreadTime(thread_clock)
                self.life = _Life()
                self.buffer = own[threading.get_native_id()] = add(self.life)
                self.rows = self.buffer.rows
                self.reports = make_reports(self.rows, self.time)

        self.local: ThreadRows = OfThread()

    def close(self) -> None:
        """End the recording: later reports are not part of it.

        Any thread. A device's thread may still be running a node of a pass that failed.
        Its events come after the end, so they are not counted as dropped.
        """
        self._is_closed = True
        for buffer in tuple(self._all):
            buffer.close()

    def take(self) -> list[Taken]:
        """Take the rows of all threads. One thread at a time."""
        taken = []
        for buffer in tuple(self._all):
            is_alive = buffer.is_alive()
            taken.append(buffer.take(keep=not self._is_closed))
            if not is_alive:
                self._all.remove(buffer)
        return taken

    def take_new_threads(self) -> list[tuple[int, str]]:
        """Numbers and names of threads made since the last call."""
        taken = self._new_threads[:]
        del self._new_threads[: len(taken)]
        return taken

    def tell(
        self, thread: int, name: str, rows: Mapping[Hashable, tuple[int, ...]]
    ) -> Rows:
        """Add rows of some thread. One thread at a time.

        Args:
            thread: The operating system's number of it.
            name: Its name, if it has reported nothing itself.
            rows: Rows of the layouts, one after the other; of none that is kept whole.

        Returns:
            The longest of the lists to which any were added.
        """
        buffer = self._own.get(thread)
        life = None if buffer is None else buffer.life()  # held until they are added
        if buffer is None or life is None:
            number = -1 if buffer is None else buffer.number
            other = self._others.get((thread, number))
            if other is None:
                life = _Life()
                other = life, self._add(life, name, number)
                self._others[thread, number] = other
            buffer = other[1]
        # One call into C: no interrupt comes in between and leaves a part of them.
        extend = [buffer.rows[key].extend for key in rows]
        deque(map(operator.call, extend, rows.values()), maxlen=0)
        return max((buffer.rows[key] for key in rows), key=len, default=_NOWHERE)

    def _add(
        self, life: "_Life", name: str | None = None, number: int = -1
    ) -> "ThreadBuffer":
        """Make a buffer, the calling thread's unless it is called otherwise.

        Takes no lock: see `Strings`.

        Args:
            life: Of the thread.
            name: Name of the thread, if it is not the calling one.
            number: The thread's, if it has had a buffer before.
        """
        if number < 0:
            number = self._next_number()
            self._new_threads.append((number, name or self._thread_name()))
        buffer = ThreadBuffer(number, life, self._layouts)
        self._all.append(buffer)
        if self._is_closed:
            buffer.close()
        return buffer


def _joined(rows: Iterable[tuple[int, ...]]) -> list[int]:
    numbers: list[int] = []
    for row in rows:
        numbers += row
    return numbers


def _dropping() -> "ThreadBuffer":
    """A buffer that keeps nothing."""
    buffer = ThreadBuffer(-1, _Life(), LAYOUTS)
    buffer.drop()
    return buffer


class ThreadBuffer:
    """One thread's rows.

    Attributes:
        number: The thread's number in the trace.
        rows: Layout -> where the thread puts its rows.
        has_called: The writer was told that there are many, and has not come yet.
    """

    def __init__(
        self, number: int, life: "_Life", layouts: Mapping[Hashable, RowLayout]
    ) -> None:
        self.number = number
        self._life = weakref.ref(life)
        self._kept: dict[Hashable, list[Any]] = {key: [] for key in layouts}
        # Not over `items()`: see Note [Items without memory].
        self._dropped = {key: _Dropped(len(layouts[key].parts)) for key in layouts}
        self._is_dropping = False
        self._num_told = 0
        self.rows: dict[Hashable, Rows] = dict.fromkeys(LAYOUTS, _NOWHERE)
        self.rows.update(self._kept)
        self.has_called = False

    def life(self) -> "_Life | None":
        """Return the object that lives as long as the thread; None after its end."""
        return self._life()

    def is_alive(self) -> bool:
        """Return whether the thread still runs, and may add rows."""
        return self._life() is not None

    def drop(self) -> None:
        """Drop the thread's later rows, and count them. Any thread."""
        self.rows.update(self._dropped)
        # Last, or the writer could undo what has not been done yet, and forget it.
        self._is_dropping = True

    def close(self) -> None:
        """Drop the thread's later rows without counting. Any thread."""
        self.rows.update(dict.fromkeys(self._kept, _NOWHERE))

    def take(self, *, keep: bool) -> Taken:
        """Take the rows, and keep later ones if `keep`. The writer's thread."""
        self.has_called = False
        rows = {}
        for key in self._kept:
            if kept := self._kept[key]:
                taken = kept[:]
                rows[key] = _joined(taken) if key in WHOLE else taken
                del kept[: len(taken)]  # See Note [Taking rows].
        if keep and self._is_dropping:
            self._is_dropping = False
            self.rows.update(self._kept)
        # Each count only grows, and is read once: the owner may be adding to it.
        count = sum(dropped.num_events for dropped in self._dropped.values())
        num_dropped, self._num_told = count - self._num_told, count
        return Taken(self.number, rows, num_dropped)


class NoRows:
    """Rows of all threads of a recording that keeps nothing.

    Args:
        reports: As for `Buffers`.
    """

    def __init__(self, reports: MakeReports) -> None:
        self.buffer = _dropping()
        self.rows: dict[Hashable, Rows] = dict.fromkeys(LAYOUTS, _NOWHERE)
        self.reports = reports(self.rows, self.time)

    @property
    def time(self) -> ThreadTime:
        """Time of no thread: threads do not share one."""
        return ThreadTime(None)


class _Dropped:
    """Stands for a list of a thread with dropped events.

    Args:
        num_parts: Number of events in a row.
    """

    def __init__(self, num_parts: int) -> None:
        self._num_parts = num_parts
        self.num_events = 0

    def append(self, row: tuple[int, ...], /) -> None:
        del row
        self.num_events += self._num_parts

    extend = append

    def __len__(self) -> int:
        return 0


class _Life:
    """Held by a thread's local storage alone, so it ends with the thread."""

    __slots__ = ("__weakref__",)
