"""The tables of a page: numbers only, a column for each thing that is known of a row.

`source/data.ts` has the same tables under the same names; who changes one changes both.
A number that stands for something else is a *place*: of a row in another table
(`NodeTable.id` has the trace's own number), or of a text in `PageDocument.texts`; -1
for none. Times are nanoseconds from the start of the first pass. A *moment* is a place
in `EventTable`: what is so right after that event.
"""

from typing import NamedTuple, TypeVar

from gradviz.trace.format.table import Narrow, narrow

PageTable = TypeVar("PageTable", bound=NamedTuple)


def narrowed(table: PageTable) -> PageTable:
    """The same table in as few bytes as it fits into, until all of a page is there."""
    return table._make(map(narrow, table))


class NodeTable(NamedTuple):
    """Nodes: first those that ran, in this order, then those only reached.

    `name` and `module` to `shape` are texts, `family` is a place in
    `PageHeader.families`; `shape` is that of the first input. A `sequence_nr` of
    -1 is the largest. `saved_bytes` is how large the tensors are that a node kept, -1
    if that is unknown.
    """

    id: Narrow
    name: Narrow
    family: Narrow
    module: Narrow
    parameter: Narrow
    location: Narrow
    device: Narrow
    shape: Narrow
    sequence_nr: Narrow
    topological_nr: Narrow
    saved_bytes: Narrow


class EdgeTable(NamedTuple):
    """Ways of gradients, by producer."""

    producer: Narrow
    consumer: Narrow
    input_nr: Narrow


class EventTable(NamedTuple):
    """Events in order; `kind` is a place in `PageHeader.kinds`.

    `stage` is what the node becomes by it, a place in `PageHeader.stages`, or -1.
    """

    at_ns: Narrow
    kind: Narrow
    task: Narrow
    node: Narrow
    thread: Narrow
    stage: Narrow


class EndingTable(NamedTuple):
    """Ends of nodes by no event of theirs: with their pass, or after the page.

    At the moment `at`, which is one more than there are events where that is after all
    of them, a node gets the `stage`, and waits for `remaining` gradients.
    """

    task: Narrow
    node: Narrow
    at: Narrow
    stage: Narrow
    remaining: Narrow


class RunTable(NamedTuple):
    """Evaluations of nodes, in order of start.

    `begin` and `end` are moments, -1 where there is no such event; what never ended is
    over after its pass. `end_ns` is `start_ns` where it is not known. `waited_ns` and
    `thread_time_ns` are -1 where they are not; `status` is a place in
    `PageHeader.statuses`, `error` a text.
    `processor_wait_ns` is what nothing explains; of `num_alike` passes the medians are
    `usual_ns` and `usual_thread_time_ns`, -1 where they are not known.
    """

    node: Narrow
    task: Narrow
    thread: Narrow
    begin: Narrow
    end: Narrow
    start_ns: Narrow
    end_ns: Narrow
    waited_ns: Narrow
    thread_time_ns: Narrow
    status: Narrow
    error: Narrow
    processor_wait_ns: Narrow
    num_alike: Narrow
    usual_ns: Narrow
    usual_thread_time_ns: Narrow


class StayTable(NamedTuple):
    """Tasks in ready queues, in the order in which they came.

    `queue` and threads are the trace's numbers. `pushed` and `popped` are events, -1
    where it never left; `what` is 0 for a node, 1 for a root and 2 for a wake-up, which
    has no node. Of two that lie in a queue the one with the lower `turn` goes first.
    `busy_ns` is how long the thread that ran the node ran others meanwhile, `slept_ns`
    how long after the push it woke up, `num_ahead` how many tasks left the queue first.
    """

    queue: Narrow
    task: Narrow
    node: Narrow
    pushed: Narrow
    popped: Narrow
    pushed_by: Narrow
    thread: Narrow
    popped_by: Narrow
    what: Narrow
    turn: Narrow
    busy_ns: Narrow
    slept_ns: Narrow
    num_ahead: Narrow


class OvertakingTable(NamedTuple):
    """Tasks that left a queue before another one: of each `stay` the first of them.

    Both are places in `StayTable`; `why` is a place in `PageHeader.precedences`, -1
    where PyTorch's order has no reason.
    """

    stay: Narrow
    ahead: Narrow
    why: Narrow


class GradientTable(NamedTuple):
    """Gradients that nodes were given: at the event `at`, held until the event `until`.

    `remaining` is how many more the node then waits for; `until` is when it began, or
    was skipped, -1 for never.
    """

    task: Narrow
    node: Narrow
    producer: Narrow
    input_nr: Narrow
    remaining: Narrow
    size_bytes: Narrow
    at: Narrow
    until: Narrow


