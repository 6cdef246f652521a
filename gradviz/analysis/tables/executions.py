"""Runs of nodes: events of single nodes joined into rows, with their threads.

Order, timeline, graph and summary all start from here.
"""

from collections.abc import Mapping, Sequence
from typing import Final, Literal, NamedTuple, TypeAlias, get_args

import msgspec
import numpy as np
import numpy.typing as npt

from gradviz.analysis.tables.worker_parts import whole_of, wholes_of, with_parts
from gradviz.trace.format.model import NodeDefinition, Trace
from gradviz.trace.format.strings import shortened
from gradviz.trace.format.table import Column, Narrow, Table, different

#: A timeline shows no more nodes than this, and no more kernels; the rest is counted.
MAX_SHOWN: Final = 50_000

#: Longer names and places are cut in all views: a trace may repeat one very often.
MAX_TEXT: Final = 300

#: A parameter that is shared by more modules has so many names in views.
MAX_NAMES: Final = 8

_Truths: TypeAlias = npt.NDArray[np.bool_]

#: Products of numbers below this one fit 64 bits.
_MOST: Final = 1 << 31

#: End of a node's evaluation. A node that was reached only for its gradient to be
#: captured did not run; one whose end the trace does not have is unfinished.
NodeStatus: TypeAlias = Literal["completed", "captured", "failed", "unfinished"]


#: Each status, in the order in which `Executions` counts them.
STATUSES: Final[tuple[NodeStatus, ...]] = get_args(NodeStatus)


class Execution(msgspec.Struct, frozen=True, gc=False):
    """One node that a thread began to evaluate in one pass.

    Attributes:
        task: The pass.
        node: The node.
        thread: Thread on which it ran.
        start_ns: Start time, on the trace's clock.
        end_ns: Time at which its gradients had been handed on, or at which it raised;
            None if the trace has neither.
        waited_ns: From its push to its pop; None if the trace lacks one of them.
        status: Outcome of its evaluation.
        error: Error that it raised, empty if it did not.
        thread_time_ns: Time of it that its thread was running; None if unknown.
    """

    task: int
    node: int
    thread: int
    start_ns: int
    end_ns: int | None
    waited_ns: int | None
    status: NodeStatus
    error: str
    thread_time_ns: int | None = None

    @property
    def took_ns(self) -> int | None:
        """From its start to its end, however it ended; None if the trace lacks it."""
        return None if self.end_ns is None else self.end_ns - self.start_ns


class Executions(NamedTuple):
    """Nodes that were started, in order of start, as columns.

    Attributes:
        task: The pass of each.
        node: The node.
        thread: Thread on which it ran.
        start_ns: Start time, on the trace's clock.
        end_ns: Time at which its gradients had been handed on, or at which it raised;
            where the trace has neither, its start time.
        has_ended: True if the trace has either.
        waited_ns: From its push to its pop; -1 if the trace lacks one of them.
        status: Outcome of its evaluation: a place in `STATUSES`.
        error: Error that it raised: a place in the trace's strings, -1 if it did not.
        thread_time_ns: Time of it that its thread was running; -1 if unknown.
        queue: Queue to which it was pushed; -1 if the trace lacks its push.
        pushed_ns: Time of that push; 0 if the trace lacks it.
        popped_ns: Time at which it left that queue; 0 if the trace lacks it.
        was_popped: True if the trace has that.
        seq: The event that it was started with, or captured.
    """

    task: Column
    node: Column
    thread: Column
    start_ns: Column
    end_ns: Column
    has_ended: _Truths
    waited_ns: Column
    status: Column
    error: Column
    thread_time_ns: Column
    queue: Column
    pushed_ns: Column
    popped_ns: Column
    was_popped: _Truths
    seq: Column

    @property
    def took_ns(self) -> Column:
        """From each start to its end, however it ended; 0 if that is not known."""
        return self.end_ns - self.start_ns

    def at(self, places: "slice | Column") -> "Executions":
        """Some of them."""
        return Executions(*(column[places] for column in self))  # type: ignore[arg-type]


