"""The graph of one backward pass, as plain values.

Gradients flow from a producer to a consumer: the edges point the way of the backward
pass, from the roots to the leaves.
"""

import bisect
import math
from collections import defaultdict
from collections.abc import Collection, Container, Iterable, Mapping, Sequence
from typing import Final

import msgspec
import numpy as np

from gradviz.analysis.graphs.forward_order import order_by_sequence, order_by_worker
from gradviz.analysis.graphs.gc_pause import gc_paused
from gradviz.analysis.graphs.module_calls import calls_before
from gradviz.analysis.nodes.inferred import inferred_passes
from gradviz.analysis.nodes.processor_waits import processor_waits
from gradviz.analysis.tables.executions import (
    Execution,
    NodeStatus,
    as_list,
    definition,
    execution_columns,
)
from gradviz.analysis.tables.messages import messages
from gradviz.analysis.tables.passes import Pass, passes, the_pass
from gradviz.analysis.tables.saved_bytes import saved_bytes
from gradviz.analysis.tables.worker_parts import WorkerPart, with_parts, worker_parts
from gradviz.analysis.training.pass_shapes import Usual, medians_like
from gradviz.trace.format.model import InputDefinition, NodeDefinition, Trace
from gradviz.trace.format.table import different
from gradviz.trace.reading.worker_threads import worker_label

#: Larger graphs are not shown as a whole.
MAX_NODES: Final = 20_000
MAX_EDGES: Final = 40_000

#: Of larger graphs not even what is to be left of them is looked for.
MAX_SIMPLIFIED: Final = 100_000

#: The nodes at which gradients end.
LEAF: Final = "AccumulateGrad"

#: A node that called more passes names the first.
MAX_CALLS: Final = 8

#: A node with more inputs is shown with so many.
MAX_INPUTS: Final = 64


