"""Rows reported for an engine that reports nothing itself."""

import threading

import numpy as np
import pytest

from gradviz.trace.events import (
    KINDS,
    Mark,
    NodeCompleted,
    NodeStarted,
    TaskPopped,
    kind_name,
    own_columns,
)
from gradviz.trace.format.row_layouts import Inferred
from gradviz.trace.format.scope import Scope
from gradviz.trace.merging.merged_file import merged
from gradviz.trace.merging.placement import place
from gradviz.trace.reading.reader import parse_trace
from gradviz.trace.recording.recorder import Recorder
from gradviz.trace.recording.sink import MemorySink

#: No thread of this process.
ELSEWHERE = -5


def here():
    return threading.get_native_id()


def row_of(kind):
    own = [f"text {kind.code}" if one.type is str else 0 for one in own_columns(kind)]
    return [kind.code, -1, -1, *own]


def test_rows_of_other_threads_are_read_as_theirs(bench):
    bench.recorder.mark("mine")
    bench.recorder.rows_reported(here(), "", {NodeStarted: [2_000, 1, 2]})
    bench.recorder.rows_reported(ELSEWHERE, "device 0", {NodeStarted: [2_001, 1, 3]})
    bench.recorder.rows_reported(ELSEWHERE, "whatever", {NodeStarted: [2_002, 1, 4]})

    trace = bench.trace()
    mark, *started = trace.events()
    assert [(one.t_ns, one.node) for one in started] == [
        (2_000, 2),
        (2_001, 3),
        (2_002, 4),
    ]
    mine, theirs = mark.thread, started[1].thread
    assert [one.thread for one in started] == [mine, theirs, theirs]
    assert trace.threads[theirs].name == "device 0"


def test_rows_of_a_thread_that_reports_itself_are_among_its_own(bench):
    has_reported, is_told = threading.Event(), threading.Event()

    def work():
        bench.recorder.mark("its own")
        numbers.append(here())
        has_reported.set()
        is_told.wait(60)

    numbers = []
    thread = threading.Thread(target=work, name="worker")
    thread.start()
    has_reported.wait(60)
    bench.recorder.rows_reported(numbers[0], "whatever", {NodeStarted: [2_000, 1, 2]})
    is_told.set()
    thread.join()
    bench.recorder.rows_reported(numbers[0], "whatever", {NodeStarted: [2_001, 1, 3]})

    trace = bench.trace()
    mark, during, after = trace.events()
    assert mark.thread == during.thread == after.thread
    assert [one.name for one in trace.threads.values()] == ["worker"]


def test_rows_that_come_late_stand_where_their_time_is(bench):
    recorder, rows = bench.recorder, [1_500, 1, 2]
    recorder.rows_reported(here(), "", {NodeStarted: [1_700, 1, 5]})
    recorder.flush()
    recorder.rows_reported(
        here(), "", {NodeCompleted: [1_600, 1, 2, 0], NodeStarted: rows}
    )

    assert [(type(one), one.node) for one in bench.trace().events()] == [
        (NodeStarted, 2),
        (NodeCompleted, 2),
        (NodeStarted, 5),
    ]


@pytest.mark.parametrize("kind", KINDS.values(), ids=kind_name)
def test_every_kind_may_be_inferred(bench, kind):
    bench.recorder.rows_reported(
        here(), "", {kind: row_of(kind), Inferred(kind): row_of(kind)}
    )

    seen, inferred = bench.trace().events()
    assert type(seen) is type(inferred) is kind
    assert (seen.inferred, inferred.inferred) == (False, True)
    for column in own_columns(kind):
        if column.type is str:
            assert getattr(inferred, column.name) == f"text {kind.code}"


def test_it_is_known_of_each_event_whether_it_is_inferred(bench):
    for number in range(3_000):
        key = Inferred(TaskPopped) if number % 3 else TaskPopped
        bench.recorder.rows_reported(here(), "", {key: [number, 1, number, 0, 0]})

    trace = bench.trace()
    assert [one.inferred for one in trace.events()] == [n % 3 > 0 for n in range(3_000)]
    assert trace.columns["task_popped"]["inferred"].sum() == 2_000


