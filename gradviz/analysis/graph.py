"""The graph of one backward pass, as plain values.

Gradients flow from a producer to a consumer: the edges point the way of the backward
pass, from the roots to the leaves.
"""

import bisect
import math
from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence
from typing import Final

import msgspec
import numpy as np

from gradviz.analysis.executions import (
    Execution,
    NodeStatus,
    as_list,
    definition,
    execution_columns,
)
from gradviz.analysis.messages import companions, messages, workers_of
from gradviz.analysis.passes import Pass, passes
from gradviz.analysis.processor_waits import processor_waits
from gradviz.analysis.shapes import medians_like
from gradviz.analysis.uncollected import uncollected
from gradviz.analysis.worker_order import forward_numbers
from gradviz.trace.model import InputDefinition, NodeDefinition, Trace
from gradviz.trace.table import different
from gradviz.trace.worker_threads import worker_label

#: Larger graphs are not shown as a whole.
MAX_NODES: Final = 20_000
MAX_EDGES: Final = 40_000

#: Of larger graphs not even what is to be left of them is looked for.
MAX_SIMPLIFIED: Final = 100_000

#: The nodes at which gradients end.
LEAF: Final = "AccumulateGrad"

#: No tensor is larger, whatever a damaged trace says.
MAX_BYTES: Final = 1 << 40

#: A node that called more passes names the first.
MAX_CALLS: Final = 8

#: A node with more inputs is shown with so many.
MAX_INPUTS: Final = 64


