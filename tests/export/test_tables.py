"""The tables, against the events from which they are made."""

import contextlib
import sqlite3
from collections import Counter

import msgspec
import pytest

import gradviz as gv
from gradviz.capture.session import record
from gradviz.export import sqlite
from gradviz.export.tables import TABLES
from gradviz.trace import events as e
from gradviz.trace.reading.reader import parse_trace
from tests.export.recordings import of_every_kind


def rows(trace, table):
    """The rows of a table, each a dictionary."""
    names = [field.name for field in TABLES[table].fields]
    found = [row for batch in TABLES[table].batches(trace) for row in batch]
    return [dict(zip(names, row, strict=True)) for row in found]


def test_a_run_has_all_moments_of_a_node(pair):
    story, *_ = pair
    mul, leaf = rows(story.trace(), "runs")
    assert ".py:" in mul.pop("location")

    assert {key: value for key, value in mul.items() if value is not None} == {
        "task": 7,
        "node": 2,
        "name": "MulBackward0",
        "device": "cpu",
        "thread": 0,
        "queue": 1,
        "pushed_ns": 1010,
        "popped_ns": 1015,
        "started_ns": 1020,
        "ended_ns": 1080,
        "waited_ns": 5,
        "took_ns": 60,
        "status": "completed",
        "part": 7,
    }
    assert (leaf["name"], leaf["waited_ns"], leaf["took_ns"]) == (
        "AccumulateGrad",
        12,
        5,
    )


def test_values_missing_from_the_trace_are_null(story):
    node = story.node(1)
    story.begin(7, [node], at=0)
    story.start(7, node, at=10)
    (run,) = rows(story.trace(), "runs")

    lacking = ("queue", "pushed_ns", "popped_ns", "ended_ns", "waited_ns", "took_ns")
    assert [run[name] for name in lacking] == [None] * 6
    assert run["status"] == "unfinished"


def test_an_unknown_field_of_an_event_is_null(story):
    node = story.node(1)
    for size_bytes in (8, -1):
        story.recorder.tensor_saved(node.id, size_bytes)

    told = [one for one in rows(story.trace(), "events") if "saved" in one["kind"]]

    fields = [msgspec.json.decode(one["fields"]) for one in told]
    assert fields == [{"size_bytes": 8}, {"size_bytes": None}]


def test_runs_are_as_the_events_tell(trace):
    first = {}
    for event in trace.events():
        first[type(event), event.task, event.node] = event
    starts = [one for one in trace.events() if isinstance(one, e.NodeStarted)]
    found = {(row["task"], row["node"]): row for row in rows(trace, "runs")}

    for start in starts:
        row = found[start.task, start.node]
        pushed = first[e.TaskPushed, start.task, start.node]
        popped = first[e.TaskPopped, start.task, start.node]
        ended = first.get(
            (e.NodeFailed, start.task, start.node),
            first.get((e.NodeCompleted, start.task, start.node)),
        )
        assert row["started_ns"] == start.t_ns
        assert row["thread"] == start.thread
        assert row["queue"] == pushed.queue
        assert row["waited_ns"] == popped.t_ns - pushed.t_ns
        assert row["ended_ns"] == (ended and ended.t_ns)


def test_events_are_all_there_with_their_own_fields(trace):
    found = rows(trace, "events")

    assert len(found) == trace.num_events
    for row, event in zip(found, trace.events(), strict=True):
        common = {**row, **msgspec.json.decode(row["fields"])}
        del common["fields"]
        told = msgspec.to_builtins(event)
        lacking = {name: None for name in ("task", "node") if told[name] == -1}
        assert common == {**told, **lacking}


def test_edges_lead_where_the_definitions_say(trace):
    told = Counter(
        (node.id, nr, consumer, input_nr)
        for node in trace.nodes.values()
        for nr, (consumer, input_nr) in enumerate(node.edges)
        if consumer >= 0
    )

    assert Counter(tuple(row.values()) for row in rows(trace, "edges")) == told


def test_losses_of_a_trace_are_rows_of_a_table(pair):
    story, *_ = pair
    whole = story.contents()

    assert rows(parse_trace(whole), "losses") == []
    lost = rows(parse_trace(whole[:-7]), "losses")
    assert {"truncated", "not closed"} <= {row["what"] for row in lost}


def test_events_left_out_on_purpose_are_listed_with_the_losses():
    with record(events="!queue_waited") as recording:
        gv.tensor([1.0], requires_grad=True).sin().sum().backward()

    (row,) = rows(recording.trace, "losses")
    assert row["what"] == "left out on purpose"
    assert row["text"] == "no events queue_waited"


@pytest.fixture
def database(tmp_path):
    """Return a function that makes a database of a trace."""

    with contextlib.ExitStack() as opened:

        def make(trace):
            path = tmp_path / "x.sqlite"
            path.write_bytes(b"".join(sqlite.parts(trace)))
            return opened.enter_context(contextlib.closing(sqlite3.connect(path)))

        yield make


def test_sql_says_which_node_waited_longest(trace, database):
    pushed, waits = {}, {}
    for event in trace.events():
        key = event.task, event.node
        if isinstance(event, e.TaskPushed):
            pushed[key] = event.t_ns
        elif isinstance(event, e.TaskPopped) and event.node >= 0:
            waits[key] = event.t_ns - pushed[key]
    started = {
        (one.task, one.node) for one in trace.events() if isinstance(one, e.NodeStarted)
    }

    task, node, waited_ns = (
        database(trace)
        .execute(
            "SELECT task, node, waited_ns FROM runs ORDER BY waited_ns DESC LIMIT 1"
        )
        .fetchone()
    )

    longest = max(waits[key] for key in started)
    assert waited_ns == longest == waits[task, node]


def test_a_database_has_all_tables_of_any_trace(database):
    trace = parse_trace(of_every_kind())
    connection = database(trace)

    for name, table in TABLES.items():
        expected = [row for batch in table.batches(trace) for row in batch]
        assert connection.execute(f"SELECT * FROM {name}").fetchall() == expected
    assert connection.execute("PRAGMA integrity_check").fetchone() == ("ok",)


def test_fields_of_events_are_asked_for_in_sql(trace, database):
    told = sum(
        one.size_bytes for one in trace.events() if isinstance(one, e.GradientBuffered)
    )
    question = (
        "SELECT coalesce(sum(json_extract(fields, '$.size_bytes')), 0) FROM events "
        "WHERE kind = 'gradient_buffered'"
    )

    assert database(trace).execute(question).fetchone() == (told,)


def test_a_kernel_of_which_nobody_knows_when_it_ran_has_no_times(story):
    story.begin(0, [story.node(1)], at=0)
    story.recorder.kernel_launched(1, "sim:0/0", "lost")
    story.kernel(2, "sim:0/0", at=5, ran=(10, 20), name="known")

    kernels = rows(story.trace(), "kernels")

    assert [
        (one["name"], one["began_ns"] is None, one["ended_ns"] is None)
        for one in kernels
    ] == [("known", False, False), ("lost", True, True)]
