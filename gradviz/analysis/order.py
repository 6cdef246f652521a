"""The execution order of a backward pass."""

from typing import Any, Final

import msgspec

from gradviz.analysis.executions import NodeStatus, definition, executions
from gradviz.trace.model import Trace

SCHEMA: Final = "gradviz.order"
VERSION: Final = 1


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


def execution_order(trace: Trace, task: int) -> tuple[OrderRow, ...]:
    """Every node that was started in pass `task`, in order of start."""
    rows = []
    for index, run in enumerate(executions(trace, [task])):
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


def order_document(trace: Trace, task: int) -> dict[str, Any]:
    """The execution order as what ``gradviz show order --json`` prints."""
    return {
        "schema": SCHEMA,
        "version": VERSION,
        "task": task,
        "order": msgspec.to_builtins(execution_order(trace, task)),
    }
