"""Speedscope's format: the rules of its schema."""

import json

import gradviz as gv
from gradviz.export.speedscope import parts
from gradviz.trace import events as e
from gradviz.trace.reading.reader import parse_trace


def read(trace):
    return json.loads(b"".join(parts(trace)))


def test_calls_are_sorted_balanced_and_nested(trace):
    file = read(trace)
    frames = file["shared"]["frames"]

    assert file["$schema"] == "https://www.speedscope.app/file-format-schema.json"
    assert file["profiles"]
    for profile in file["profiles"]:
        assert (profile["type"], profile["unit"]) == ("evented", "nanoseconds")
        times = [one["at"] for one in profile["events"]]
        assert times == sorted(times)
        assert profile["startValue"] <= times[0] <= times[-1] <= profile["endValue"]
        calls = []
        for one in profile["events"]:
            assert 0 <= one["frame"] < len(frames)
            if one["type"] == "O":
                calls.append(one["frame"])
            else:
                assert calls.pop() == one["frame"]
        assert calls == []


def test_a_thread_spends_as_long_in_a_node_as_it_ran(trace):
    file = read(trace)
    spent = 0
    for profile in file["profiles"]:
        for one in profile["events"]:
            spent += one["at"] if one["type"] == "C" else -one["at"]
    starts = {
        (one.task, one.node): one.t_ns
        for one in trace.events()
        if isinstance(one, e.NodeStarted)
    }
    ran = sum(
        one.t_ns - starts[one.task, one.node]
        for one in trace.events()
        if isinstance(one, e.NodeCompleted | e.NodeFailed)
        and (one.task, one.node) in starts
    )

    assert spent == ran


def test_a_frame_says_where_its_node_was_made(pair):
    story, *_ = pair
    mul, leaf = read(story.trace())["shared"]["frames"]

    assert (mul["name"], leaf["name"]) == ("MulBackward0", "AccumulateGrad")
    assert mul["file"].endswith("conftest.py")
    assert mul["line"] > 0


def test_of_two_lines_a_frame_has_the_innermost():
    space = {"__name__": "layers"}
    code = "def double(x):\n    return x * 2"
    exec(compile(code, "/site-packages/layers.py", "exec"), space)
    with gv.record() as recording:
        space["double"](gv.ones(1, requires_grad=True)).backward()

    frames = read(recording.trace)["shared"]["frames"]
    (mul,) = [one for one in frames if one["name"] == "MulBackward0"]

    assert (mul["file"], mul["line"]) == ("/site-packages/layers.py", 2)


def test_an_incomplete_trace_is_called_so(pair):
    story, *_ = pair
    whole = story.contents()

    assert "incomplete" not in read(parse_trace(whole))["name"]
    assert "incomplete" in read(parse_trace(whole[:-7]))["name"]
