"""A replay: the events of some passes, and the state of the engine after each of them.

An event is named by its place among those of the replay, from 0; that of the whole
trace is its `seq`.
"""

import sys
from typing import Any, Final

import msgspec
import numpy as np

from gradviz.analysis.moments.choice import Choice, choice_of
from gradviz.analysis.moments.engine_state import History
from gradviz.analysis.moments.moment import Moment
from gradviz.analysis.moments.node_stages import Neighborhood, NodeStages
from gradviz.analysis.moments.story import Filter, origin_of, select_events
from gradviz.analysis.nodes.addresses import (
    AddressBook,
    NoSuchNodeError,
    SeveralNodesError,
)
from gradviz.analysis.tables.passes import with_descendants
from gradviz.analysis.tables.worker_parts import numbers_of
from gradviz.errors import UserError
from gradviz.trace.events import AnyEvent, TaskPopped
from gradviz.trace.format.model import Trace
from gradviz.trace.format.table import Column

SCHEMA: Final = "gradviz.replay"
VERSION: Final = 1

#: In so many passes a node is looked for.
MAX_SEARCHED: Final = 8


class NothingToReplayError(UserError):
    """No event of the trace is meant."""


class ReplayedEvent(msgspec.Struct, frozen=True, kw_only=True):
    """One event, and the engine right after it.

    Attributes:
        place: Index of the event in the replay, from 0.
        after_ns: Time from the start of the first pass.
        event: Event at that moment.
        choice: Of a task that was popped why it was the next; None for other events.
        moment: The state after it, of the whole engine.
    """

    place: int
    after_ns: int
    event: AnyEvent
    choice: Choice | None
    moment: Moment


