"""The extract of a trace that is on a page: some passes, and their place in it."""

from collections.abc import Sequence
from typing import Final

import numpy as np
import numpy.typing as npt

from gradviz.analysis.tables.executions import MAX_TEXT, definition, execution_columns
from gradviz.analysis.tables.spans import NEVER, Spans, in_order
from gradviz.render.page.columns import RowPlaces, TextTable
from gradviz.render.page.tables import EventTable
from gradviz.render.words.text import clean
from gradviz.trace.format.model import Trace
from gradviz.trace.format.strings import shortened
from gradviz.trace.format.table import Column, Narrow, Table, narrow

#: Maximum number of nodes in the graph that did not run.
MAX_REACHED: Final = 20_000


class Extract:
    """The events of some passes, and the trace's numbers on their page.

    Attributes:
        trace: The trace.
        tasks: The passes.
        last_seq: The last event that is looked at, None for all.
        seq: Of each event.
        origin_ns: Time of the first event, on the trace's clock.
        end_ns: Time of the last one.
        kinds: The kinds of events that there are.
        task_places: Places of the passes on the page.
        node_ids: Of the page's nodes.
        node_places: Places of the nodes on the page.
        num_ran: So many of the nodes ran; they come first.
        texts: All texts of the page.
    """

    def __init__(
        self, trace: Trace, tasks: Sequence[int], last_seq: int | None = None
    ) -> None:
        self.trace = trace
        self.tasks = np.array(tasks, np.int64)
        self.last_seq = last_seq
        self.task_places = RowPlaces(self.tasks)
        self.texts = TextTable()
        tables = {
            kind: self.of_tasks(table)
            for kind, table in trace.columns.items()
            if table.num_rows
        }
        tables = {kind: table for kind, table in tables.items() if table.num_rows}
        self.kinds = tuple(tables)
        code = np.repeat(
            narrow(np.arange(len(tables))), [one.num_rows for one in tables.values()]
        )
        self._rows = in_order(*tables.values())
        self._code = code[
            np.argsort(np.concatenate([one.narrow("seq") for one in tables.values()]))
        ]
        self.seq = self._rows["seq"]
        t_ns = self._rows["t_ns"]
        self.origin_ns, self.end_ns = int(t_ns.min()), int(t_ns.max())
        self.executions = execution_columns(trace, tasks)
        if last_seq is not None:
            shown = self.executions.seq <= last_seq
            self.executions = self.executions.at(np.flatnonzero(shown))
        self.node_ids, self.num_ran = self._nodes()
        self.node_places = RowPlaces(self.node_ids)

    def of_tasks(self, table: Table) -> Table:
        """The rows of the passes."""
        table = table.at(slice(self._num_until(table)))
        return table.at(np.isin(table.narrow("task"), self.tasks))

    def _num_until(self, table: Table) -> int | None:
        """Return the number of rows of a table up to the last event."""
        if self.last_seq is None:
            return None
        return int(np.searchsorted(table.narrow("seq"), self.last_seq, "right"))

    def shown(self, some: Spans) -> Spans:
        """Return those that have begun by the last event that is looked at."""
        if self.last_seq is None:
            return some
        number = int(np.searchsorted(some.begin, self.last_seq, "right"))
        return Spans(
            some.rows.at(slice(number)), some.begin[:number], some.end[:number]
        )

    def moments(self, seqs: Column) -> Column:
        """The places of events, -1 of those that are none of the passes."""
        at = np.minimum(np.searchsorted(self.seq, seqs), len(self.seq) - 1)
        return np.where(self.seq[at] == seqs, at, -1)

    def until(self, seqs: Column) -> Column:
        """The first places at or after some events, -1 where there is none."""
        at = np.searchsorted(self.seq, seqs)
        return np.where((seqs == NEVER) | (at == len(self.seq)), -1, at)

    def since_ns(self, t_ns: Column) -> Column:
        """Return times since the start of the first pass."""
        return t_ns - self.origin_ns

    def is_shown(self, since_ns: Column) -> npt.NDArray[np.bool_]:
        """Return which times are not after the extract."""
        if self.last_seq is None:
            return np.ones(len(since_ns), np.bool_)
        return np.asarray(since_ns <= self.end_ns - self.origin_ns)

    def wall_ns(self) -> int:
        """Return the time of the first event, since 1970."""
        clock = self.trace.header.clock
        return clock.wall_ns + self.origin_ns - clock.monotonic_ns

    def places(self, texts: Sequence[str]) -> Column:
        """The places of texts, made harmless; -1 of an empty one."""
        # Very many are the same: each is looked at once.
        found = {"": -1}
        for text in texts:
            if text not in found:
                cut = clean(shortened(text, MAX_TEXT))
                found[text] = self.texts.place(cut) if cut else -1
        return np.array([found[text] for text in texts], np.int64)

    def events(self, stages: Narrow) -> EventTable:
        """All events of the passes, with the stages that nodes get by them."""
        rows = self._rows
        return EventTable(
            self.since_ns(rows["t_ns"]),
            self._code,
            self.task_places.of(rows["task"]),
            self.node_places.of(rows["node"]),
            rows["thread"],
            stages,
        )

    def reached(self, nodes: Sequence[int]) -> list[tuple[int, int]]:
        """Return the passes with events about some nodes: pairs of pass and node."""
        rows = self._rows.at(np.isin(self._rows["node"], np.array(nodes, np.int64)))
        pairs = zip(rows["task"].tolist(), rows["node"].tolist(), strict=True)
        return list(dict.fromkeys(pairs))

    def _nodes(self) -> tuple[Column, int]:
        """Return the nodes that ran, in order, then others in events or edges."""
        ran = _first_of_each(self.executions.node)
        told = self._rows["node"]
        known = _first_of_each(np.concatenate((ran, told[told >= 0])))
        found = set(known.tolist())
        consumers = self.trace.nodes.edges(known).consumer
        pending = [
            one for one in _first_of_each(consumers).tolist() if one not in found
        ][:MAX_REACHED]
        found.update(pending)
        for node in pending:  # grows while it is walked: breadth first
            for consumer, _ in definition(self.trace, node).edges:
                is_new = consumer not in found and consumer in self.trace.nodes
                if is_new and len(pending) < MAX_REACHED:
                    found.add(consumer)
                    pending.append(consumer)
        reached = np.array([one for one in pending if one >= 0], np.int64)
        return np.concatenate((known, reached)), len(ran)


def _first_of_each(numbers: Column) -> Column:
    """Each number once, in the order in which they come first."""
    _, first = np.unique(numbers, return_index=True)
    return numbers[np.sort(first)]
