"""The activity in a trace: the values that every format of timelines draws from.

Times are those of the trace. What has no end in it ends with its pass, or with the last
moment of the trace where that has none either.
"""

from collections.abc import Iterator, Mapping
from typing import NamedTuple

import msgspec
import numpy as np
import numpy.typing as npt

from gradviz.analysis.tables.calls import Calls, calls
from gradviz.analysis.tables.executions import Executions, execution_columns
from gradviz.analysis.tables.kernels import KernelRun, kernels
from gradviz.analysis.tables.passes import PassPart, pass_parts, passes
from gradviz.analysis.tables.queue_waits import queue_waits
from gradviz.analysis.tables.spans import NEVER
from gradviz.trace.format.model import Trace
from gradviz.trace.format.table import Column
from gradviz.trace.probe import How


class Queueing(NamedTuple):
    """Tasks that waited in ready queues, in the order of their pushes.

    Attributes:
        task: The pass of each.
        node: The node, -1 of a wake-up.
        queue: The queue.
        thread: Thread that pushed it.
        begin_ns: Time of its push.
        end_ns: Time of its pop.
        run: The place of its run among the runs, -1 if it did not run.
    """

    task: Column
    node: Column
    queue: Column
    thread: Column
    begin_ns: Column
    end_ns: Column
    run: Column


class HandedGradients(NamedTuple):
    """HandedGradients that reached a node, in that order.

    Attributes:
        producer: The place of the run that made each, -1 if that is not known.
        consumer: The place of the run that took it, -1 if none did.
        thread: Thread that handed it on.
        begin_ns: Time of its arrival.
        end_ns: Time at which the buffer that it lay in was let go.
        size_bytes: Bytes by which it made the buffer larger: 0 if it was added to what
            lay there.
    """

    producer: Column
    consumer: Column
    thread: Column
    begin_ns: Column
    end_ns: Column
    size_bytes: Column


class Activity(NamedTuple):
    """All of it.

    Attributes:
        origin_ns: The first moment of the trace; a sleep may have begun before it.
        end_ns: The last.
        passes: Each worker's part of every pass; that of the worker that called for
            the pass is as long as all of it.
        pass_ends: End of each pass, by its id.
        runs: Every node that ran, in order of start.
        run_ends: End of each run.
        queueing: Tasks that lay in ready queues.
        gradients: Gradients that were handed from node to node.
        kernels: Kernels that streams ran.
        forward: Calls of modules.
        optimizer: Steps of optimizers.
    """

    origin_ns: int
    end_ns: int
    passes: tuple[PassPart, ...]
    pass_ends: Mapping[int, int]
    runs: Executions
    run_ends: Column
    queueing: Queueing
    gradients: HandedGradients
    kernels: list[KernelRun]
    forward: Calls
    optimizer: Calls


def activity(trace: Trace) -> Activity:
    """Return a trace's activity over time."""
    every_pass = tuple(_parts(trace))
    ran = kernels(trace, limit=None)
    origin_ns, end_ns = _extent(trace, ran)
    ends = {
        one.task: end_ns if one.end_ns is None else one.end_ns for one in every_pass
    }

    def ended(
        task: Column, begin_ns: Column, known_ns: Column, known: npt.NDArray[np.bool_]
    ) -> Column:
        """The known ends, else that of the pass."""
        found = known_ns.copy()
        for place in np.flatnonzero(~known).tolist():
            until = ends.get(int(task[place]), end_ns)
            found[place] = max(until, int(begin_ns[place]))
        return found

    runs = execution_columns(trace)
    run_ends = ended(runs.task, runs.start_ns, runs.end_ns, runs.has_ended)

    waits = queue_waits(trace)
    pushed = waits.pushes
    popped_ns = pushed["t_ns"] + waits.waited_ns
    task, node = pushed["task"], pushed["node"]
    queueing = Queueing(
        task=task,
        node=node,
        queue=pushed["queue"],
        thread=pushed["thread"],
        begin_ns=pushed["t_ns"],
        end_ns=ended(task, pushed["t_ns"], popped_ns, waits.popped != NEVER),
        run=run_places(runs, task, node),
    )

    given = trace.columns["gradient_buffered"]
    consumer = run_places(runs, given["task"], given["node"])
    taken_ns = given["t_ns"].copy()
    taken_ns[consumer >= 0] = run_ends[consumer[consumer >= 0]]
    gradients = HandedGradients(
        producer=run_places(runs, given["task"], given["producer"]),
        consumer=consumer,
        thread=given["thread"],
        begin_ns=given["t_ns"],
        end_ns=ended(given["task"], given["t_ns"], taken_ns, consumer >= 0),
        size_bytes=np.where(given["how"] == How.FIRST, given["size_bytes"], 0),
    )
    return Activity(
        origin_ns=origin_ns,
        end_ns=end_ns,
        passes=every_pass,
        pass_ends=ends,
        runs=runs,
        run_ends=run_ends,
        queueing=queueing,
        gradients=gradients,
        kernels=ran,
        forward=calls(trace, "forward"),
        optimizer=calls(trace, "optimizer"),
    )


def _parts(trace: Trace) -> Iterator[PassPart]:
    wholes = {one.task: one for one in passes(trace, limit=None)}
    for part in pass_parts(trace):
        if whole := wholes.get(part.task):
            yield msgspec.structs.replace(
                part,
                begin_ns=whole.begin_ns,
                end_ns=whole.end_ns,
                status=whole.status,
                error=whole.error,
            )
        else:
            yield part


def run_places(runs: Executions, task: Column, node: Column) -> Column:
    """The place of the last run of each node in each pass, -1 for none."""
    size = len(runs.node)
    if not size:
        return np.full(len(task), -1)
    tasks = np.unique(np.concatenate((runs.task, task)), return_inverse=True)[1]
    nodes = np.unique(np.concatenate((runs.node, node)), return_inverse=True)[1]
    number = tasks * (int(nodes.max()) + 1) + nodes
    own, wanted = number[:size], number[size:]
    order = np.argsort(own, kind="stable")
    place = np.searchsorted(own[order], wanted, side="right") - 1
    found = order[place]
    return np.where((place >= 0) & (own[found] == wanted), found, -1)


def levels(begin_ns: Column, end_ns: Column, amount: Column) -> tuple[Column, Column]:
    """Return the times at which an amount changed, with its new values."""
    moments = np.concatenate((begin_ns, end_ns))
    steps = np.concatenate((amount, -amount))
    order = np.argsort(moments, kind="stable")
    moments, totals = moments[order], np.cumsum(steps[order])
    is_last = np.append(moments[1:] != moments[:-1], True)[: len(moments)]
    return moments[is_last], totals[is_last]


def _extent(trace: Trace, ran: list[KernelRun]) -> tuple[int, int]:
    """The first and the last moment that anything is known of."""
    moments = [one.start_ns for one in ran] + [one.end_ns for one in ran]
    for table in trace.columns.values():
        if table.num_rows:
            t_ns = table.narrow("t_ns")
            moments += int(t_ns.min()), int(t_ns.max())
    return min(moments, default=0), max(moments, default=0)