class Replay:
    """Events, one by one, forwards and backwards; any of them is as near as another.

    Making one takes a second or two for a million events. It never changes, but for
    what it remembers.

    Args:
        trace: The trace.
        wanted: Filter for its events. Those of passes called from inside of the ones it
            names are meant too.

    Raises:
        NothingToReplayError: None is.

    Attributes:
        trace: The trace.
        tasks: The parts of its passes, in the order of their start.
        passes: The numbers of these passes.
        history: The state of the engine at any moment.
        origin_ns: Start of the first of the passes.
    """

    def __init__(self, trace: Trace, wanted: Filter) -> None:
        self.trace = trace
        self.tasks = with_descendants(trace, wanted.tasks or trace.tasks)
        self.passes = numbers_of(trace, self.tasks)
        self.history = History(trace)
        self.origin_ns, _ = origin_of(trace, wanted)
        story = select_events(trace, wanted, self.origin_ns, sys.maxsize)
        if not story.num_events:
            raise NothingToReplayError(_nothing(wanted))
        self._tables = tuple(story.tables.items())
        seqs = [table["seq"] for _, table in self._tables]
        every = np.concatenate(seqs)
        order = np.argsort(every, kind="stable")
        self._seqs = every[order]
        sizes = [len(one) for one in seqs]
        self._kind = np.repeat(np.arange(len(sizes)), sizes)[order].astype(np.int8)
        self._row = np.concatenate([np.arange(size) for size in sizes])[order]
        self._stages: NodeStages | None = None
        self._books: dict[int, AddressBook] = {}

    def __len__(self) -> int:
        return len(self._seqs)

    @property
    def duration_ns(self) -> int:
        """Time from the start of the first pass to the last event."""
        return self.after_ns(len(self) - 1)

    def after_ns(self, place: int) -> int:
        """Return the time of an event since the start of the first pass."""
        return int(self.history.t_ns[self._seqs[place]]) - self.origin_ns

    def place_at(self, after_ns: int) -> int:
        """The last event that happened until then, -1 before the first."""
        seq = self.history.seq_at(self.origin_ns + after_ns)
        return int(np.searchsorted(self._seqs, seq, side="right")) - 1

    def event(self, place: int) -> AnyEvent:
        """Return the event at a place.

        Raises:
            IndexError: There is no such event.
        """
        if not 0 <= place < len(self):
            raise IndexError(f"no event {place}: the replay has {len(self):,}")
        name, table = self._tables[int(self._kind[place])]
        row = int(self._row[place])
        (event,) = self.trace.events_of({name: table.at(slice(row, row + 1))})
        return event

    def at(self, place: int, *, most: int | None = None) -> ReplayedEvent:
        """An event, and the engine right after it.

        Args:
            place: Index of the event.
            most: Of so many tasks of each queue and so many waiting nodes at most, but
                at least of one, it is told what they are.

        Raises:
            IndexError: There is no such event.
        """
        event = self.event(place)
        moment = self.history.at(event.seq, most=most)
        choice = None
        if isinstance(event, TaskPopped):
            choice = choice_of(self.history, event, moment)
        return ReplayedEvent(
            place=place,
            after_ns=event.t_ns - self.origin_ns,
            event=event,
            choice=choice,
            moment=moment,
        )

    def of_kind(self, kind: str) -> Column:
        """The places of all events of a kind, such as ``task_popped``."""
        names = [name for name, _ in self._tables]
        if kind not in names:
            return np.empty(0, np.int64)
        return np.flatnonzero(self._kind == names.index(kind))

    def about(self, task: int, node: int) -> Column:
        """Return the places of all events of a pass about one of its nodes."""
        seqs = []
        for _, table in self._tables:
            is_meant = np.zeros(table.num_rows, np.bool_)
            for name in ("node", "producer", "pushed_by"):
                if name in table:
                    is_meant |= table.narrow(name) == node
            is_meant &= table.narrow("task") == task
            seqs.append(table.narrow("seq")[is_meant])
        return np.searchsorted(self._seqs, np.sort(np.concatenate(seqs)))

    def find(self, address: str, task: int) -> tuple[int, int]:
        """The pass and the node that an address means.

        It is looked for in pass `task`, then in the passes that begin after it, then in
        those before: in so many that nobody waits long.

        Raises:
            NoSuchNodeError: It means none, or several; the text names some.
        """
        here = self.tasks.index(task) if task in self.tasks else 0
        nearest = (*self.tasks[here:], *self.tasks[:here][::-1])
        first: NoSuchNodeError | None = None
        for one in nearest[:MAX_SEARCHED]:
            try:
                return one, self._book(one).find(address)
            except NoSuchNodeError as error:
                if isinstance(error, SeveralNodesError) and error.nodes:
                    raise
                first = first or error
        raise first or NoSuchNodeError("the replay has no pass")

    def prepare(self) -> None:
        """Prepare the first search in advance, perhaps on a thread."""
        for task in self.tasks[:1]:
            self._book(task)

    def _book(self, task: int) -> AddressBook:
        known = self._books.get(task)
        if known is None:
            if len(self._books) >= MAX_SEARCHED:
                self._books = {}
            known = self._books[task] = AddressBook(self.trace, task)
        return known

    def around(self, task: int, node: int, place: int) -> Neighborhood:
        """A node and its neighbors right after an event."""
        if self._stages is None:
            self._stages = NodeStages(self.trace)
        return self._stages.around(task, node, int(self._seqs[place]))


def document_of(shown: ReplayedEvent) -> dict[str, Any]:
    """Return the output of ``gradviz replay --json`` for an event."""
    document = msgspec.to_builtins(shown, str_keys=True)
    return {"schema": SCHEMA, "version": VERSION, **document}


def _nothing(wanted: Filter) -> str:
    narrowed = [
        *([f"of {wanted.subject.name}"] if wanted.subject else []),
        *([f"of kind {' or '.join(wanted.kinds[:5])}"] if wanted.kinds else []),
        *(["from then on"] if wanted.begin_ns is not None else []),
        *(["until then"] if wanted.end_ns is not None else []),
    ]
    return (
        f"there is nothing to replay: the passes have no events {', '.join(narrowed)}"
    )
