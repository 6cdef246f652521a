"""The tables of a page: numbers only, a column for each thing that is known of a row.

`source/data.ts` has the same tables under the same names; who changes one changes both.
A number that stands for something else is a *place*: of a row in another table
(`NodeTable.id` has the trace's own number), or of a text in `PageDocument.texts`; -1
for none. Times are nanoseconds from the start of the first pass. A *moment* is a place
in `EventTable`: what is so right after that event.
"""

from typing import NamedTuple

from gradviz.trace.format.table import Column


class NodeTable(NamedTuple):
    """Nodes: first those that ran, in this order, then those only reached.

    `name` and `module` to `shape` are texts, `family` is a place in
    `PageHeader.families`; `shape` is that of the first input. A `sequence_nr` of
    -1 is the largest. `saved_bytes` is how large the tensors are that a node kept, -1
    if that is unknown.
    """

    id: Column
    name: Column
    family: Column
    module: Column
    parameter: Column
    location: Column
    device: Column
    shape: Column
    sequence_nr: Column
    topological_nr: Column
    saved_bytes: Column


class EdgeTable(NamedTuple):
    """Ways of gradients, by producer."""

    producer: Column
    consumer: Column
    input_nr: Column


class EventTable(NamedTuple):
    """Events in order; `kind` is a place in `PageHeader.kinds`.

    `stage` is what the node becomes by it, a place in `PageHeader.stages`, or -1.
    """

    at_ns: Column
    kind: Column
    task: Column
    node: Column
    thread: Column
    stage: Column


class EndingTable(NamedTuple):
    """Ends of nodes by no event of theirs: with their pass, or after the page.

    At the moment `at`, which is one more than there are events where that is after all
    of them, a node gets the `stage`, and waits for `remaining` gradients.
    """

    task: Column
    node: Column
    at: Column
    stage: Column
    remaining: Column


class RunTable(NamedTuple):
    """Evaluations of nodes, in order of start.

    `begin` and `end` are moments, -1 where there is no such event; what never ended is
    over after its pass. `end_ns` is `start_ns` where it is not known. `waited_ns` and
    `thread_time_ns` are -1 where they are not; `status` is a place in
    `PageHeader.statuses`, `error` a text.
    `processor_wait_ns` is what nothing explains; of `num_alike` passes the medians are
    `usual_ns` and `usual_thread_time_ns`, -1 where they are not known.
    """

    node: Column
    task: Column
    thread: Column
    begin: Column
    end: Column
    start_ns: Column
    end_ns: Column
    waited_ns: Column
    thread_time_ns: Column
    status: Column
    error: Column
    processor_wait_ns: Column
    num_alike: Column
    usual_ns: Column
    usual_thread_time_ns: Column


class StayTable(NamedTuple):
    """Tasks in ready queues, in the order in which they came.

    `queue` and threads are the trace's numbers. `pushed` and `popped` are events, -1
    where it never left; `what` is 0 for a node, 1 for a root and 2 for a wake-up, which
    has no node. Of two that lie in a queue the one with the lower `turn` goes first.
    `busy_ns` is how long the thread that ran the node ran others meanwhile, `slept_ns`
    how long after the push it woke up, `num_ahead` how many tasks left the queue first.
    """

    queue: Column
    task: Column
    node: Column
    pushed: Column
    popped: Column
    pushed_by: Column
    thread: Column
    popped_by: Column
    what: Column
    turn: Column
    busy_ns: Column
    slept_ns: Column
    num_ahead: Column


class OvertakingTable(NamedTuple):
    """Tasks that left a queue before another one: of each `stay` the first of them.

    Both are places in `StayTable`; `why` is a place in `PageHeader.precedences`, -1
    where PyTorch's order has no reason.
    """

    stay: Column
    ahead: Column
    why: Column


class GradientTable(NamedTuple):
    """Gradients that nodes were given: at the event `at`, held until the event `until`.

    `remaining` is how many more the node then waits for; `until` is when it began, or
    was skipped, -1 for never.
    """

    task: Column
    node: Column
    producer: Column
    input_nr: Column
    remaining: Column
    size_bytes: Column
    at: Column
    until: Column