class GraphNode(msgspec.Struct, frozen=True, kw_only=True, gc=False):
    """One node of the graph, one of the copies that stand for it, or several as one.

    What `gradviz.analysis.graphs.simplification.as_one` made of several nodes has the
    values of the first of them where nothing else is said.

    Attributes:
        id: The trace's id of the node.
        name: Its class, such as ``MulBackward0``; of several, what they are called.
        device: Device on which it runs, such as ``cpu``.
        sequence_nr: The later a node was made, the earlier it runs.
        topological_nr: Length of its longest path to a leaf.
        inputs: Metadata that it expects at each input, None where it accepts anything.
        location: ``path:line`` that created it, empty if unknown or several.
        order: Its place in the execution order, from 0; None if it did not run. In a
            graph that no pass ran, its place in the order that is predicted.
        thread: Thread on which it ran, None if it did not.
        start_ns: Relative to the start of the pass's first node; None if not run.
        end_ns: Time at which it completed or raised; None if it did neither.
        waited_ns: Queue wait, None if unknown.
        status: Outcome of its evaluation, None if it never began.
        copies: Number of copies that stand for it, this one included; 1 if none.
        members: The nodes that it stands for, in order; empty if it is one itself.
        module: The part of a model that made it, empty outside a model.
        error: Error that it raised, empty if it did not.
        omitted_edges: Number of its own edges that are left out.
        parameters: Names of the leaf of an AccumulateGrad.
        leaves: Of several nodes the leaves that they lead to, also those that are
            members of another one, because several share them.
        repeats: Number of times that what it stands for comes, one after the other; 1
            if once.
        saved_bytes: Size of the tensors that it kept for the backward pass; None if
            that is not known. Of several nodes that of the first.
        calls: The backward passes that it called while it ran, the first ones.
        is_critical: True if it is on the critical path, as far as that was looked for;
            see `gradviz.analysis.graphs.neighborhood.mark_critical`.
        slack_ns: Slack: the time that it could have run longer without making the pass
            longer; None if that is not known.
        thread_time_ns: Time that its thread was running; None if unknown.
        processor_wait_ns: Time that its thread was not running, for no known reason;
            see `gradviz.analysis.nodes.processor_waits`.
        num_alike: Number of passes of this one's shape in which it completed.
        usual_ns: Median of its duration there (of several nodes, together); None if
            that is not known.
        saved_by: The node that keeps it, if it stands for a saved tensor; None of a
            node.
        nested: The graphs of passes that it called, where those are drawn inside of it;
            see `gradviz.analysis.graphs.nested_passes`.
        made_nr: Its place in the order in which forward passes made the nodes, in a
            graph of PyTorch's or of several workers; None where ids say it.
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
    saved_bytes: int | None = None
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
        """Number of nodes of the pass that it stands for."""
        return max(len(self.members), 1) if self.saved_by is None else 0

    @property
    def is_predicted(self) -> bool:
        """True if it has not run, and `order` is its predicted index."""
        return self.order is not None and self.start_ns is None

    @property
    def is_part(self) -> bool:
        """True if it stands for different nodes, not for one that repeats."""
        return self.num_nodes != self.repeats

    @property
    def is_module(self) -> bool:
        """True if it stands for all nodes that one call of a module made."""
        return bool(self.members) and self.name == self.module

    @property
    def took_ns(self) -> int | None:
        """Duration; None if it did not begin or end."""
        if self.start_ns is None or self.end_ns is None:
            return None
        return self.end_ns - self.start_ns

    @property
    def busy_ns(self) -> int | None:
        """Total duration of its members; None if nothing is known."""
        known = [
            one.end_ns - one.start_ns
            for one in self.members or (self,)
            if one.start_ns is not None and one.end_ns is not None
        ]
        return sum(known) if known else None

    @property
    def num_parameters(self) -> int:
        """Number of elements of the parameters it leads to, if it is several nodes."""
        leaves = [one for leaf in self.leaves for one in leaf.members or (leaf,)]
        return sum(
            math.prod(one.inputs[0].shape)
            for one in leaves
            if one.parameters and one.inputs and one.inputs[0] is not None
        )

    @property
    def orders(self) -> tuple[int, int] | None:
        """The first and the last order of its members; None if none ran."""
        if not self.members:
            return None if self.order is None else (self.order, self.order)
        ran = [one.order for one in self.members if one.order is not None]
        return (min(ran), max(ran)) if ran else None


class GraphEdge(msgspec.Struct, frozen=True, gc=False):
    """A gradient's way from one node to an input of another.

    Attributes:
        producer: Position in `Graph.nodes` of the node that returns it.
        consumer: Position in `Graph.nodes` of the node that receives it.
        input_nr: Index of the consumer's input.
    """

    producer: int
    consumer: int
    input_nr: int


class CarriedEdge(msgspec.Struct, frozen=True, gc=False):
    """An edge from one repeat to the next one, of what is drawn once.

    Attributes:
        producer: The id of a node in the first of the repeats.
        consumer: The id of the node that stands, in that first repeat, where the edge
            leads to in the next one.
        input_nr: Index of the consumer's input.
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
        program: Program that was recorded: the first word of its command line.
        containers: Paths of modules that were never called and only hold others, as a
            ModuleList does.
        is_finished: True if the pass completed, and the trace has all of it.
        is_failed: True if it raised an error.
        notes: Further remarks: what was done to show less, what is not there.
        carried: Edges to the next repeat, of what is drawn once.
        num_calls: Number of calls of each module in the forward before this pass; a
            module is not among them if that is not known.
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
    is_failed: bool = False
    notes: tuple[str, ...] = ()
    carried: tuple[CarriedEdge, ...] = ()
    num_calls: dict[str, int] = {}

    @property
    def num_nodes(self) -> int:
        """Number of nodes of the pass shown, a node with copies once."""
        return sum({node.id: node.num_nodes for node in self.nodes}.values())


@gc_paused()
def build_graph(
    trace: Trace,
    task: int,
    max_nodes: int = MAX_NODES,
    *,
    has_others: bool = True,
) -> Graph:
    """Return the graph of a pass: nodes that ran, and those reachable from there.

    Of a distributed pass it is that of all workers. Each of them is a model then, whose
    parts its models are, and messages are edges.

    Args:
        trace: The trace.
        task: The pass.
        max_nodes: Of more the graph has those that ran first. It has twice as many
            edges at most.
        has_others: True if it has what other workers ran.
    """
    parts = worker_parts(trace) if has_others else {}
    tasks = with_parts(trace, [task]) if has_others else {task}
    sent = messages(trace) if parts else ()
    sent = tuple(one for one in sent if one.task in tasks)
    columns = execution_columns(trace, sorted(tasks))
    runs = {run.node: run for run in as_list(trace, columns.at(slice(max_nodes)))}
    # Of a single pass nothing is usual, and to look for it takes long.
    usual = _usual(trace, tasks) if len(trace.tasks) > 1 else {}
    lost = processor_waits(trace, columns).tolist()
    lost_ns = dict(zip(columns.node.tolist(), lost, strict=True))
    about = the_pass(trace, task)
    calls = _calls(_called(trace, tasks), tasks, runs.values())
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
            # A pass does not define what is beyond the nodes that it only reached.
            if len(edges) == 2 * max_nodes or (
                is_new
                and (
                    len(pending) == max_nodes
                    or (id_ not in runs and consumer not in trace.nodes)
                )
            ):
                num_omitted += 1
                continue
            if is_new:
                position[consumer] = len(pending)
                pending.append(consumer)
            edges.append(GraphEdge(index, position[consumer], input_nr))
        known = usual.get(id_)
        made = _node(node, order.get(id_), runs.get(id_), origin, num_omitted)
        if id_ in lost_ns:
            made = msgspec.structs.replace(
                made,
                processor_wait_ns=lost_ns.get(id_, 0),
                num_alike=known.passes if known else 0,
                usual_ns=known.took_ns if known and known.passes else None,
                calls=calls.get(id_, ()),
            )
        nodes.append(made)
    nodes = _with_saved_bytes(trace, nodes)
    nodes = _in_forward_order(trace, task, nodes, edges, runs, parts if sent else {})
    return Graph(
        task=task,
        nodes=tuple(nodes),
        edges=tuple(edges),
        omitted=max(len(columns.node) - max_nodes, 0),
        duration_ns=about.duration_ns,
        omitted_edges=sum(node.omitted_edges for node in nodes),
        program=trace.header.argv[0] if trace.header.argv else "",
        containers=_containers(
            trace, {node.module for node in nodes}, on_workers=bool(sent)
        ),
        is_finished=trace.losses.is_complete and about.status == "completed",
        is_failed=about.status == "failed",
        num_calls={} if parts else calls_before(trace, about),
    )


