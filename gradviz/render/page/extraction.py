"""From a trace to the tables of a page: one function for each of them."""

from collections.abc import Sequence
from typing import Final, Literal, TypeAlias

import numpy as np

from gradviz.analysis.critical_path import CriticalPath, SegmentKind
from gradviz.analysis.executions import MAX_TEXT, definition, execution_columns
from gradviz.analysis.graph import saved_bytes
from gradviz.analysis.kernels import kernels
from gradviz.analysis.memory import HeldMemory
from gradviz.analysis.processor_waits import processor_waits
from gradviz.analysis.shapes import Usual, medians_like
from gradviz.analysis.spans import NEVER, Spans, ended_with_their_pass, in_order, spans
from gradviz.render.page.columns import RowPlaces, TextTable
from gradviz.render.page.drawings import MAX_DRAWN
from gradviz.render.page.tables import (
    CostTable,
    EdgeTable,
    EventTable,
    GradientTable,
    KernelTable,
    MemoryTable,
    NodeTable,
    RunTable,
    SegmentTable,
    SleepTable,
    StayTable,
    StreamWaitTable,
)
from gradviz.render.text import clean, shape
from gradviz.trace.model import Trace
from gradviz.trace.strings import shortened
from gradviz.trace.table import Column, Table

#: So many nodes that did not run are in the graph.
MAX_REACHED: Final = 20_000

_NodeText: TypeAlias = Literal["name", "module", "parameter", "location", "device"]