class SleepTable(NamedTuple):
    """Threads asleep on empty queues, in order of begin.

    `begin` is a moment, or one more than there are events; `end` is one, -1 where it is
    after all of them.
    """

    thread: Narrow
    queue: Narrow
    begin: Narrow
    end: Narrow
    begin_ns: Narrow
    end_ns: Narrow


class StreamWaitTable(NamedTuple):
    """Waits of a node's stream for the work of others; -1: that of the caller."""

    task: Narrow
    node: Narrow
    producer: Narrow


class RpcEdgeTable(NamedTuple):
    """Whence gradients came from other workers, and where they went, in sentences.

    `before` and `after` are texts with the name of `other` between them, a node of
    another worker; `fact` is a place in `PageHeader.crossing_facts`.
    """

    task: Narrow
    node: Narrow
    fact: Narrow
    before: Narrow
    other: Narrow
    after: Narrow


class HookTable(NamedTuple):
    """Hooks that were called for nodes, in their order: a text each."""

    task: Narrow
    node: Narrow
    text: Narrow


class KernelTable(NamedTuple):
    """Work of streams, in order of begin. `stream` and `name` are texts.

    `family` is a place in `PageHeader.families`.
    """

    stream: Narrow
    name: Narrow
    family: Narrow
    thread: Narrow
    launched_ns: Narrow
    begin_ns: Narrow
    end_ns: Narrow


class KernelWaitTable(NamedTuple):
    """Kernels that could not begin before one of another stream was done.

    Both are places in `KernelTable`. `node` asked for it, for the gradient of
    `producer`; -1 where none did.
    """

    kernel: Narrow
    awaited: Narrow
    node: Narrow
    producer: Narrow


class BlockedTable(NamedTuple):
    """Times at which a stream had work and waited for another. Both are texts."""

    stream: Narrow
    awaited_stream: Narrow
    begin_ns: Narrow
    end_ns: Narrow


class MemoryTable(NamedTuple):
    """Bytes held from a time on, a curve for each of `PageHeader.purposes`."""

    purpose: Narrow
    at_ns: Narrow
    size_bytes: Narrow


class SegmentTable(NamedTuple):
    """The critical path; `kind` is a place in `PageHeader.segment_kinds`.

    A segment lies on a thread, or on a stream, which is a text; the other one is -1.
    """

    kind: Narrow
    begin_ns: Narrow
    end_ns: Narrow
    thread: Narrow
    stream: Narrow
    task: Narrow
    node: Narrow


class CostTable(NamedTuple):
    """Costs of nodes to the pass of the critical path.

    `slack_ns` is -1 where nothing waited for it, `if_free_ns` where it is not known.
    """

    task: Narrow
    node: Narrow
    own_ns: Narrow
    on_path_ns: Narrow
    slack_ns: Narrow
    if_free_ns: Narrow


class PartTable(NamedTuple):
    """Parts of graphs that can be opened; see Note [Parts of a drawing].

    `box` is the box that is opened to see the inside, -1 of the graph of a whole pass
    that no node of another one called;
    width and height are in pixels. `omitted` is how many nodes are left out of such a
    graph, because there are too many.
    """

    task: Narrow
    box: Narrow
    width: Narrow
    height: Narrow
    omitted: Narrow


class BoxTable(NamedTuple):
    """Boxes, by their centers within the inside of `part`, in pixels.

    `node` is the first that a box stands for; `badge`, `title` and `subtitle` are
    texts. The badge, at its left end, has the numbers of its nodes in the order of
    execution.
    """

    part: Narrow
    node: Narrow
    x: Narrow
    y: Narrow
    width: Narrow
    height: Narrow
    badge: Narrow
    badge_width: Narrow
    title: Narrow
    subtitle: Narrow
    num_nodes: Narrow


class ChipTable(NamedTuple):
    """Leaves, drawn at the lower end of the boxes that lead to them, in this order."""

    box: Narrow
    node: Narrow
    text: Narrow


class MemberTable(NamedTuple):
    """Nodes of a box that has no inside, those of its chips included."""

    box: Narrow
    node: Narrow


class WayTable(NamedTuple):
    """Ways between boxes of a part; -1 is its border. Their stops end at `end`."""

    part: Narrow
    producer: Narrow
    consumer: Narrow
    end: Narrow


class StopTable(NamedTuple):
    """Ways of edges, vertical at each stop, and in curves between."""

    x: Narrow
    y: Narrow
