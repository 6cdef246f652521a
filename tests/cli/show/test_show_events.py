import json

import pytest

from gradviz.trace.reading.reader import load_trace


def test_everything_is_told_in_order(trace_path, call) -> None:
    result = call("show", "events", trace_path)

    title, _threads, _names, *lines = result.stdout.splitlines()
    assert title.startswith(f"{load_trace(trace_path).num_events} events, times from")
    assert len(lines) == load_trace(trace_path).num_events
    times = [float(line.split()[0].replace(",", "")) for line in lines]
    assert times == sorted(times)


def test_json_is_an_event_a_line_as_the_trace_has_it(trace_path, call) -> None:
    result = call("show", "events", trace_path, "--json", "--kind", "node_*")

    told = [json.loads(line) for line in result.stdout.splitlines()]
    assert [(one["kind"], one["seq"], one["node"]) for one in told] == [
        (type(one).__struct_config__.tag, one.seq, one.node)
        for one in load_trace(trace_path).events()
        if type(one).__struct_config__.tag.startswith("node_")
    ]


@pytest.mark.parametrize(
    ("options", "words"),
    [
        (["--of", "Double:1"], "Double ({node}) started."),
        (["--of", "pass {first}"], "Pass {first} completed."),
        (["--of", "cpu", "--kind", "task_popped"], "left queue"),
        (["--of", "MainThread", "--pass", "last"], "pass {second} began"),
        (["--from", "0ms", "--until", "20s"], "Pass {second} completed."),
    ],
)
def test_a_story_is_of_what_was_asked_for(options, words, call, trace_path) -> None:
    trace = load_trace(trace_path)
    first, second = trace.tasks
    known = {"first": first, "second": second, "node": max(trace.nodes) - 1}

    options = [word.format(**known) for word in options]
    result = call("show", "events", trace_path, *options)

    assert result.exit_code == 0
    assert words.format(**known) in result.stdout


def test_events_beyond_the_limit_are_counted(trace_path, call) -> None:
    num_events = load_trace(trace_path).num_events

    result = call("show", "events", trace_path, "--limit", 3, "--json")

    assert len(result.stdout.splitlines()) == 3
    assert f"first 3 events are shown, {num_events - 3} more are not" in result.stderr


@pytest.mark.parametrize(
    ("options", "words"),
    [
        (["--of", "Dobule"], "Did you mean 'Double'?"),
        (["--kind", "task_poped"], "did you mean 'task_popped'"),
        (["--follow", "--of", "Double"], "names cannot be looked up"),
        (["--follow", "--pass", "1"], "leave out --pass"),
        (["--limit", "-1"], "-1 is not in the range"),
    ],
)
def test_a_mistake_is_one_line(options, words, trace_path, call) -> None:
    result = call("show", "events", trace_path, *options)

    assert (result.exit_code, result.stdout) == (2, "")
    assert words in result.stderr
    assert len(result.stderr.splitlines()) == 1


def test_a_finished_trace_reads_the_same_when_it_is_followed(trace_path, call) -> None:
    told = call("show", "events", trace_path, "--json").stdout

    assert call("show", "events", trace_path, "--json", "--follow").stdout == told


def test_following_ends_with_the_limit_too(trace_path, call) -> None:
    options = ("--follow", "--of", "thread 0", "--limit", 4)

    lines = call("show", "events", trace_path, *options).stdout.splitlines()

    assert len(lines) == 2 + 4


def test_an_incomplete_trace_is_reported_with_and_without_follow(
    trace_path, call
) -> None:
    data = trace_path.read_bytes()
    at = data.index(b"\x89GVT", len(data) // 2)
    trace_path.write_bytes(data[:at] + b"?" + data[at:])

    for options in [(), ("--follow",)]:
        result = call("show", "events", trace_path, *options)
        assert "is incomplete" in result.stderr


@pytest.mark.parametrize("options", [(), ("--json",), ("--follow",)])
def test_control_characters_of_a_program_do_not_reach_the_terminal(
    options, failed_path, call
) -> None:
    result = call("show", "events", failed_path, *options)

    assert result.exit_code == 0
    assert "boom" in result.stdout
    assert "\x1b" not in result.stdout + result.stderr


def test_a_trace_without_events_has_none(record_empty, tmp_path, call) -> None:
    path = record_empty(tmp_path / "empty.gvt")

    result = call("show", "events", path)

    assert result.exit_code == 0
    assert result.stdout.startswith("0 events")
