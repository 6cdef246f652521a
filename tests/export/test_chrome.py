"""Chrome's format, held to what its viewers need."""

import json
from collections import Counter, defaultdict

import pytest

from gradviz.export.chrome import parts
from gradviz.trace import events as e
from gradviz.trace.reading.reader import parse_trace
from tests.export.recordings import of_every_kind


def read(trace):
    return json.loads(b"".join(parts(trace)))


def of(trace, phase):
    return [one for one in read(trace)["traceEvents"] if one["ph"] == phase]


def ns(microseconds):
    return round(microseconds * 1000)


def test_complete_events_nest_on_each_track(trace):
    tracks = defaultdict(list)
    for one in of(trace, "X"):
        begin = ns(one["ts"])
        tracks[one["pid"], one["tid"]].append((begin, begin + ns(one["dur"])))
    for slices in tracks.values():
        still_open = []
        for begin, end in slices:
            while still_open and still_open[-1] <= begin:
                still_open.pop()
            assert not still_open or end <= still_open[-1]
            still_open.append(end)


def test_every_track_has_a_name(trace):
    names = {(one["pid"], one["tid"]): one["args"]["name"] for one in of(trace, "M")}

    assert {(one["pid"], one["tid"]) for one in of(trace, "X")} <= names.keys()
    assert {"backward passes", "MainThread"} <= {*names.values()}


def test_every_node_is_there_with_its_time(trace):
    starts = {
        (one.task, one.node): one
        for one in trace.events()
        if isinstance(one, e.NodeStarted)
    }
    ends = {
        (one.task, one.node): one.t_ns
        for one in trace.events()
        if isinstance(one, e.NodeCompleted | e.NodeFailed)
    }
    found = {}
    for one in of(trace, "X"):
        if one["cat"] == "node":
            found[one["args"]["task"], one["args"]["node"]] = one

    for key, start in starts.items():
        assert found[key]["name"] == trace.nodes[start.node].name
        assert ns(found[key]["dur"]) == ends[key] - start.t_ns


def test_arrows_begin_and_end_inside_of_slices(trace):
    tracks = defaultdict(list)
    for one in of(trace, "X"):
        begin = ns(one["ts"])
        tracks[one["pid"], one["tid"]].append((begin, begin + ns(one["dur"])))
    begins, ends = of(trace, "s"), of(trace, "f")
    for one in (*begins, *ends):
        around = tracks[one["pid"], one["tid"]]
        assert any(begin <= ns(one["ts"]) <= end for begin, end in around)

    def keys(some):
        return Counter((one["cat"], one["name"], one["id"]) for one in some)

    assert keys(begins) == keys(ends)
    assert max(keys(ends).values(), default=1) == 1
    assert {one["bp"] for one in ends} <= {"e"}


def test_tasks_in_queues_begin_and_end(trace):
    pushes = sum(isinstance(one, e.TaskPushed) for one in trace.events())

    def keys(phase):
        return Counter((one["cat"], one["id"], one["pid"]) for one in of(trace, phase))

    assert keys("b") == keys("e")
    assert keys("b").total() == pushes


def test_counters_end_at_nothing(trace):
    last = {}
    for one in of(trace, "C"):
        ((unit, value),) = one["args"].items()
        assert value >= 0
        last[one["name"]] = unit, value

    assert {value for _, value in last.values()} == {0}
    assert {unit for unit, _ in last.values()} == {"tasks", "bytes"}


def test_losses_of_a_trace_are_reported(pair):
    story, *_ = pair
    cut = parse_trace(story.contents()[:-7])

    assert read(story.trace())["otherData"]["is_complete"]
    assert read(cut)["otherData"]["losses"]["truncated"]


@pytest.mark.parametrize("data", [of_every_kind()], ids=["of every kind"])
def test_numbers_of_any_size_make_a_file_that_can_be_read(data):
    assert read(parse_trace(data))["traceEvents"]
