"""The tables of a page about nodes: definitions, edges, runs, and stages in time."""

from collections import defaultdict
from collections.abc import Sequence
from typing import Final, Literal, TypeAlias

import numpy as np

from gradviz.analysis.graphs.backward_graph import LEAF
from gradviz.analysis.moments.engine_state import running_spans
from gradviz.analysis.moments.explanation import MAX_TOLD
from gradviz.analysis.moments.node_stages import (
    OVER,
    STAGES,
    StageChanges,
    passes_over,
    stage_changes,
)
from gradviz.analysis.nodes.op_families import OP_FAMILIES, op_family
from gradviz.analysis.nodes.processor_waits import processor_waits
from gradviz.analysis.nodes.rpc_edges import RpcEdges
from gradviz.analysis.tables.hook_calls import HookCall, hook_calls
from gradviz.analysis.tables.passes import passes
from gradviz.analysis.tables.saved_bytes import saved_bytes
from gradviz.analysis.training.pass_shapes import Usual, medians_like
from gradviz.render.page.drawings import MAX_DRAWN
from gradviz.render.page.extract import Extract
from gradviz.render.page.tables import (
    EdgeTable,
    EndingTable,
    HookTable,
    NodeTable,
    RpcEdgeTable,
    RunTable,
)
from gradviz.render.words.hook_text import hook_texts
from gradviz.render.words.rpc_edge_text import RpcEdgeSentence, arrival_of, departure_of
from gradviz.render.words.text import shape
from gradviz.trace.format.model import InputDefinition
from gradviz.trace.format.table import Column, Narrow

#: Families of operations, as all pictures have them; leaves are one more.
FAMILIES: Final = (*OP_FAMILIES, "leaves")

#: The facts of an explanation that are whole sentences about another worker.
RPC_EDGE_FACTS: Final = ("came", "never_came", "went")

_NodeText: TypeAlias = Literal["module", "parameter", "location", "device"]


def node_table(extract: Extract) -> NodeTable:
    """Return the table of nodes."""
    definitions, ids = extract.trace.nodes, extract.node_ids

    def named(of: _NodeText) -> Column:
        texts, place = definitions.names(ids, of)
        return extract.places(texts)[place]

    names, place = definitions.names(ids, "name")

    # Nodes with the same inputs share one tuple of them.
    known: dict[tuple[InputDefinition | None, ...], str] = {(): ""}
    shapes = []
    for inputs in definitions.inputs(ids):
        if inputs not in known:
            one = next((one for one in inputs if one is not None), None)
            known[inputs] = "" if one is None else shape(one.shape)
        shapes.append(known[inputs])
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
        saved_bytes=saved_bytes(extract.trace, ids),
    )


