from pathlib import Path

import msgspec
import numpy as np
import pytest

import gradviz as gv
from gradviz import nn, sim
from gradviz.analysis.nodes.execution_order import (
    ORDER_KEYS,
    document_of,
    execution_order,
    execution_orders,
)
from gradviz.analysis.nodes.labels import is_meant
from gradviz.capture.session import record
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
        "worker": None,
        "start_ns": 1_020,
        "end_ns": 1_080,
        "waited_ns": 5,
        "status": "completed",
        "error": "",
        "module": "",
        "location": first.location,
        "shapes": ((3, 2),),
        "parameters": (),
        "thread_time_ns": None,
        "processor_wait_ns": 0,
    }
    assert Path(first.location.rpartition(":")[0]).name == "conftest.py"
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


def test_a_node_is_captured_only_if_it_did_not_run_as_well():
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

    assert list(document) == ["schema", "version", "task", "begin_ns", "order"]
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


@pytest.fixture
def trained():
    """Two steps of a model, on two devices."""

    class Ordered(nn.Module):
        def __init__(self):
            super().__init__()
            self.first, self.second = nn.Linear(3, 4), nn.Linear(4, 2)

        def forward(self, x):
            return self.second(self.first(x).to("sim:1").cpu().relu())

    count = sim.device_count()
    sim.set_device_count(2)
    model = Ordered()
    with record() as recording:
        for _ in range(2):
            model(gv.ones(5, 3)).sum().backward()
    sim.set_device_count(count)
    return recording.trace


def brute_force(trace, task, sort, filters):
    """The nodes of a pass as they are asked for, from the events alone."""
    moments = {}
    for event in trace.events(task=task):
        moments.setdefault(type(event).__name__, {}).setdefault(event.node, event.t_ns)
    started = moments["NodeStarted"]
    rows = {row.node: row for row in execution_order(trace, task)}
    threads = {
        event.node: event.thread
        for event in trace.events(task=task)
        if type(event).__name__ == "NodeStarted"
    }

    def label(node, of):
        known = trace.nodes[node]
        return {
            "name": known.name,
            "module": known.module,
            "parameter": ", ".join(known.parameters),
            "line": known.location,
            "depth": known.topological_nr,
            "device": known.device,
            "thread": threads[node],
            "worker": "",
            "status": "completed",
            "start": started[node],
            "took": started[node] - moments["NodeCompleted"][node],
            "running": -rows[node].thread_time_ns,
            "lost": -rows[node].processor_wait_ns,
            "queued": moments["TaskPushed"][node] - moments["TaskPopped"][node],
        }[of]

    nodes = sorted(started, key=lambda node: (label(node, sort), started[node]))
    return [
        node
        for node in nodes
        if all(text in str(label(node, of)) for of, text in filters)
    ]


@pytest.mark.parametrize("sort", ORDER_KEYS)
def test_rows_are_sorted_by_what_is_asked_for(trained, sort):
    orders = execution_orders(trained, trained.tasks, sort=sort)

    for order in orders:
        expected = brute_force(trained, order.task, sort, [])
        assert [row.node for row in order.rows] == expected


@pytest.mark.parametrize(
    "filters",
    [
        [("name", "Addmm")],
        [("name", "A"), ("module", "second")],
        [("device", "sim:1")],
        [("line", "test_execution_order.py"), ("module", "Ordered")],
        [("depth", "1")],
        [("status", "failed")],
    ],
)
def test_only_rows_that_are_meant_are_there(trained, filters):
    for order in execution_orders(trained, trained.tasks, filters=filters):
        every = execution_order(trained, order.task)
        expected = brute_force(trained, order.task, "start", filters)
        if filters == [("depth", "1")]:  # a number is no part of another one
            expected = [row.node for row in every if row.topological_nr == 1]
        assert [row.node for row in order.rows] == expected
        assert all(row == every[row.index] for row in order.rows)
        assert order.num_nodes == len(every)


def test_of_each_pass_the_first_rows_are_shown_and_the_others_counted(trained):
    orders = list(execution_orders(trained, trained.tasks, sort="queued", limit=3))

    assert [len(order.rows) for order in orders] == [3, 3]
    for order in orders:
        expected = brute_force(trained, order.task, "queued", [])
        assert [row.node for row in order.rows] == expected[:3]
        assert order.omitted == len(expected) - 3


def test_a_row_tells_what_made_its_node_and_of_what_shape(trained):
    rows = execution_order(trained, trained.tasks[0])
    row = next(row for row in rows if row.name == "AddmmBackward0")

    assert row.module.endswith(".second")
    assert row.shapes == ((5, 2),)
    assert "test_execution_order.py:" in row.location
    for row in rows:
        known = trained.nodes[row.node]
        assert row.shapes == tuple(one and one.shape for one in known.inputs)
        assert (row.module, row.location) == (known.module, known.location)


def test_rows_with_an_unknown_sort_key_come_last(story):
    nodes = [story.node(number) for number in range(4)]
    story.begin(0, nodes, at=0)
    story.start(0, nodes[0], at=10)
    story.ran(0, nodes[1], at=20, until=25)
    story.take(0, nodes[2], at=(30, 31, 40), until=48)
    trace = story.trace()

    def sorted_by(key):
        (order,) = execution_orders(trace, [0], sort=key)
        return [row.node for row in order.rows]

    assert sorted_by("took") == [2, 1, 0]
    assert sorted_by("queued") == [2, 0, 1]


@pytest.mark.parametrize(
    ("text", "pattern", "of", "expected"),
    [
        ("Net.layers.10", "layers.1", "module", True),
        ("Net.layers.10", "*.layers.1", "module", False),
        ("Net.layers.1", "*.layers.1", "module", True),
        ("Net.layers.1", "layers.[12]", "module", False),
        ("MulBackward0", "mul", "name", False),
        ("10", "1", "depth", False),
        ("10", "1*", "depth", True),
        ("", "", "module", True),
    ],
)
def test_a_pattern_means_a_part_or_with_wildcards_all_of_a_label(
    text, pattern, of, expected
):
    assert is_meant(text, pattern, of) is expected


def test_a_node_says_for_how_long_its_thread_was_running(timed):
    node = timed.node(7)
    timed.begin(1, [node], at=timed.now)
    timed.started(1, 7)
    timed.runs(0.2)
    timed.loses(5)
    timed.recorder.node_completed(1, 7)
    timed.end(1, at=timed.now)

    (row,) = execution_order(timed.trace(), 1)

    assert row.thread_time_ns == pytest.approx(200_000, abs=50)
    assert row.processor_wait_ns == pytest.approx(5_000_000, abs=50)