def execution_columns(trace: Trace, tasks: Sequence[int] | None = None) -> Executions:
    """Every node that was started, in order of start.

    A node of which only the capture is known counts as started and ended with it.

    Args:
        trace: The trace.
        tasks: The passes wanted, None for all.
    """
    started = _begun(trace, tasks)
    began, is_capture = started.rows, started.is_capture
    runs = _Runs(started)
    del started

    def last(kind: str, *names: str) -> tuple[list[Narrow], _Truths]:
        return runs.last(_of_passes(trace, kind, tasks), names)

    (pushed, queue), was_pushed = last("task_pushed", "t_ns", "queue")
    (popped,), was_popped = last("task_popped", "t_ns")
    pushed_ns, popped_ns = pushed.astype(np.int64), popped.astype(np.int64)
    waited_ns = popped_ns - pushed_ns
    np.maximum(waited_ns, 0, out=waited_ns)
    waited_ns[~(was_pushed & was_popped)] = -1
    queue = np.where(was_pushed, queue, -1).astype(np.int64)
    del pushed, popped, was_pushed
    (ended, completed), has_ended = last("node_completed", "t_ns", "thread_time_ns")
    (failed, until, errors), has_failed = last(
        "node_failed", "t_ns", "thread_time_ns", "error"
    )
    _, was_captured = last("capture_taken")
    # A node that ran has freed its gradients.
    _, has_freed = last("buffer_freed")
    start_ns = began.t_ns.astype(np.int64)
    end_ns = np.where(has_ended, ended, start_ns)
    end_ns[is_capture] = start_ns[is_capture]
    end_ns[has_failed] = failed[has_failed]
    thread_time_ns = np.where(has_ended, completed, -1).astype(np.int64)
    thread_time_ns[has_failed] = until[has_failed]
    # The two clocks may differ by what their readings take.
    np.minimum(thread_time_ns, end_ns - start_ns, out=thread_time_ns)
    has_ended |= is_capture
    has_ended |= has_failed
    status = np.full(len(start_ns), _status("completed"))
    status[was_captured & ~has_freed] = _status("captured")
    status[~has_ended] = _status("unfinished")
    status[has_failed] = _status("failed")
    return Executions(
        task=began.task.astype(np.int64),
        node=began.node.astype(np.int64),
        thread=began.thread.astype(np.int64),
        start_ns=start_ns,
        end_ns=end_ns,
        has_ended=has_ended,
        waited_ns=waited_ns,
        status=status,
        error=np.where(has_failed, errors, -1).astype(np.int64),
        thread_time_ns=thread_time_ns,
        queue=queue,
        pushed_ns=pushed_ns,
        popped_ns=popped_ns,
        was_popped=was_popped,
        seq=began.seq.astype(np.int64),
    )


def failed_places(columns: Executions) -> Column:
    """Return the places of the nodes that raised."""
    return np.flatnonzero(columns.status == _status("failed"))


def as_list(trace: Trace, columns: Executions) -> list[Execution]:
    """Each of the rows."""
    texts = {
        place: shortened(trace.strings[place], MAX_TEXT) if place >= 0 else ""
        for place in set(columns.error.tolist())
    }
    return [
        Execution(
            task,
            node,
            thread,
            start_ns,
            end_ns if has_ended else None,
            None if waited_ns < 0 else waited_ns,
            STATUSES[status],
            texts[error],
            None if thread_time_ns < 0 else thread_time_ns,
        )
        for (
            task,
            node,
            thread,
            start_ns,
            end_ns,
            has_ended,
            waited_ns,
            status,
            error,
            thread_time_ns,
        ) in zip(*(column.tolist() for column in columns[:10]), strict=True)
    ]


def definition(trace: Trace, node: int) -> NodeDefinition:
    """Return the definition of a node, with long texts cut.

    If its definition is lost, a stand-in named ``?``.
    """
    known = trace.nodes.get(node)
    if known is None:
        return NodeDefinition(
            id=node,
            name="?",
            sequence_nr=0,
            topological_nr=0,
            device="?",
            edges=(),
            inputs=(),
        )
    names = known.parameters
    if names:
        cut = [shortened(text, MAX_TEXT) for text in names[:MAX_NAMES]]
        names = tuple(cut)
    texts = known.name, known.device, known.location, known.module
    if max(map(len, texts)) <= MAX_TEXT and names == known.parameters:
        return known
    return msgspec.structs.replace(
        known,
        name=shortened(known.name, MAX_TEXT),
        device=shortened(known.device, MAX_TEXT),
        location=shortened(known.location, MAX_TEXT),
        module=shortened(known.module, MAX_TEXT),
        parameters=names,
    )


def places_in_order(trace: Trace, runs: Executions) -> Column:
    """Return the place of each node in the execution order of its pass, on all workers.

    Args:
        trace: The trace.
        runs: Nodes of some passes, all of each, in order of start.
    """
    whole = wholes_of(trace, runs.task)
    order = np.argsort(whole, kind="stable")
    ordered = whole[order]
    found = np.empty(len(order), np.int64)
    found[order] = np.arange(len(order)) - np.searchsorted(ordered, ordered)
    return found


class NodeNumbers:
    """Numbers of the nodes that ran: their places in the order of their pass.

    Args:
        trace: The trace.
        tasks: Only nodes of these passes have one, of all workers; None for all.
    """

    def __init__(self, trace: Trace, tasks: Sequence[int] | None = None) -> None:
        self._trace = trace
        if tasks is not None:
            tasks = sorted(with_parts(trace, tasks))
        began = _begun(trace, tasks).rows
        whole = wholes_of(trace, began.task.astype(np.int64))
        order = np.argsort(whole, kind="stable")
        self._whole, self._node = whole[order], began.node[order]
        self._known: dict[int, Mapping[int, int]] = {}

    def of_pass(self, task: int) -> Mapping[int, int]:
        """Return the numbers in a pass, or in the one that `task` is a part of."""
        whole = whole_of(self._trace, task)
        if whole not in self._known:
            begin, end = np.searchsorted(self._whole, (whole, whole + 1))
            nodes = self._node[begin:end].tolist()
            self._known[whole] = dict(zip(nodes, range(len(nodes)), strict=True))
        return self._known[whole]

    def of(self, task: int, node: int) -> int | None:
        """Return the number of a node in a pass; None if it did not run there."""
        return self.of_pass(task).get(node)


