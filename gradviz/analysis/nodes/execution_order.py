"""The execution order of a backward pass."""

from collections.abc import Iterator, Mapping, Sequence
from typing import Any, Final, Literal, TypeAlias, get_args

import msgspec
import numpy as np

from gradviz.analysis.nodes.inferred import inferred_passes
from gradviz.analysis.nodes.labels import FORMER_LABELS, Label, are_meant, labels
from gradviz.analysis.nodes.processor_waits import processor_waits
from gradviz.analysis.tables.executions import (
    MAX_NAMES,
    MAX_TEXT,
    Executions,
    NodeStatus,
    as_list,
    execution_columns,
    places_in_order,
)
from gradviz.analysis.tables.passes import MAX_PASSES
from gradviz.analysis.tables.worker_parts import (
    wholes_of,
    with_parts,
    worker_parts,
)
from gradviz.trace.events import MAX_SEQUENCE_NR
from gradviz.trace.format.model import Trace
from gradviz.trace.format.strings import shortened
from gradviz.trace.format.table import Column

SCHEMA: Final = "gradviz.order"
VERSION: Final = 1

#: Maximum number of rows shown; rows beyond them are counted.
MAX_ROWS: Final = 100_000

#: Keys to sort rows by: times, of which the longest comes first, and labels.
OrderKey: TypeAlias = Literal["start", "took", "running", "lost", "queued"] | Label

ORDER_KEYS: Final[tuple[OrderKey, ...]] = tuple(
    key for part in get_args(OrderKey) for key in get_args(part)
)

#: Former names of keys.
FORMER_ORDER_KEYS: Final[Mapping[str, OrderKey]] = {
    **FORMER_LABELS,
    "duration": "took",
    "wait": "queued",
}

#: Maximum number of inputs told of a node, and of dimensions of each.
MAX_INPUTS: Final = 8
MAX_DIMENSIONS: Final = 16

#: After all that can be sorted.
_LAST: Final = np.iinfo(np.int64).max


class OrderRow(msgspec.Struct, frozen=True, kw_only=True):
    """One node, in the order in which the engine began to evaluate it.

    Attributes:
        index: Its place in the order, from 0.
        node: Its id.
        name: Its class, such as ``MulBackward0``.
        sequence_nr: The later a node was made, the earlier it runs.
        topological_nr: Length of its longest path to a leaf.
        device: Device that it runs on, such as ``cpu``.
        thread: The trace's number for the thread it ran on.
        worker: Worker that ran it; None if the pass was not distributed.
        start_ns: Time of its start, on the clock of the trace's events.
        end_ns: Time at which it completed or raised; None if the trace ends before.
        waited_ns: From its push to its pop; None if it was never queued.
        status: Outcome of its evaluation.
        error: Error that it raised, empty if it did not.
        module: The part of a model that made it, empty outside a model.
        location: The line of the program that made it, empty if that is not known.
        shapes: Of the gradient at each of its inputs, None for any; of very many inputs
            or dimensions the first.
        parameters: Names of the leaf of an AccumulateGrad.
        thread_time_ns: Time that its thread was running meanwhile; None if unknown.
        processor_wait_ns: Time that the thread was not running, and nothing known says
            why; see `gradviz.analysis.nodes.processor_waits`.
    """

    index: int
    node: int
    name: str
    sequence_nr: int
    topological_nr: int
    device: str
    thread: int
    worker: int | None = None
    start_ns: int
    end_ns: int | None
    waited_ns: int | None
    status: NodeStatus = "completed"
    error: str = ""
    module: str = ""
    location: str = ""
    shapes: tuple[tuple[int, ...] | None, ...] = ()
    parameters: tuple[str, ...] = ()
    thread_time_ns: int | None = None
    processor_wait_ns: int = 0


class Order(msgspec.Struct, frozen=True, kw_only=True):
    """The execution order of one pass, or some of its rows in another order.

    Attributes:
        task: The pass.
        begin_ns: Time of its start, on the clock of the trace's events.
        num_nodes: Number of nodes that ran in it, on all workers.
        rows: Those that were asked for; of very many the first.
        omitted: Number of these that are left out.
        sort: Key that they are sorted by.
        is_inferred: True if nobody saw when they were pushed and popped.
    """

    task: int
    begin_ns: int
    num_nodes: int
    rows: tuple[OrderRow, ...]
    omitted: int
    sort: OrderKey = "start"
    is_inferred: bool = False


def execution_order(trace: Trace, task: int) -> tuple[OrderRow, ...]:
    """The nodes that were started in pass `task`, on all workers, in order of start.

    Of more than `MAX_ROWS` the first.
    """
    (order,) = execution_orders(trace, [task])
    return order.rows