def family_places(names: Sequence[str]) -> Column:
    """Return the places in `FAMILIES` of nodes, or kernels, of these names."""
    return np.array(
        [
            FAMILIES.index("leaves" if name == LEAF else op_family(name))
            for name in names
        ],
        np.int64,
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


def rpc_edge_table(extract: Extract) -> RpcEdgeTable:
    """Return gradients that came from other workers, or went to them."""
    if not extract.trace.columns["message_sent"].num_rows:
        return RpcEdgeTable(*np.empty((6, 0), np.int64))
    found = RpcEdges(extract.trace, extract.node_ids)
    tasks = extract.tasks.tolist()
    begun = passes(extract.trace, limit=None, tasks=tasks)
    begin_ns = {part: one.begin_ns for one in begun for part in one.parts}
    told: list[tuple[int, int, str, RpcEdgeSentence]] = []
    for task, node in extract.reached(found.nodes):
        crossing = found.of(task, node, begin_ns[task])
        if crossing is None:
            continue
        if (said := arrival_of(crossing)) is not None:
            told.append((task, node, "came" if said.has_come else "never_came", said))
        elif (said := departure_of(crossing)) is not None:
            told.append((task, node, "went", said))
    ends = extract.node_places.of(np.array([one.node for *_, one in told], np.int64))
    return RpcEdgeTable(
        task=extract.task_places.of(np.array([task for task, *_ in told], np.int64)),
        node=extract.node_places.of(np.array([one[1] for one in told], np.int64)),
        fact=np.array([RPC_EDGE_FACTS.index(fact) for *_, fact, _ in told], np.int64),
        before=extract.places([one.before for *_, one in told]),
        other=ends,
        after=extract.places(
            [
                one.after if end >= 0 else f"{one.named}{one.after}"
                for end, (*_, one) in zip(ends, told, strict=True)
            ]
        ),
    )


def hook_table(extract: Extract) -> HookTable:
    """Return the hooks of each node, in the words of ``explain``."""
    calls: defaultdict[tuple[int, int], list[HookCall]] = defaultdict(list)
    for one in hook_calls(extract.trace, extract.tasks.tolist()):
        if one.began_ns < extract.end_ns:
            calls[one.task, one.node].append(one)
    told = [
        (task, node, text)
        for (task, node), every in calls.items()
        for text in hook_texts(every[:MAX_TOLD], max(len(every) - MAX_TOLD, 0))
    ]
    return HookTable(
        task=extract.task_places.of(np.array([task for task, *_ in told], np.int64)),
        node=extract.node_places.of(np.array([node for _, node, _ in told], np.int64)),
        text=extract.places([text for *_, text in told]),
    )


def run_table(extract: Extract) -> RunTable:
    """Return the table of runs."""
    runs = extract.executions
    ran = running_spans(extract.trace, extract.tasks.tolist())
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


def stage_tables(extract: Extract) -> tuple[Narrow, EndingTable]:
    """Return the stages of nodes.

    Returns:
        Of each event the stage of its node from then on, -1 if it stays what it was;
        and the changes that are no event of the page.
    """
    changes = stage_changes(extract.trace, extract.tasks.tolist())
    at = extract.moments(changes.seq)
    stages = np.full(len(extract.seq), -1, np.int8)
    stages[at[at >= 0]] = changes.stage[at >= 0]
    return stages, _endings(extract, changes)


def _usual(extract: Extract) -> tuple[Column, Column, Column]:
    """Of each run in how many passes its node completed, and the medians there."""
    tasks, nodes = extract.executions.task, extract.executions.node
    if len(extract.trace.tasks) == 1:  # of which nothing is usual
        unknown = np.full(len(nodes), -1)
        return np.zeros(len(nodes), np.int64), unknown, unknown
    known = {
        (task, node): usual
        for task in extract.tasks[:MAX_DRAWN].tolist()
        for node, usual in medians_like(extract.trace, task).items()
    }
    runs = zip(tasks.tolist(), nodes.tolist(), strict=True)
    rows = [known.get(run, Usual(0, 0, -1)) for run in runs]
    passes, took_ns, ran_ns = np.array(rows, np.int64).reshape(-1, 3).T
    return passes, np.where(passes == 0, -1, took_ns), ran_ns


def _endings(extract: Extract, changes: StageChanges) -> EndingTable:
    """Return the changes after all events of the page, or with the end of a pass."""
    ends = np.ones(len(changes.seq), np.bool_)
    ends[:-1] = (changes.task[1:] != changes.task[:-1]) | (
        changes.node[1:] != changes.node[:-1]
    )
    last = changes.at(np.flatnonzero(ends))
    over = passes_over(extract.trace)
    over_at = np.array([over.get(task, -1) for task in last.task.tolist()], np.int64)
    is_left = (over_at >= 0) & ~np.isin(last.stage, [STAGES.index(one) for one in OVER])
    stage = np.where(is_left, STAGES.index("left over"), last.stage)
    # The moment after all of them has what is not on a page that is cut.
    has_come = extract.moments(last.seq) >= 0
    num_events = len(extract.seq)
    at = np.where(has_come, np.searchsorted(extract.seq, over_at), num_events)
    node = extract.node_places.of(last.node)
    wanted = np.flatnonzero((is_left | ~has_come) & (node >= 0))
    return EndingTable(
        task=extract.task_places.of(last.task[wanted]),
        node=node[wanted],
        at=at[wanted],
        stage=stage[wanted],
        remaining=last.remaining[wanted],
    )