class Extract:
    """The events of some passes, and what numbers of the trace are on their page.

    Attributes:
        trace: The trace.
        tasks: The passes.
        seq: Of each event.
        origin_ns: When the first event was, on the trace's clock.
        end_ns: When the last one was.
        kinds: The kinds of events that there are.
        task_places: Where passes are on the page.
        node_ids: Of the page's nodes.
        node_places: Where nodes are on the page.
        num_ran: So many of the nodes ran; they come first.
        texts: All texts of the page.
    """

    def __init__(self, trace: Trace, tasks: Sequence[int]) -> None:
        self.trace = trace
        self.tasks = np.array(tasks, np.int64)
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
            np.arange(len(tables)), [one.num_rows for one in tables.values()]
        )
        self._rows = in_order(*tables.values())
        self._code = code[
            np.argsort(np.concatenate([one["seq"] for one in tables.values()]))
        ]
        self.seq = self._rows["seq"]
        t_ns = self._rows["t_ns"]
        self.origin_ns, self.end_ns = int(t_ns.min()), int(t_ns.max())
        self.executions = execution_columns(trace, tasks)
        self.node_ids, self.num_ran = self._nodes()
        self.node_places = RowPlaces(self.node_ids)

    def of_tasks(self, table: Table) -> Table:
        """The rows of the passes."""
        return table.at(np.isin(table.narrow("task"), self.tasks))

    def moments(self, seqs: Column) -> Column:
        """The places of events, -1 of those that are none of the passes."""
        at = np.minimum(np.searchsorted(self.seq, seqs), len(self.seq) - 1)
        return np.where(self.seq[at] == seqs, at, -1)

    def until(self, seqs: Column) -> Column:
        """The first places at or after some events, -1 where there is none."""
        at = np.searchsorted(self.seq, seqs)
        return np.where((seqs == NEVER) | (at == len(self.seq)), -1, at)

    def since_ns(self, t_ns: Column) -> Column:
        """Times from the begin of the first pass."""
        return t_ns - self.origin_ns

    def wall_ns(self) -> int:
        """When the first event was, since 1970."""
        clock = self.trace.header.clock
        return clock.wall_ns + self.origin_ns - clock.monotonic_ns

    def places(self, texts: Sequence[str]) -> Column:
        """The places of texts, made harmless; -1 of an empty one."""
        cut = [clean(shortened(text, MAX_TEXT)) for text in texts]
        return np.where([not text for text in cut], -1, self.texts.places(cut)).astype(
            np.int64
        )

    def _nodes(self) -> tuple[Column, int]:
        """What ran, in order, what else events tell of, and what is behind that."""
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
                if consumer not in found and len(pending) < MAX_REACHED:
                    found.add(consumer)
                    pending.append(consumer)
        reached = np.array([one for one in pending if one >= 0], np.int64)
        return np.concatenate((known, reached)), len(ran)

    def events(self) -> EventTable:
        """All events of the passes."""
        rows = self._rows
        return EventTable(
            self.since_ns(rows["t_ns"]),
            self._code,
            self.task_places.of(rows["task"]),
            self.node_places.of(rows["node"]),
            rows["thread"],
        )

    def nodes(self) -> NodeTable:
        """What is known of the nodes."""
        definitions, ids = self.trace.nodes, self.node_ids

        def named(of: _NodeText) -> Column:
            texts, place = definitions.names(ids, of)
            return self.places(texts)[place]

        shapes = [
            next((shape(one.shape) for one in inputs if one is not None), "")
            for inputs in definitions.inputs(ids)
        ]
        saved = saved_bytes(self.trace)
        return NodeTable(
            id=ids,
            name=named("name"),
            module=named("module"),
            parameter=named("parameter"),
            location=named("location"),
            device=named("device"),
            shape=self.places(shapes),
            sequence_nr=definitions.sequence_nrs(ids),
            topological_nr=definitions.topological_nrs(ids),
            saved_bytes=np.array([saved.get(id_, 0) for id_ in ids.tolist()], np.int64),
        )

    def edges(self) -> EdgeTable:
        """The edges between them."""
        edges = self.trace.nodes.edges(self.node_ids)
        producer = np.repeat(
            np.arange(len(self.node_ids)), np.diff(edges.ends, prepend=0)
        )
        consumer = self.node_places.of(edges.consumer)
        is_there = (consumer >= 0) & (edges.consumer >= 0)
        return EdgeTable(
            producer[is_there], consumer[is_there], edges.input_nr[is_there]
        )

    def runs(self) -> RunTable:
        """Who ran when."""
        runs, columns = self.executions, self.trace.columns
        ends = in_order(columns["node_completed"], columns["node_failed"])
        ran = spans(
            self.of_tasks(columns["node_started"]),
            self.of_tasks(ends),
            ("task", "node"),
        )
        begin = self.moments(runs.seq)
        end = begin.copy()  # of a capture
        at = np.searchsorted(ran.begin, runs.seq)
        started = np.isin(runs.seq, ran.begin)
        end[started] = self.until(ran.end[at[started]])
        errors = [self.trace.strings[one] if one >= 0 else "" for one in runs.error]
        return RunTable(
            self.node_places.of(runs.node),
            self.task_places.of(runs.task),
            runs.thread,
            begin,
            end,
            self.since_ns(runs.start_ns),
            self.since_ns(runs.end_ns),
            runs.waited_ns,
            runs.thread_time_ns,
            runs.status,
            self.places(errors),
            processor_waits(self.trace, runs),
            *self._usual(),
        )

    def _usual(self) -> tuple[Column, Column, Column]:
        """Of each run in how many passes its node completed, and the medians there."""
        known = {
            (task, node): usual
            for task in self.tasks[:MAX_DRAWN].tolist()
            for node, usual in medians_like(self.trace, task).items()
        }
        tasks, nodes = self.executions.task, self.executions.node
        runs = zip(tasks.tolist(), nodes.tolist(), strict=True)
        rows = [known.get(run, Usual(0, 0, -1)) for run in runs]
        passes, took_ns, ran_ns = np.array(rows, np.int64).reshape(-1, 3).T
        return passes, np.where(passes == 0, -1, took_ns), ran_ns

    def stays(self) -> StayTable:
        """What lay in which queue."""
        columns = self.trace.columns
        popped = self.of_tasks(columns["task_popped"])
        queued = spans(
            self.of_tasks(columns["task_pushed"]), popped, ("task", "node", "queue")
        )
        popper = np.full(len(queued.begin), -1)
        if popped.num_rows:
            at = np.searchsorted(popped["seq"], queued.end)
            has_end = queued.end != NEVER
            popper[has_end] = popped["thread"][at[has_end]]
        queued = ended_with_their_pass(self.trace, queued)
        rows = queued.rows
        return StayTable(
            rows["queue"],
            self.task_places.of(rows["task"]),
            self.node_places.of(rows["node"]),
            self.moments(queued.begin),
            self.until(queued.end),
            self.node_places.of(rows["pushed_by"]),
            rows["thread"],
            popper,
            rows["what"],
            rows["reentrant_depth"],
            rows["sequence_nr"],
        )

    def gradients(self) -> GradientTable:
        """What nodes were given."""
        columns = self.trace.columns
        given = self.of_tasks(columns["gradient_buffered"])
        both = np.stack([given["task"], given["node"]])
        _, first, which = np.unique(
            both, axis=1, return_index=True, return_inverse=True
        )
        in_time = np.argsort(first)
        number = np.argsort(in_time)[which.ravel()]
        ends = in_order(columns["node_started"], columns["node_skipped"])
        until = spans(
            given.at(first[in_time]), self.of_tasks(ends), ("task", "node")
        ).end[number]
        held = ended_with_their_pass(self.trace, Spans(given, given["seq"], until))
        return GradientTable(
            self.task_places.of(given["task"]),
            self.node_places.of(given["node"]),
            self.node_places.of(given["producer"]),
            given["input_nr"],
            given["remaining"],
            given["size_bytes"],
            self.moments(given["seq"]),
            self.until(held.end),
        )

    def sleeps(self) -> SleepTable:
        """Which threads slept on queues meanwhile."""
        rows = self.trace.columns["queue_waited"]
        begin = rows["t_ns"] - rows["waited_ns"]
        rows = rows.at((begin < self.end_ns) & (rows["t_ns"] > self.origin_ns))
        end = rows["t_ns"]
        return SleepTable(
            rows["thread"],
            rows["queue"],
            self.since_ns(np.maximum(end - rows["waited_ns"], self.origin_ns)),
            self.since_ns(np.minimum(end, self.end_ns)),
        )

    def stream_waits(self) -> StreamWaitTable:
        """Whose work which streams had to wait for."""
        rows = self.of_tasks(self.trace.columns["stream_waited"])
        rows = rows.at(rows["producer"] >= 0)
        return StreamWaitTable(
            self.task_places.of(rows["task"]),
            self.node_places.of(rows["node"]),
            self.node_places.of(rows["producer"]),
        )

    def kernels(self) -> KernelTable:
        """What streams did meanwhile, and what was left for them to do."""
        ran = [
            one
            for one in kernels(self.trace)
            if one.launched_ns < self.end_ns and one.end_ns > self.origin_ns
        ]
        times = np.array(
            [(one.launched_ns, one.start_ns, one.end_ns) for one in ran], np.int64
        ).reshape(-1, 3)
        return KernelTable(
            self.places([one.stream for one in ran]),
            self.places([one.name for one in ran]),
            np.array([one.thread for one in ran], np.int64),
            *self.since_ns(times).T,
        )

    def memory(self, held: HeldMemory) -> MemoryTable:
        """What was held."""
        shift = held.origin_ns - self.origin_ns
        rows = [
            (number, at_ns + shift, size_bytes)
            for number, curve in enumerate(held.curves.values())
            for at_ns, size_bytes in curve
        ]
        return MemoryTable(*np.array(rows, np.int64).reshape(-1, 3).T)

    def segments(
        self, path: CriticalPath, kinds: Sequence[SegmentKind]
    ) -> SegmentTable:
        """The critical path of a pass."""
        shift = path.origin_ns - self.origin_ns
        rows = np.array(
            [
                (
                    kinds.index(one.kind),
                    one.begin_ns + shift,
                    one.end_ns + shift,
                    one.thread,
                    one.task,
                    one.node,
                )
                for one in path.segments
            ],
            np.int64,
        ).reshape(-1, 6)
        kind, begin, end, thread, task, node = rows.T
        streams = [one.stream for one in path.segments]
        return SegmentTable(
            kind,
            begin,
            end,
            thread,
            self.places(streams),
            self.task_places.of(task),
            self.node_places.of(node),
        )

    def costs(self, path: CriticalPath) -> CostTable:
        """What nodes cost that pass."""
        rows = np.array(
            [
                (
                    one.task,
                    one.node,
                    one.own_ns,
                    one.on_path_ns,
                    -1 if one.slack_ns is None else one.slack_ns,
                    -1 if one.if_free_ns is None else one.if_free_ns,
                )
                for one in path.nodes
            ],
            np.int64,
        ).reshape(-1, 6)
        task, node, *figures = rows.T
        return CostTable(self.task_places.of(task), self.node_places.of(node), *figures)


def _first_of_each(numbers: Column) -> Column:
    """Each number once, in the order in which they come first."""
    _, first = np.unique(numbers, return_index=True)
    return numbers[np.sort(first)]
