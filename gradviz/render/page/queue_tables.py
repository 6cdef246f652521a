"""The tables of a page about queues: what lay in them, who waited for what."""

import numpy as np

from gradviz.analysis.spans import NEVER, Spans, ended_with_their_pass, in_order, spans
from gradviz.render.page.extract import Extract
from gradviz.render.page.tables import (
    GradientTable,
    SleepTable,
    StayTable,
    StreamWaitTable,
)


def stay_table(extract: Extract) -> StayTable:
    """What lay in which queue."""
    columns = extract.trace.columns
    popped = extract.of_tasks(columns["task_popped"])
    queued = spans(
        extract.of_tasks(columns["task_pushed"]), popped, ("task", "node", "queue")
    )
    popper = np.full(len(queued.begin), -1)
    if popped.num_rows:
        at = np.searchsorted(popped["seq"], queued.end)
        has_end = queued.end != NEVER
        popper[has_end] = popped["thread"][at[has_end]]
    queued = ended_with_their_pass(extract.trace, queued)
    rows = queued.rows
    return StayTable(
        rows["queue"],
        extract.task_places.of(rows["task"]),
        extract.node_places.of(rows["node"]),
        extract.moments(queued.begin),
        extract.until(queued.end),
        extract.node_places.of(rows["pushed_by"]),
        rows["thread"],
        popper,
        rows["what"],
        rows["reentrant_depth"],
        rows["sequence_nr"],
    )


def gradient_table(extract: Extract) -> GradientTable:
    """What nodes were given."""
    columns = extract.trace.columns
    given = extract.of_tasks(columns["gradient_buffered"])
    both = np.stack([given["task"], given["node"]])
    _, first, which = np.unique(both, axis=1, return_index=True, return_inverse=True)
    in_time = np.argsort(first)
    number = np.argsort(in_time)[which.ravel()]
    ends = in_order(columns["node_started"], columns["node_skipped"])
    until = spans(
        given.at(first[in_time]), extract.of_tasks(ends), ("task", "node")
    ).end[number]
    held = ended_with_their_pass(extract.trace, Spans(given, given["seq"], until))
    return GradientTable(
        extract.task_places.of(given["task"]),
        extract.node_places.of(given["node"]),
        extract.node_places.of(given["producer"]),
        given["input_nr"],
        given["remaining"],
        given["size_bytes"],
        extract.moments(given["seq"]),
        extract.until(held.end),
    )


def sleep_table(extract: Extract) -> SleepTable:
    """Which threads slept on queues meanwhile."""
    rows = extract.trace.columns["queue_waited"]
    begin = rows["t_ns"] - rows["waited_ns"]
    rows = rows.at((begin < extract.end_ns) & (rows["t_ns"] > extract.origin_ns))
    end = rows["t_ns"]
    return SleepTable(
        rows["thread"],
        rows["queue"],
        extract.since_ns(np.maximum(end - rows["waited_ns"], extract.origin_ns)),
        extract.since_ns(np.minimum(end, extract.end_ns)),
    )


def stream_wait_table(extract: Extract) -> StreamWaitTable:
    """Whose work which streams had to wait for."""
    rows = extract.of_tasks(extract.trace.columns["stream_waited"])
    rows = rows.at(rows["producer"] >= 0)
    return StreamWaitTable(
        extract.task_places.of(rows["task"]),
        extract.node_places.of(rows["node"]),
        extract.node_places.of(rows["producer"]),
    )
