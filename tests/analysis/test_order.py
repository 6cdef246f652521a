import msgspec
import numpy as np

from gradviz.analysis.order import document_of, execution_order, execution_orders
from gradviz.capture import record
from gradviz.engine import Edge, Engine, Node


def test_a_row_holds_what_the_trace_says_of_a_node(pair):
    story, _, _ = pair

    first, second = execution_order(story.trace(), 7)

    assert msgspec.to_builtins(first) == {
        "index": 0,
        "node": 2,
        "name": "MulBackward0",
        "sequence_nr": 2,
        "topological_nr": 1,
        "device": "cpu",
        "thread": 0,
        "start_ns": 1_020,
        "end_ns": 1_080,
        "waited_ns": 5,
        "status": "completed",
        "error": "",
    }
    assert (second.index, second.node, second.waited_ns) == (1, 1, 12)


def test_nodes_of_other_passes_are_left_out(pair):
    story, root, leaf = pair
    story.begin(8, [root, leaf], at=2_000)
    story.ran(8, leaf, at=2_010, until=2_020)
    story.end(8, at=2_030)

    assert [row.node for row in execution_order(story.trace(), 8)] == [leaf.id]


def test_a_node_that_failed_ended_when_it_raised(story):
    root = story.node(1)
    story.begin(0, [root], at=0)
    story.start(0, root, at=5)
    story.fail(0, root, "ValueError: no", at=9)

    (row,) = execution_order(story.trace(), 0)

    assert (row.start_ns, row.end_ns, row.waited_ns) == (1_005, 1_009, None)
    assert (row.status, row.error) == ("failed", "ValueError: no")


def test_a_node_whose_end_is_not_in_the_trace_is_unfinished(story):
    root = story.node(1)
    story.begin(0, [root], at=0)
    story.start(0, root, at=5)

    (row,) = execution_order(story.trace(), 0)

    assert (row.end_ns, row.status) == (None, "unfinished")


def test_what_only_gave_its_gradient_is_captured_and_what_ran_too_is_not():
    class Keep(Node):
        def apply(self, grad):
            return (grad,)

    leaf = Keep([Edge(None)])
    middle = Keep([Edge(leaf)])
    with record() as recording:
        Engine().execute(
            [Edge(Keep([Edge(middle)]))],
            [np.ones(1)],
            outputs=[Edge(middle), Edge(leaf)],
            accumulate_grad=False,
        )

    rows = execution_order(recording.trace, recording.trace.tasks[0])
    assert [row.status for row in rows] == ["completed", "completed", "captured"]


def test_a_node_reached_only_for_its_gradient_counts_as_started(story):
    captured, root = story.node(1), story.node(2)
    story.begin(0, [root, captured], at=0)
    story.ran(0, root, at=2, until=4)
    story.capture(0, captured, at=6)
    story.end(0, at=7)

    rows = execution_order(story.trace(), 0)

    assert [(row.node, row.start_ns, row.end_ns) for row in rows] == [
        (2, 1_002, 1_004),
        (1, 1_006, 1_006),
    ]


def test_a_captured_node_that_runs_is_listed_once(story):
    root = story.node(1)
    story.begin(0, [root], at=0)
    story.capture(0, root, at=2)
    story.ran(0, root, at=3, until=4)
    story.end(0, at=7)

    (row,) = execution_order(story.trace(), 0)

    assert (row.start_ns, row.end_ns) == (1_003, 1_004)


def test_order_is_that_of_starting_not_of_ending(story):
    outer, inner = story.node(1), story.node(2)
    story.begin(0, [outer, inner], at=0)
    story.start(0, outer, at=2)
    story.on_thread("other", lambda: story.ran(0, inner, at=3, until=4))
    story.complete(0, outer, at=9)
    story.end(0, at=10)

    rows = execution_order(story.trace(), 0)

    assert [row.node for row in rows] == [1, 2]
    assert rows[0].thread != rows[1].thread


def test_a_node_whose_definition_is_lost_is_still_listed(story):
    lost = story.node(1)
    story.begin(0, [], at=0)
    story.recorder.node_started(0, 99)
    story.ran(0, lost, at=5, until=6)
    story.end(0, at=7)

    assert [row.node for row in execution_order(story.trace(), 0)] == [99, 1]


def test_the_document_has_exactly_the_promised_keys(pair):
    story, _, _ = pair

    (order,) = execution_orders(story.trace(), [7])
    document = document_of(order)

    assert list(document) == ["schema", "version", "task", "order"]
    assert (document["schema"], document["version"]) == ("gradviz.order", 1)
    assert document["task"] == 7
    assert msgspec.json.decode(msgspec.json.encode(document))["order"][1]["node"] == 1


class Twice(Node):
    def apply(self, grad):
        return (2 * grad,)


class Sink(Node):
    def apply(self, grad):
        return ()


def test_the_order_of_a_real_backward_follows_sequence_numbers():
    early = Twice([Edge(Sink(), 0)])
    late = Twice([Edge(Sink(), 0)])

    with record() as recording:
        Engine().execute([Edge(early, 0), Edge(late, 0)], [np.ones(2), np.ones(2)])

    rows = execution_order(recording.trace, recording.trace.tasks[0])
    numbers = [row.sequence_nr for row in rows if row.name == "Twice"]
    assert numbers == [late.sequence_nr, early.sequence_nr]
