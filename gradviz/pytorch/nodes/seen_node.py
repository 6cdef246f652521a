"""Nodes and graphs of PyTorch's as they were read: numbers and texts."""

import weakref
from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING, Any, ClassVar, Final, NamedTuple, TypeAlias

import msgspec

from gradviz.pytorch.nodes.saved_tensors import SavedBytes
from gradviz.trace.events import MAX_SEQUENCE_NR
from gradviz.trace.format.strings import one_a_line
from gradviz.trace.node_like import NUM_BEFORE_EDGES
from gradviz.trace.probe import Hook, Probe

if TYPE_CHECKING:
    from gradviz.trace.reporting.hook_names import HookName

#: Prefix of the names of the engine's own nodes.
_NAMESPACE: Final = "torch::autograd::"

#: The root of a pass that begins at several nodes, as the profiler calls it.
GRAPH_ROOT: Final = f"{_NAMESPACE}GraphRoot"


#: Returns a tensor of PyTorch's, or None if it is gone.
TensorReference: TypeAlias = Callable[[], Any]

#: Listeners to nodes: the recordings that go on.
Listeners: TypeAlias = "tuple[weakref.ref[Probe], ...]"


class SeenInput(msgspec.Struct, frozen=True, gc=False):
    """Expected input of a node; see `trace.node_like.MetadataLike`.

    Attributes:
        has_queue: True if its device has a thread and a queue of its own.
    """

    shape: tuple[int, ...]
    dtype: str
    device: str
    size_bytes: int
    has_queue: bool = False


#: The class of modules that train data-parallel, which have a hook in C++.
DATA_PARALLEL: Final = "DistributedDataParallel"
#: That hook, which fills their buckets.
CPP_HOOK: Final = "C++ hook"


class HookDict(NamedTuple):
    """A dict of a node's hooks.

    Attributes:
        kind: Their kind.
        entries: Returns the dict, or None if it is gone.
    """

    kind: Hook
    entries: "weakref.ref[Any]"


class PlannedHook(NamedTuple):
    """A hook that a pass is about to call: the `number`-th of its kind."""

    kind: Hook
    number: int
    name: "HookName"


class PlannedHooks(NamedTuple):
    """The hooks of a node in the order in which the engine calls them.

    Attributes:
        before: Those before its function.
        inside: Those that its function calls.
        after: Those after it.
    """

    before: tuple[PlannedHook, ...]
    inside: tuple[PlannedHook, ...]
    after: tuple[PlannedHook, ...]


# Graphs have many of these two, and no cycles: the collector need not look at them.


class SeenEdge(msgspec.Struct, eq=False, gc=False):
    """See `trace.node_like.EdgeLike`."""

    node: "SeenNode | None"
    input_nr: int


class SeenNode(msgspec.Struct, eq=False, gc=False):
    """A node of PyTorch's, read once for all passes; see `trace.node_like.NodeLike`.

    Passes may share it, also at the same time, so nothing of one pass is kept here.

    Attributes:
        id: Unique in the process, 0 until all that is new below a root has been read.
            The ids of nodes that are read together follow the order of the forward.
        raw_name: As PyTorch and its profiler call it.
        sequence_nr: Its sequence number.
        text: Its name without that of a namespace.
        seen_nr: The number by which the profiler calls it: -1 for a leaf's.
        topological_nr: Length of the longest path to a leaf, -1 until it and all nodes
            below it have been read.
        newest: The largest id among it and the nodes below it, likewise.
        line: The line that made it, empty if it is not known.
        has_own_line: True if the node tells it; see Note [Lines by anomaly mode].
        stack: The lines that led to it too, if they are kept.
        told_to: Those who were told last what it keeps.
        made_by: PyTorch's number of the thread that made it, 0 before it is known; see
            Note [Who made a node] in `places`.
        placed_by: The number of the thread that was supposed to have made it when
            `module_path` was found, 0 for none.
        leaf: Names of the leaf of an AccumulateGrad.
        variable: That leaf, None for other nodes.
        hooks: Dicts of its hooks, as far as they are known.
    """

    #: True: errors of its methods come from a signal handler and belong to the program.
    runs_no_code_of_programs: ClassVar[bool] = True

    id: int
    raw_name: str
    sequence_nr: int
    text: str
    seen_nr: int
    topological_nr: int = -1
    newest: int = -1
    next_edges: tuple[SeenEdge, ...] = ()
    input_metadata: tuple[SeenInput | None, ...] = ()
    runs_on: str = "cpu"
    module_path: str = ""
    line: str = ""
    has_own_line: bool = False
    stack: str = ""
    told_to: Listeners = ()
    made_by: int = 0
    placed_by: int = 0
    leaf: tuple[str, ...] = ()
    variable: TensorReference | None = None
    hooks: tuple[HookDict, ...] = ()

    def name(self) -> str:
        """Name, such as ``MulBackward0``."""
        return self.text

    def input_bytes(self) -> int:
        """Return the bytes that gradients for all of its inputs take."""
        inputs = self.input_metadata
        if len(inputs) == 1:  # nearly always
            return 0 if inputs[0] is None else inputs[0].size_bytes
        return sum(one.size_bytes for one in inputs if one is not None)

    def leaf_names(self) -> tuple[str, ...]:
        """Return the names of the leaf of an AccumulateGrad."""
        return self.leaf

    def trace_definition(self, chunk: list[Any]) -> None:
        """Do what `pending_graph.definition_of` does, without asking around."""
        edges: list[int] = []
        for edge in self.next_edges:
            after = edge.node
            edges += (-1 if after is None else after.id, edge.input_nr)
        chunk += (
            NUM_BEFORE_EDGES + len(edges),
            self.id,
            self.sequence_nr,
            self.topological_nr,
            self.text,
            self.runs_on,
            self.module_path,
            one_a_line(self.leaf) if self.sequence_nr == MAX_SEQUENCE_NR else "",
            self.input_metadata,
        )
        chunk += edges


def new_node(id_: int, raw_name: str, sequence_nr: int) -> SeenNode:
    """Return the initial facts about a node."""
    text = raw_name.removeprefix(_NAMESPACE)
    seen_nr = -1 if sequence_nr == MAX_SEQUENCE_NR else sequence_nr
    return SeenNode(id_, raw_name, sequence_nr, text, seen_nr)


class SeenGraph(NamedTuple):
    """The part of a graph that takes part in one pass.

    Attributes:
        root: Node at which the pass begins.
        nodes: The root, then the nodes that run or whose gradients are asked for, and
            those to which they have edges.
        dependencies: Number of edges that lead from nodes that run to each of `nodes`.
            The inference counts them down.
        needed: The nodes that run, None for all; see `needs.needed_nodes`.
        outputs: For each output that was asked for its node, and which input.
        made_at: The lines that made nodes, by id, as far as they are known.
        untold: Memory that those nodes keep, here and below, of which a listener was
            not told, in the order of the forward: new nodes, and those that outlived an
            earlier recording.
    """

    root: SeenNode
    nodes: list[SeenNode]
    dependencies: dict[SeenNode, int]
    needed: set[SeenNode] | None
    outputs: list[SeenEdge]
    made_at: dict[int, str]
    untold: Mapping[SeenNode, SavedBytes]

    def leaves_with_grad(self) -> set[SeenNode]:
        """The nodes of leaves that have a ``.grad`` now."""
        return {
            node
            for node in self.nodes
            if node.variable is not None
            and getattr(node.variable(), "grad", None) is not None
        }