class GraphNode(msgspec.Struct, frozen=True, kw_only=True, gc=False):
    """One node of the graph, one of the copies that stand for it, or several as one.

    What `gradviz.analysis.simplification.as_one` made of several nodes has the values
    of the first of them where nothing else is said.

    Attributes:
        id: The trace's id of the node.
        name: Its class, such as ``MulBackward0``; of several, what they are called.
        device: Where it runs, such as ``cpu``.
        sequence_nr: The later a node was made, the earlier it runs.
        topological_nr: Length of its longest path to a leaf.
        inputs: What it expects at each input, None where it accepts anything.
        location: ``path:line`` that created it, empty if unknown or several.
        order: Its place in the execution order, from 0; None if it did not run. In a
            graph that no pass ran, its place in the order that is predicted.
        thread: Where it ran, None if it did not.
        start_ns: Relative to the start of the pass's first node; None if not run.
        end_ns: When it completed or raised; None if it did neither.
        waited_ns: How long it was queued, None if unknown.
        status: How its evaluation ended, None if it never began.
        copies: How many copies stand for it, this one included; 1 if none.
        members: The nodes that it stands for, in order; empty if it is one itself.
        module: The part of a model that made it, empty outside a model.
        error: What it raised, empty if it did not.
        omitted_edges: How many edges of its own are left out.
        parameters: What the leaf of an AccumulateGrad is called.
        leaves: Of several nodes the leaves that they lead to, also those that are
            members of another one, because several share them.
        repeats: How often what it stands for comes one after the other; 1 if once.
        saved_bytes: How large the tensors are that it kept for the backward pass; of
            several nodes that of the first.
        calls: The backward passes that it called while it ran, the first ones.
        is_critical: Whether it is on the critical path, as far as that was looked for;
            see `gradviz.analysis.neighbourhood.mark_critical`.
        slack_ns: How much longer it could have run without making the pass longer;
            None if that is not known.
        thread_time_ns: For how long its thread was running; None if unknown.
        processor_wait_ns: How long it was not, and nothing known says why; see
            `gradviz.analysis.processor_waits`.
        num_alike: In how many passes of this one's shape it completed.
        usual_ns: How long it took there, as median (of several nodes, together); None
            if that is not known.
        saved_by: The node that keeps it, where it is no node but a tensor that one has
            saved; None of a node.
        nested: The graphs of passes that it called, where those are drawn inside of it;
            see `gradviz.analysis.nested_passes`.
        made_nr: Its place in the order in which forward passes made the nodes, in a
            graph of several workers; None where ids say it.
    """

    id: int
    name: str
    device: str
    sequence_nr: int
    topological_nr: int
    inputs: tuple[InputDefinition | None, ...]
    location: str
    order: int | None
    thread: int | None
    start_ns: int | None
    end_ns: int | None
    waited_ns: int | None
    status: NodeStatus | None
    copies: int = 1
    members: tuple["GraphNode", ...] = ()
    module: str = ""
    error: str = ""
    omitted_edges: int = 0
    parameters: tuple[str, ...] = ()
    leaves: tuple["GraphNode", ...] = ()
    repeats: int = 1
    saved_bytes: int = 0
    calls: tuple[int, ...] = ()
    is_critical: bool = False
    slack_ns: int | None = None
    thread_time_ns: int | None = None
    processor_wait_ns: int = 0
    num_alike: int = 0
    usual_ns: int | None = None
    saved_by: int | None = None
    nested: tuple["Graph", ...] = ()
    made_nr: int | None = None

    @property
    def forward_nr(self) -> int:
        """The later it was made, the larger: gradients flow to smaller ones."""
        return self.id if self.made_nr is None else self.made_nr

    @property
    def num_nodes(self) -> int:
        """How many nodes of the pass it stands for."""
        return max(len(self.members), 1) if self.saved_by is None else 0

    @property
    def is_predicted(self) -> bool:
        """Whether it has not run, and `order` is its place in the order predicted."""
        return self.order is not None and self.start_ns is None

    @property
    def is_part(self) -> bool:
        """Whether it stands for different nodes, not for one that repeats."""
        return self.num_nodes != self.repeats

    @property
    def took_ns(self) -> int | None:
        """How long it took; None if it did not begin or end."""
        if self.start_ns is None or self.end_ns is None:
            return None
        return self.end_ns - self.start_ns

    @property
    def busy_ns(self) -> int | None:
        """How long all that it stands for took, added up; None if nothing is known."""
        known = [
            one.end_ns - one.start_ns
            for one in self.members or (self,)
            if one.start_ns is not None and one.end_ns is not None
        ]
        return sum(known) if known else None

    @property
    def num_parameters(self) -> int:
        """How many numbers the parameters have that it leads to, if it is several."""
        leaves = [one for leaf in self.leaves for one in leaf.members or (leaf,)]
        return sum(
            math.prod(one.inputs[0].shape)
            for one in leaves
            if one.parameters and one.inputs and one.inputs[0] is not None
        )

    @property
    def orders(self) -> tuple[int, int] | None:
        """The first and the last number of what it stands for; None if none ran."""
        if not self.members:
            return None if self.order is None else (self.order, self.order)
        ran = [one.order for one in self.members if one.order is not None]
        return (min(ran), max(ran)) if ran else None


class GraphEdge(msgspec.Struct, frozen=True, gc=False):
    """A gradient's way from one node to an input of another.

    Attributes:
        producer: Position in `Graph.nodes` of the node that returns it.
        consumer: Position in `Graph.nodes` of the node that receives it.
        input_nr: Which input of the consumer.
    """

    producer: int
    consumer: int
    input_nr: int


class Graph(msgspec.Struct, frozen=True, kw_only=True):
    """The graph of one pass, or of tensors before any.

    Attributes:
        task: The pass, -1 for none.
        nodes: Those that ran, in order, then those only reached.
        edges: Sorted by producer, in the order of its outputs.
        omitted: Nodes that were left out, because there are too many; of those that
            did not run only what is known of them.
        duration_ns: Of the pass; None if the trace does not have its end.
        omitted_edges: Edges that were left out, of nodes that are there or not.
        program: What was recorded: the first word of its command line.
        containers: Paths of modules that were never called and only hold others, as a
            ModuleList does.
        notes: What else is to be said: what was done to show less, what is not there.
    """

    task: int
    nodes: tuple[GraphNode, ...]
    edges: tuple[GraphEdge, ...]
    omitted: int = 0
    duration_ns: int | None = None
    omitted_edges: int = 0
    program: str = ""
    containers: frozenset[str] = frozenset()
    is_finished: bool = False
    notes: tuple[str, ...] = ()

    @property
    def num_nodes(self) -> int:
        """How many nodes of the pass it shows, a node with copies once."""
        return sum({node.id: node.num_nodes for node in self.nodes}.values())