def test_a_merged_trace_knows_what_is_inferred(make_bench):
    traces = []
    for _ in range(2):
        bench = make_bench()
        bench.recorder.rows_reported(
            here(), "", {Inferred(TaskPopped): [5, 1, 7, 0, 0]}
        )
        bench.recorder.rows_reported(here(), "", {TaskPopped: [6, 1, 8, 0, 0]})
        traces.append(bench.trace())

    whole = parse_trace(b"".join(merged(place(traces))))
    assert sorted((one.t_ns, one.inferred) for one in whole.events()) == [
        *2 * [(5, True)],
        *2 * [(6, False)],
    ]


def test_of_nodes_that_are_not_wanted_nothing_inferred_is_kept(make_node):
    sink = MemorySink()
    recorder = Recorder(sink, flush_every_s=None, scope=Scope(only=("Sin*",)))
    nodes = [make_node(1, text="SinBackward0"), make_node(2, text="CosBackward0")]
    recorder.nodes_defined(nodes)
    rows = [5, 1, 1, 0, 0, 6, 1, 2, 0, 0]
    recorder.rows_reported(here(), "", {Inferred(TaskPopped): rows, TaskPopped: rows})
    recorder.close()

    events = parse_trace(sink.contents()).events()
    assert sorted((one.node, one.inferred) for one in events) == [(1, False), (1, True)]


def test_a_line_that_is_told_with_a_node_is_where_it_was_made(bench, make_node):
    nodes = [make_node(1), make_node(2), make_node(3)]
    bench.recorder.node_created(nodes[2])
    bench.recorder.nodes_defined(nodes, {1: "model.py:7", 3: "elsewhere.py:8"})

    trace = bench.trace()
    assert trace.nodes[1].location == "model.py:7"
    assert trace.nodes[2].location == ""
    assert __file__ in trace.nodes[3].location  # it was seen
    texts, places = trace.nodes.names(np.array([1, 2, 1, 9]), "location")
    assert [texts[place] for place in places] == ["model.py:7", "", "model.py:7", "?"]


def test_nothing_is_told_to_a_recorder_that_is_closed(bench):
    bench.recorder.close()
    bench.recorder.rows_reported(ELSEWHERE, "", {Mark: [1, -1, -1, "late"]})

    assert bench.trace().num_events == 0


def test_the_place_of_a_node_may_be_reported_after_its_definition(bench, make_node):
    node, placed = make_node(1), make_node(1, module_path="Net.first")
    bench.recorder.nodes_defined([node], {1: "elsewhere.py:8"})
    bench.recorder.nodes_placed([placed], {1: "model.py:7"})

    (found,) = bench.trace().nodes.values()
    assert (found.module, found.location) == ("Net.first", "model.py:7")


def test_a_node_may_lose_its_place(bench, make_node, make_edge):
    leaf = make_node(2)
    node = make_node(1, module_path="Net", next_edges=(make_edge(leaf),))
    bench.recorder.nodes_defined([node, leaf], {1: "elsewhere.py:8"})
    bench.recorder.flush()
    bench.recorder.nodes_placed([node._replace(module_path="")])

    found = bench.trace().nodes[1]
    assert (found.module, found.location) == ("", "")


def test_a_node_whose_place_is_wanted_is_kept_when_that_is_known(make_node):
    sink = MemorySink()
    recorder = Recorder(sink, flush_every_s=None, scope=Scope(only=("Net.first*",)))
    recorder.nodes_defined([make_node(1), make_node(2)])
    recorder.nodes_placed([make_node(1, module_path="Net.first")])
    recorder.rows_reported(here(), "", {TaskPopped: [5, 1, 1, 0, 0, 6, 1, 2, 0, 0]})
    recorder.close()

    assert [one.node for one in parse_trace(sink.contents()).events()] == [1]