def execution_orders(
    trace: Trace,
    tasks: Sequence[int],
    *,
    sort: OrderKey = "start",
    filters: Sequence[tuple[Label, str]] = (),
    limit: int = MAX_ROWS,
) -> Iterator[Order]:
    """The execution order of each of some passes, on all workers.

    Of very many nodes the first, and of more than `MAX_PASSES` passes.

    Args:
        trace: The trace.
        tasks: The passes.
        sort: Key that the rows of a pass are sorted by, those that are equal by start.
        filters: Labels that nodes must have; see `labels.is_meant`.
        limit: No more rows of each pass.
    """
    runs = execution_columns(trace, sorted(with_parts(trace, tasks)))
    whole = wholes_of(trace, runs.task)
    ordered = np.sort(whole)
    index = places_in_order(trace, runs)
    lost_ns = processor_waits(trace, runs)
    order = np.lexsort((index, _ranks(trace, runs, sort, lost_ns), whole))
    wanted = np.array(tasks[:MAX_PASSES], np.int64)
    sizes = np.diff(_borders(ordered, wanted)).ravel().tolist()
    order = order[are_meant(trace, runs, filters)[order]]
    borders = _borders(whole[order], wanted).tolist()
    inferred = inferred_passes(trace)
    begun = trace.columns["task_begun"]
    begun = begun.having("task", wanted)
    begin_ns = dict(zip(begun["task"].tolist(), begun["t_ns"].tolist(), strict=True))
    left = MAX_ROWS
    parts = [order[:0]]
    for begin, end in borders:
        parts.append(order[begin : begin + min(end - begin, limit, left)])
        left -= len(parts[-1])
    # Of very many nodes no more stay in memory than are shown.
    order, shown = np.concatenate(parts), [len(one) for one in parts[1:]]
    runs, index, lost_ns = runs.at(order), index[order], lost_ns[order]
    del whole, ordered, parts
    at = 0
    for task, size, (begin, end), many in zip(
        tasks, sizes, borders, shown, strict=False
    ):
        own = slice(at, at + many)
        at += many
        yield Order(
            task=task,
            begin_ns=begin_ns[task],
            num_nodes=size,
            rows=_rows(trace, runs.at(own), index[own], lost_ns[own]) if many else (),
            omitted=end - begin - many,
            sort=sort,
            is_inferred=task in inferred,
        )


def _borders(tasks: Column, wanted: Column) -> Column:
    """Return the bounds of each selected pass among others, sorted."""
    begins = np.searchsorted(tasks, wanted)
    return np.stack((begins, np.searchsorted(tasks, wanted, side="right")), axis=1)


def _ranks(trace: Trace, runs: Executions, sort: OrderKey, lost_ns: Column) -> Column:
    """Return the sort keys of rows, before their order of start."""
    match sort:
        case "start":
            return np.zeros(len(runs.node), np.int64)
        case "took":
            return np.where(runs.has_ended, -runs.took_ns, _LAST)
        case "running":
            return np.where(runs.thread_time_ns < 0, _LAST, -runs.thread_time_ns)
        case "lost":
            return -lost_ns
        case "queued":
            return np.where(runs.waited_ns < 0, _LAST, -runs.waited_ns)
        case _:
            return labels(trace, runs, sort).place


def _parameters(trace: Trace, runs: Executions) -> Iterator[tuple[str, ...]]:
    """The names of the leaf of each, as `definition` has them."""
    texts, place = trace.nodes.names(runs.node, "parameter")
    found = [
        tuple(shortened(name, MAX_TEXT) for name in text.split("\n")[:MAX_NAMES])
        if text not in {"", "?"}
        else ()
        for text in texts
    ]
    return map(found.__getitem__, place.tolist())


def _rows(
    trace: Trace, runs: Executions, index: Column, lost_ns: Column
) -> tuple[OrderRow, ...]:
    def texts(of: Label) -> Iterator[str]:
        found = labels(trace, runs, of)
        return map(found.texts.__getitem__, found.place.tolist())

    parts = worker_parts(trace)
    return tuple(
        OrderRow(
            index=place,
            node=run.node,
            name=name,
            sequence_nr=MAX_SEQUENCE_NR if sequence_nr < 0 else sequence_nr,
            topological_nr=topological_nr,
            device=device,
            thread=run.thread,
            worker=parts[run.task].worker if run.task in parts else None,
            start_ns=run.start_ns,
            end_ns=run.end_ns,
            waited_ns=run.waited_ns,
            status=run.status,
            error=run.error,
            module=module,
            location=location,
            shapes=tuple(
                None if one is None else one.shape[:MAX_DIMENSIONS]
                for one in inputs[:MAX_INPUTS]
            ),
            parameters=parameters,
            thread_time_ns=run.thread_time_ns,
            processor_wait_ns=processor_wait_ns,
        )
        for (
            place,
            run,
            name,
            device,
            module,
            location,
            parameters,
            sequence_nr,
            topological_nr,
            inputs,
            processor_wait_ns,
        ) in zip(
            index.tolist(),
            as_list(trace, runs),
            texts("name"),
            texts("device"),
            texts("module"),
            texts("line"),
            _parameters(trace, runs),
            trace.nodes.sequence_nrs(runs.node).tolist(),
            trace.nodes.topological_nrs(runs.node).tolist(),
            trace.nodes.inputs(runs.node),
            lost_ns.tolist(),
            strict=True,
        )
    )


def document_of(order: Order) -> dict[str, Any]:
    """Return the output of ``gradviz show order --json``."""
    return {
        "schema": SCHEMA,
        "version": VERSION,
        "task": order.task,
        "begin_ns": order.begin_ns,
        "order": msgspec.to_builtins(order.rows),
        **({"omitted": order.omitted} if order.omitted else {}),
    }