@uncollected()
def build_graph(
    trace: Trace,
    task: int,
    max_nodes: int = MAX_NODES,
    *,
    has_others: bool = True,
) -> Graph:
    """The graph of pass `task`: what ran, and what could be reached from there.

    Of a distributed pass it is that of all workers. Each of them is a model then, whose
    parts its models are, and messages are edges.

    Args:
        trace: The trace.
        task: The pass.
        max_nodes: Of more the graph has those that ran first. It has twice as many
            edges at most.
        has_others: Whether it has what other workers ran.
    """
    sent = messages(trace) if has_others else ()
    tasks = companions(sent, [task])
    sent = tuple(one for one in sent if one.task in tasks)
    columns = execution_columns(trace, sorted(tasks))
    runs = {run.node: run for run in as_list(trace, columns.at(slice(max_nodes)))}
    # Of a single pass nothing is usual, and to look for it takes long.
    usual = medians_like(trace, task) if len(trace.tasks) > 1 else {}
    lost = processor_waits(trace, columns).tolist()
    lost_ns = dict(zip(columns.node.tolist(), lost, strict=True))
    saved = saved_bytes(trace)
    every = passes(trace)
    calls = _calls(every, task, runs.values())
    order = {node: index for index, node in enumerate(runs)}
    origin = min((run.start_ns for run in runs.values()), default=0)
    onwards = {one.node: ((one.to_node, 0),) for one in sent}
    nodes: list[GraphNode] = []
    edges: list[GraphEdge] = []
    position = {node: index for index, node in enumerate(runs)}
    pending = list(runs)
    for index, id_ in enumerate(pending):  # grows while it is walked: breadth first
        node = definition(trace, id_)
        num_omitted = 0
        ways = node.edges + onwards[id_] if id_ in onwards else node.edges
        for consumer, input_nr in ways:
            if consumer < 0:
                continue
            is_new = consumer not in position
            if len(edges) == 2 * max_nodes or (is_new and len(pending) == max_nodes):
                num_omitted += 1
                continue
            if is_new:
                position[consumer] = len(pending)
                pending.append(consumer)
            edges.append(GraphEdge(index, position[consumer], input_nr))
        made = _node(node, order.get(id_), runs.get(id_), origin, num_omitted)
        known = usual.get(id_)
        if id_ in lost_ns or id_ in saved:
            made = msgspec.structs.replace(
                made,
                processor_wait_ns=lost_ns.get(id_, 0),
                num_alike=known.passes if known else 0,
                usual_ns=known.took_ns if known and known.passes else None,
                saved_bytes=saved.get(id_, 0),
                calls=calls.get(id_, ()),
            )
        nodes.append(made)
    if sent:
        nodes = _on_workers(nodes, edges, runs, workers_of(sent))
    return Graph(
        task=task,
        nodes=tuple(nodes),
        edges=tuple(edges),
        omitted=max(len(columns.node) - max_nodes, 0),
        duration_ns=next((one.duration_ns for one in every if one.task == task), None),
        omitted_edges=sum(node.omitted_edges for node in nodes),
        program=trace.header.argv[0] if trace.header.argv else "",
        containers=_containers(
            trace, {node.module for node in nodes}, on_workers=bool(sent)
        ),
        is_finished=trace.losses.is_complete
        and any(one.task == task and one.status == "completed" for one in every),
    )


