"""The tables of a page about nodes: what they are, how they hang together, who ran."""

from typing import Literal, TypeAlias

import numpy as np

from gradviz.analysis.graph import saved_bytes
from gradviz.analysis.processor_waits import processor_waits
from gradviz.analysis.shapes import Usual, medians_like
from gradviz.analysis.spans import in_order, spans
from gradviz.render.page.drawings import MAX_DRAWN
from gradviz.render.page.extract import Extract
from gradviz.render.page.families import family_places
from gradviz.render.page.tables import EdgeTable, NodeTable, RunTable
from gradviz.render.text import shape
from gradviz.trace.table import Column

_NodeText: TypeAlias = Literal["module", "parameter", "location", "device"]


def node_table(extract: Extract) -> NodeTable:
    """What is known of the nodes."""
    definitions, ids = extract.trace.nodes, extract.node_ids

    def named(of: _NodeText) -> Column:
        texts, place = definitions.names(ids, of)
        return extract.places(texts)[place]

    names, place = definitions.names(ids, "name")

    shapes = [
        next((shape(one.shape) for one in inputs if one is not None), "")
        for inputs in definitions.inputs(ids)
    ]
    saved = saved_bytes(extract.trace)
    return NodeTable(
        id=ids,
        name=extract.places(names)[place],
        family=family_places(names)[place],
        module=named("module"),
        parameter=named("parameter"),
        location=named("location"),
        device=named("device"),
        shape=extract.places(shapes),
        sequence_nr=definitions.sequence_nrs(ids),
        topological_nr=definitions.topological_nrs(ids),
        saved_bytes=np.array([saved.get(id_, 0) for id_ in ids.tolist()], np.int64),
    )


def edge_table(extract: Extract) -> EdgeTable:
    """The edges between them."""
    edges = extract.trace.nodes.edges(extract.node_ids)
    producer = np.repeat(
        np.arange(len(extract.node_ids)), np.diff(edges.ends, prepend=0)
    )
    consumer = extract.node_places.of(edges.consumer)
    is_there = (consumer >= 0) & (edges.consumer >= 0)
    return EdgeTable(producer[is_there], consumer[is_there], edges.input_nr[is_there])


def run_table(extract: Extract) -> RunTable:
    """Who ran when."""
    runs, columns = extract.executions, extract.trace.columns
    ends = in_order(columns["node_completed"], columns["node_failed"])
    ran = spans(
        extract.of_tasks(columns["node_started"]),
        extract.of_tasks(ends),
        ("task", "node"),
    )
    begin = extract.moments(runs.seq)
    end = begin.copy()  # of a capture
    at = np.searchsorted(ran.begin, runs.seq)
    started = np.isin(runs.seq, ran.begin)
    end[started] = extract.until(ran.end[at[started]])
    errors = [extract.trace.strings[one] if one >= 0 else "" for one in runs.error]
    return RunTable(
        extract.node_places.of(runs.node),
        extract.task_places.of(runs.task),
        runs.thread,
        begin,
        end,
        extract.since_ns(runs.start_ns),
        extract.since_ns(runs.end_ns),
        runs.waited_ns,
        runs.thread_time_ns,
        runs.status,
        extract.places(errors),
        processor_waits(extract.trace, runs),
        *_usual(extract),
    )


def _usual(extract: Extract) -> tuple[Column, Column, Column]:
    """Of each run in how many passes its node completed, and the medians there."""
    is_one = len(extract.trace.tasks) == 1  # of which nothing is usual
    known = {
        (task, node): usual
        for task in extract.tasks[: 0 if is_one else MAX_DRAWN].tolist()
        for node, usual in medians_like(extract.trace, task).items()
    }
    tasks, nodes = extract.executions.task, extract.executions.node
    runs = zip(tasks.tolist(), nodes.tolist(), strict=True)
    rows = [known.get(run, Usual(0, 0, -1)) for run in runs]
    passes, took_ns, ran_ns = np.array(rows, np.int64).reshape(-1, 3).T
    return passes, np.where(passes == 0, -1, took_ns), ran_ns
