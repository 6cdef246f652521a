import numpy as np
import pytest

from gradviz.trace.events import KINDS, NodeStarted, TaskBegun, kind_name, own_columns
from gradviz.trace.format.model import Losses
from gradviz.trace.probe import Skip


def test_events_are_numbered_in_the_order_of_their_times(bench):
    bench.engine.backward()

    events = bench.events()
    assert [event.seq for event in events] == list(range(len(events)))
    times = [event.t_ns for event in events]
    assert times == sorted(times)


def test_equal_times_are_ordered_by_thread(make_bench, monkeypatch):
    monkeypatch.setattr(
        "gradviz.trace.recording.recorder.event_clock", lambda clock: clock
    )
    import threading

    bench = make_bench()
    bench.recorder._clock = lambda: 5
    thread = threading.Thread(target=bench.recorder.node_started, args=(0, 1))
    thread.start()
    thread.join()
    bench.recorder.node_started(0, 2)

    assert [(event.thread, event.node) for event in bench.events()] == [(0, 2), (1, 1)]


def test_events_of_one_task_are_those_and_no_others(bench):
    for task in (4, 9):
        bench.engine.backward(task)
    trace = bench.trace()

    everything = list(trace.events())
    for task in (4, 9):
        mine = [event for event in everything if event.task == task]
        assert list(trace.events(task=task)) == mine
    assert list(trace.events(task=5)) == []


def test_tasks_are_in_the_order_in_which_they_began(bench):
    for task in (7, 3, 5):
        bench.engine.backward(task)

    assert bench.trace().tasks == (7, 3, 5)


def test_columns_say_the_same_as_events(bench):
    bench.engine.backward()
    bench.recorder.node_skipped(0, 1, Skip.ERROR)
    bench.recorder.task_failed(0, 1, "boom")
    trace = bench.trace()

    for kind in KINDS.values():
        columns = trace.columns[kind_name(kind)]
        events = [event for event in trace.events() if type(event) is kind]
        types = {one.name: one.type for one in own_columns(kind)}
        assert next(iter(columns)) == "seq"
        assert set(columns) == set(kind.__struct_fields__)
        for name, column in columns.items():
            numbers = column.tolist()
            if types.get(name) is str:
                numbers = [trace.strings[number] for number in numbers]
            assert numbers == [getattr(event, name) for event in events]
            assert column.dtype == np.int64


def test_every_kind_has_columns_even_if_nothing_happened(bench):
    columns = bench.trace().columns

    assert set(columns) == {kind_name(kind) for kind in KINDS.values()}
    assert all(len(own["seq"]) == 0 for own in columns.values())


def test_columns_cannot_be_changed(bench):
    bench.engine.backward()

    with pytest.raises(ValueError, match="read-only"):
        bench.trace().columns["task_begun"]["task"][0] = 5


def test_a_long_trace_is_typed_in_its_order(bench):
    for number in range(20_000):
        bench.recorder.node_started(0, number)
        bench.recorder.node_completed(0, number)

    events = bench.events()
    assert [event.seq for event in events] == list(range(40_000))
    assert [event.node for event in events[::2]] == list(range(20_000))
    assert type(events[30_000]) is NodeStarted


def test_truth_values_are_truth_values(bench):
    bench.engine.backward()

    (begun,) = (event for event in bench.events() if isinstance(event, TaskBegun))
    assert begun.keep_graph is False
    assert begun.create_graph is True


def test_nodes_are_defined_with_their_edges_and_inputs(
    bench, make_node, make_edge, make_metadata
):
    leaf = make_node(
        1,
        "AccumulateGrad",
        5,
        0,
        (),
        (make_metadata((), "float32", "sim:1"), None),
        "sim:1",
    )
    node = make_node(2, "MulBackward0", 9, 1, (make_edge(leaf, 1), make_edge(None, 0)))
    bench.recorder.node_created(node)
    bench.recorder.nodes_defined([leaf, node])

    nodes = bench.trace().nodes
    assert list(nodes) == [1, 2]
    assert (nodes[2].id, nodes[2].name, nodes[2].device) == (2, "MulBackward0", "cpu")
    assert (nodes[2].sequence_nr, nodes[2].topological_nr) == (9, 1)
    assert nodes[2].edges == ((1, 1), (-1, 0))
    assert [(one.shape, one.dtype, one.device) for one in nodes[2].inputs] == [
        ((2, 3), "float64", "cpu")
    ]
    assert nodes[2].location.startswith(__file__)
    assert nodes[1].location == ""
    assert nodes[1].device == "sim:1"
    assert nodes[1].inputs[0].shape == ()
    assert nodes[1].inputs[1] is None
    assert nodes[1] is nodes[1]


def test_a_queue_is_known_by_its_name(bench):
    bench.recorder.queue_defined(3, "sim:0", 0)
    bench.recorder.queue_defined(3, "sim:0", 0)

    ((number, queue),) = bench.trace().queues.items()
    assert (number, queue.id, queue.name, queue.device) == (3, 3, "sim:0", 0)


def test_the_header_says_who_recorded(bench):
    header = bench.trace().header

    assert header.version == (1, 2)
    assert header.recording >= 0
    assert header.pid > 0
    assert header.argv
    assert "numpy" in header.packages


def test_clocks_are_read_at_the_beginning_and_at_the_end(bench):
    bench.recorder.node_started(0, 1)
    trace = bench.trace()

    (event,) = trace.events()
    first, last = trace.clocks
    assert first == trace.header.clock
    assert first.monotonic_ns < event.t_ns < last.monotonic_ns


@pytest.mark.parametrize(
    "loss",
    [
        {"dropped": 1},
        {"damaged_bytes": 1},
        {"unknown_events": 1},
        {"truncated": True},
        {"closed": False},
        {"problems": ("one",)},
    ],
    ids=str,
)
def test_any_loss_makes_a_trace_incomplete(loss):
    assert Losses().is_complete
    assert not Losses(**loss).is_complete


def test_a_trace_says_what_it_is(bench):
    bench.engine.backward(length=1)

    assert repr(bench.trace()) == "<Trace in memory: 1 tasks, 11 events>"