def _usual(trace: Trace, tasks: Iterable[int]) -> dict[int, Usual]:
    """Usual times of the nodes of some parts of a pass."""
    found: dict[int, Usual] = {}
    for one in tasks:
        found |= medians_like(trace, one)
    return found


def _in_forward_order(
    trace: Trace,
    task: int,
    nodes: list[GraphNode],
    edges: Sequence[GraphEdge],
    runs: Mapping[int, Execution],
    parts: Mapping[int, WorkerPart],
) -> list[GraphNode]:
    """The nodes with their places in the forward, where ids do not say them."""
    if parts:
        return _on_workers(nodes, edges, runs, parts)
    return by_sequence(nodes, edges) if task in inferred_passes(trace) else nodes


def _on_workers(
    nodes: Sequence[GraphNode],
    edges: Sequence[GraphEdge],
    runs: Mapping[int, Execution],
    parts: Mapping[int, WorkerPart],
) -> list[GraphNode]:
    """Return the nodes as parts of their workers; those without a run by reach."""
    worker = [
        parts[runs[node.id].task].worker if node.id in runs else None for node in nodes
    ]
    for edge in edges:  # first those of the nodes that come first
        if worker[edge.consumer] is None:
            worker[edge.consumer] = worker[edge.producer]
    owners = ["" if number is None else worker_label(number) for number in worker]
    made = order_by_worker(
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


def by_sequence(
    nodes: Sequence[GraphNode], edges: Sequence[GraphEdge]
) -> list[GraphNode]:
    """Return the nodes with their places in the forward, by their sequence numbers."""
    made = order_by_sequence(
        [node.sequence_nr for node in nodes],
        [node.id for node in nodes],
        ((edge.producer, edge.consumer) for edge in edges),
    )
    return [
        msgspec.structs.replace(node, made_nr=made_nr)
        for node, made_nr in zip(nodes, made, strict=True)
    ]


def _called(trace: Trace, tasks: Collection[int]) -> Iterable[Pass]:
    """The passes that were called from inside some GraphTasks."""
    begun = trace.columns["task_begun"]
    is_called = np.isin(begun.narrow("parent"), np.array([*tasks], np.int64))
    return passes(trace, tasks=begun["task"][is_called].tolist())


def _calls(
    every: Iterable[Pass], tasks: Container[int], runs: Iterable[Execution]
) -> dict[int, tuple[int, ...]]:
    """Of each node that called passes while it ran, the first of them."""
    by_thread: dict[int, list[Execution]] = defaultdict(list)
    for run in runs:  # in the order in which they began
        by_thread[run.thread].append(run)
    called: dict[int, tuple[int, ...]] = {}
    for one in every:
        if one.parent not in tasks:
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
    """Return modules' parents that were never called; none if no call is known."""
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


def _with_saved_bytes(trace: Trace, nodes: list[GraphNode]) -> list[GraphNode]:
    sizes = saved_bytes(trace, np.array([one.id for one in nodes], np.int64)).tolist()
    return [
        one if size < 0 else msgspec.structs.replace(one, saved_bytes=size)
        for one, size in zip(nodes, sizes, strict=True)
    ]


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
