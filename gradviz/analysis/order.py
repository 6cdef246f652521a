"""The execution order of a backward pass."""

from collections.abc import Iterable, Iterator, Sequence
from typing import Any, Final

import msgspec
import numpy as np

from gradviz.analysis.executions import (
    Execution,
    NodeStatus,
    as_list,
    definition,
    execution_columns,
)
from gradviz.analysis.passes import MAX_PASSES
from gradviz.trace.model import Trace

SCHEMA: Final = "gradviz.order"
VERSION: Final = 1

#: So many rows are shown; rows beyond them are counted.
MAX_ROWS: Final = 100_000


class OrderRow(msgspec.Struct, frozen=True, kw_only=True):
    """One node, in the order in which the engine began to evaluate it.

    Attributes:
        index: Its place in the order, from 0.
        node: Its id.
        name: Its class, such as ``MulBackward0``.
        sequence_nr: The later a node was made, the earlier it runs.
        topological_nr: Length of its longest path to a leaf.
        device: Where it runs, such as ``cpu``.
        thread: The trace's number for the thread it ran on.
        start_ns: When it started, on the clock of the trace's events.
        end_ns: When it completed or raised; None if the trace ends before.
        waited_ns: From its push to its pop; None if it was never queued.
        status: How its evaluation ended.
        error: What it raised, empty if it did not.
    """

    index: int
    node: int
    name: str
    sequence_nr: int
    topological_nr: int
    device: str
    thread: int
    start_ns: int
    end_ns: int | None
    waited_ns: int | None
    status: NodeStatus = "completed"
    error: str = ""


class Order(msgspec.Struct, frozen=True, kw_only=True):
    """The execution order of one pass.

    Attributes:
        task: The pass.
        rows: Its nodes; of very many the first.
        omitted: How many more there are.
    """

    task: int
    rows: tuple[OrderRow, ...]
    omitted: int


def execution_order(trace: Trace, task: int) -> tuple[OrderRow, ...]:
    """The nodes that were started in pass `task`, in order of start.

    Of more than `MAX_ROWS` the first.
    """
    (order,) = execution_orders(trace, [task])
    return order.rows


def execution_orders(trace: Trace, tasks: Sequence[int]) -> Iterator[Order]:
    """The execution order of each of some passes.

    Of very many nodes the first, and of more than `MAX_PASSES` passes.
    """
    runs = execution_columns(trace, tasks)
    order = np.argsort(runs.task, kind="stable")
    ordered = runs.task[order]
    wanted = np.array(tasks[:MAX_PASSES], np.int64)
    begins = np.searchsorted(ordered, wanted).tolist()
    ends = np.searchsorted(ordered, wanted, side="right").tolist()
    left = MAX_ROWS
    for task, begin, end in zip(tasks, begins, ends, strict=False):
        shown = min(end - begin, left)
        left -= shown
        own = as_list(trace, runs.at(order[begin : begin + shown])) if shown else []
        yield Order(task=task, rows=_rows(trace, own), omitted=end - begin - shown)


def _rows(trace: Trace, runs: Iterable[Execution]) -> tuple[OrderRow, ...]:
    rows = []
    for index, run in enumerate(runs):
        node = definition(trace, run.node)
        rows.append(
            OrderRow(
                index=index,
                node=node.id,
                name=node.name,
                sequence_nr=node.sequence_nr,
                topological_nr=node.topological_nr,
                device=node.device,
                thread=run.thread,
                start_ns=run.start_ns,
                end_ns=run.end_ns,
                waited_ns=run.waited_ns,
                status=run.status,
                error=run.error,
            )
        )
    return tuple(rows)


def document_of(order: Order) -> dict[str, Any]:
    """The execution order as what ``gradviz show order --json`` prints."""
    return {
        "schema": SCHEMA,
        "version": VERSION,
        "task": order.task,
        "order": msgspec.to_builtins(order.rows),
        **({"omitted": order.omitted} if order.omitted else {}),
    }