def _on_workers(
    nodes: Sequence[GraphNode],
    edges: Sequence[GraphEdge],
    runs: Mapping[int, Execution],
    whose: Mapping[int, int],
) -> list[GraphNode]:
    """The nodes as parts of their workers: what did not run is where it is reached."""
    worker = [
        whose.get(runs[node.id].task) if node.id in runs else None for node in nodes
    ]
    for edge in edges:  # first those of the nodes that come first
        if worker[edge.consumer] is None:
            worker[edge.consumer] = worker[edge.producer]
    owners = ["" if number is None else worker_label(number) for number in worker]
    made = forward_numbers(
        owners,
        [node.id for node in nodes],
        ((edge.producer, edge.consumer) for edge in edges),
    )
    return [
        msgspec.structs.replace(
            node, module=".".join(filter(None, (owner, node.module))), made_nr=made_nr
        )
        for node, owner, made_nr in zip(nodes, owners, made, strict=True)
    ]


def _calls(
    every: Iterable[Pass], task: int, runs: Iterable[Execution]
) -> dict[int, tuple[int, ...]]:
    """Of each node that called passes while it ran, the first of them."""
    by_thread: dict[int, list[Execution]] = defaultdict(list)
    for run in runs:  # in the order in which they began
        by_thread[run.thread].append(run)
    called: dict[int, tuple[int, ...]] = {}
    for one in every:
        if one.parent != task:
            continue
        mine = by_thread[one.thread]
        at = bisect.bisect(mine, one.begin_ns, key=lambda run: run.start_ns) - 1
        if at < 0 or (mine[at].end_ns or one.begin_ns) < one.begin_ns:
            continue
        known = called.get(mine[at].node, ())
        called[mine[at].node] = (*known, one.task)[:MAX_CALLS]
    return called


def _containers(
    trace: Trace, paths: Iterable[str], *, on_workers: bool
) -> frozenset[str]:
    """What lies above some modules and was never called; none if no call is known."""
    places = different(trace.columns["forward_begun"].narrow("module")).tolist()
    if not places:
        return frozenset()
    called = {trace.strings[place] for place in places}
    above: set[str] = set()
    for path in paths:
        while (path := path.rpartition(".")[0]) and path not in above:
            above.add(path)
    if not on_workers:
        return frozenset(above - called)
    own = {path: path.partition(".")[2] for path in above}  # empty: a worker
    return frozenset(path for path in above if own[path] and own[path] not in called)


def saved_bytes(trace: Trace) -> dict[int, int]:
    """Of each node that kept tensors, how large they are together."""
    table = trace.columns["tensor_saved"]
    nodes, place = np.unique(table["node"], return_inverse=True)
    sizes_bytes = np.clip(table["size_bytes"], 0, MAX_BYTES)  # a file may say anything
    sizes = np.bincount(place, sizes_bytes, len(nodes)).astype(np.int64)
    return dict(zip(nodes.tolist(), sizes.tolist(), strict=True))


def _node(
    node: NodeDefinition,
    order: int | None,
    run: Execution | None,
    origin: int,
    num_omitted: int,
) -> GraphNode:
    end_ns = None if run is None or run.end_ns is None else run.end_ns - origin
    return GraphNode(
        id=node.id,
        name=node.name,
        device=node.device,
        sequence_nr=node.sequence_nr,
        topological_nr=node.topological_nr,
        inputs=node.inputs[:MAX_INPUTS],
        location=node.location,
        order=order,
        thread=run.thread if run else None,
        start_ns=run.start_ns - origin if run else None,
        end_ns=end_ns,
        waited_ns=run.waited_ns if run else None,
        status=run.status if run else None,
        module=node.module,
        error=run.error if run else "",
        omitted_edges=num_omitted,
        parameters=node.parameters,
        thread_time_ns=run.thread_time_ns if run else None,
    )