class _PassRows(NamedTuple):
    """The rows of one kind of event that belong to some passes, in order of seq."""

    task: Narrow
    node: Narrow
    seq: Narrow
    thread: Narrow
    t_ns: Narrow


class _StartedRows(NamedTuple):
    """Nodes that were started, or of which only the capture is known, in order of seq.

    Attributes:
        rows: The events that began them.
        key: Of each pair of task and node its number.
        is_capture: True for each event that is a capture.
        number: Gives these numbers.
    """

    rows: _PassRows
    key: Column
    is_capture: _Truths
    number: "_Numbers"


def _begun(trace: Trace, tasks: Sequence[int] | None) -> _StartedRows:
    starts = _rows(trace, "node_started", tasks)
    captures = _rows(trace, "capture_taken", tasks)
    number = _Numbers(starts, captures)
    start_keys, capture_keys = number(starts), number(captures)
    _, first = np.unique(capture_keys, return_index=True)
    only = first[_places(np.sort(start_keys), capture_keys[first]) < 0]
    order = np.argsort(np.concatenate((starts.seq, captures.seq[only])), kind="stable")
    rows = _PassRows(
        *(
            np.concatenate((one, other[only]))[order]
            for one, other in zip(starts, captures, strict=True)
        )
    )
    key = np.concatenate((start_keys, capture_keys[only]))[order]
    return _StartedRows(rows, key, order >= len(start_keys), number)


def _rows(trace: Trace, kind: str, tasks: Sequence[int] | None) -> _PassRows:
    return _PassRows(*map(_of_passes(trace, kind, tasks).narrow, _PassRows._fields))


def _of_passes(trace: Trace, kind: str, tasks: Sequence[int] | None) -> Table:
    table = trace.columns[kind]
    if tasks is None:
        return table
    return table.having("task", tasks)


class _Numbers:
    """Gives each pair of task and node that occurs in some rows a number of its own."""

    def __init__(self, *some: _PassRows) -> None:
        self._tasks = _Ids(np.concatenate([rows.task for rows in some]))
        self._nodes = _Ids(np.concatenate([rows.node for rows in some]))

    def __call__(self, rows: _PassRows) -> Column:
        """The number of each row; -1 where it has none."""
        task, node = self._tasks.places(rows.task), self._nodes.places(rows.node)
        number = task * self._nodes.size + node
        number[(task < 0) | (node < 0)] = -1
        return number


class _Ids:
    """Gives ids places from 0: how far each lies above the least.

    Where they lie too far apart, as in a damaged trace, their places in order.

    Attributes:
        size: All places are below.
    """

    def __init__(self, ids: Narrow) -> None:
        least, largest = (int(ids.min()), int(ids.max())) if len(ids) else (0, -1)
        self._least, self._largest = least, largest
        self.size = largest - least + 1
        self._ordered = None
        if self.size > _MOST:
            self._ordered = different(ids)
            self.size = len(self._ordered)

    def places(self, ids: Narrow) -> Column:
        """The place of each id, -1 for one that has none."""
        if self._ordered is not None:
            return _places(self._ordered, ids)
        places = ids.astype(np.int64)
        has_none = (places < self._least) | (places > self._largest)
        places -= self._least
        places[has_none] = -1
        return places


def _places(different: Narrow, numbers: Narrow) -> Column:
    """Return the place of each number among sorted ones, -1 where there is none."""
    if not len(different):
        return np.full(len(numbers), -1)
    place = np.searchsorted(different, numbers)
    place[place == len(different)] = 0
    return np.where(different[place] == numbers, place, -1)


class _Runs:
    """Finds the events of nodes that were started.

    Args:
        began: The nodes.
    """

    def __init__(self, began: _StartedRows) -> None:
        self._number = began.number
        self._keys = different(began.key)
        self._run = np.searchsorted(self._keys, began.key)

    def last(self, table: Table, names: Sequence[str]) -> tuple[list[Narrow], _Truths]:
        """Numbers of the last event in a table of each node, and if there is one."""
        if not table.num_rows:
            num_runs = len(self._run)
            nothing = [np.zeros(num_runs, np.int8) for _ in names]
            return nothing, np.zeros(num_runs, np.bool_)
        rows = _PassRows(*map(table.narrow, _PassRows._fields))
        place = _places(self._keys, self._number(rows))
        is_known = np.flatnonzero(place >= 0)
        last = np.full(len(self._keys), -1, np.int32)
        last[place[is_known]] = is_known  # of several the last one stays
        del place, is_known
        row = last[self._run]
        found = row >= 0
        columns = [table.narrow(name)[row] for name in names]
        for column in columns:
            column[~found] = 0
        return columns, found


def _status(status: NodeStatus) -> int:
    return STATUSES.index(status)
