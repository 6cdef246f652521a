"""Every answer in JSON says, by one name, whether the trace lacks something."""

import json

import pytest

COMMANDS = (
    ("show", "summary", "TRACE"),
    ("show", "summary", "--by", "module", "TRACE"),
    ("show", "order", "TRACE"),
    ("show", "order", "--predicted", "TRACE"),
    ("show", "timeline", "TRACE"),
    ("show", "queues", "TRACE"),
    ("show", "queues", "--at", "0ns", "TRACE"),
    ("show", "critical", "TRACE"),
    ("show", "utilization", "TRACE"),
    ("show", "memory", "TRACE"),
    ("show", "memory", "--at", "0ns", "TRACE"),
    ("simulate", "TRACE"),
    ("explain", "TRACE", "Stop"),
    ("replay", "TRACE"),
    ("diff", "TRACE", "TRACE"),
)


@pytest.mark.parametrize("is_complete", [True, False])
@pytest.mark.parametrize("command", COMMANDS, ids=" ".join)
def test_it_says_whether_the_trace_is_complete(
    command, is_complete, trace_path, call, tmp_path
) -> None:
    path = trace_path
    if not is_complete:
        path = tmp_path / "cut.gvt"
        path.write_bytes(trace_path.read_bytes()[:-10])

    words = [path if word == "TRACE" else word for word in command]
    result = call(*words, "--json")

    documents = [json.loads(line) for line in result.stdout.splitlines()]
    assert {one["is_complete"] for one in documents} == {is_complete}, result.stderr