class SleepTable(NamedTuple):
    """Threads asleep on empty queues, in order of begin.

    `begin` is a moment, or one more than there are events; `end` is one, -1 where it is
    after all of them.
    """

    thread: Column
    queue: Column
    begin: Column
    end: Column
    begin_ns: Column
    end_ns: Column


class StreamWaitTable(NamedTuple):
    """Waits of a node's stream for the work of others; -1: that of the caller."""

    task: Column
    node: Column
    producer: Column


class RpcEdgeTable(NamedTuple):
    """Whence gradients came from other workers, and where they went, in sentences.

    `before` and `after` are texts with the name of `other` between them, a node of
    another worker; `fact` is a place in `PageHeader.crossing_facts`.
    """

    task: Column
    node: Column
    fact: Column
    before: Column
    other: Column
    after: Column


class HookTable(NamedTuple):
    """Hooks that were called for nodes, in their order: a text each."""

    task: Column
    node: Column
    text: Column


class KernelTable(NamedTuple):
    """Work of streams, in order of begin. `stream` and `name` are texts.

    `family` is a place in `PageHeader.families`.
    """

    stream: Column
    name: Column
    family: Column
    thread: Column
    launched_ns: Column
    begin_ns: Column
    end_ns: Column


class KernelWaitTable(NamedTuple):
    """Kernels that could not begin before one of another stream was done.

    Both are places in `KernelTable`. `node` asked for it, for the gradient of
    `producer`; -1 where none did.
    """

    kernel: Column
    awaited: Column
    node: Column
    producer: Column


class BlockedTable(NamedTuple):
    """Times at which a stream had work and waited for another. Both are texts."""

    stream: Column
    awaited_stream: Column
    begin_ns: Column
    end_ns: Column


class MemoryTable(NamedTuple):
    """Bytes held from a time on, a curve for each of `PageHeader.purposes`."""

    purpose: Column
    at_ns: Column
    size_bytes: Column


class SegmentTable(NamedTuple):
    """The critical path; `kind` is a place in `PageHeader.segment_kinds`.

    A segment lies on a thread, or on a stream, which is a text; the other one is -1.
    """

    kind: Column
    begin_ns: Column
    end_ns: Column
    thread: Column
    stream: Column
    task: Column
    node: Column


class CostTable(NamedTuple):
    """Costs of nodes to the pass of the critical path.

    `slack_ns` is -1 where nothing waited for it, `if_free_ns` where it is not known.
    """

    task: Column
    node: Column
    own_ns: Column
    on_path_ns: Column
    slack_ns: Column
    if_free_ns: Column


class PartTable(NamedTuple):
    """Parts of graphs that can be opened; see Note [Parts of a drawing].

    `box` is the box that is opened to see the inside, -1 of the graph of a whole pass
    that no node of another one called;
    width and height are in pixels. `omitted` is how many nodes are left out of such a
    graph, because there are too many.
    """

    task: Column
    box: Column
    width: Column
    height: Column
    omitted: Column


class BoxTable(NamedTuple):
    """Boxes, by their centers within the inside of `part`, in pixels.

    `node` is the first that a box stands for; `badge`, `title` and `subtitle` are
    texts. The badge, at its left end, has the numbers of its nodes in the order of
    execution.
    """

    part: Column
    node: Column
    x: Column
    y: Column
    width: Column
    height: Column
    badge: Column
    badge_width: Column
    title: Column
    subtitle: Column
    num_nodes: Column


class ChipTable(NamedTuple):
    """Leaves, drawn at the lower end of the boxes that lead to them, in this order."""

    box: Column
    node: Column
    text: Column


class MemberTable(NamedTuple):
    """Nodes of a box that has no inside, those of its chips included."""

    box: Column
    node: Column


class WayTable(NamedTuple):
    """Ways between boxes of a part; -1 is its border. Their stops end at `end`."""

    part: Column
    producer: Column
    consumer: Column
    end: Column


class StopTable(NamedTuple):
    """Ways of edges, vertical at each stop, and in curves between."""

    x: Column
    y: Column
