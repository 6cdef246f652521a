import json

import pytest

from gradviz.capture.session import record
from gradviz.engine import Engine
from gradviz.trace.reading.reader import load_trace
from tests.analysis.conftest import Story
from tests.cli.conftest import backward


@pytest.fixture
def tasks(trace_path):
    return load_trace(trace_path).tasks


def test_a_trace_is_the_same_as_itself(trace_path, call) -> None:
    result = call("diff", trace_path, trace_path)

    assert result.exit_code == 0
    assert "The same graph in the same order: 4 nodes in both" in result.stdout


def test_two_passes_of_one_trace_differ_by_a_node(trace_path, call, tasks) -> None:
    result = call("diff", trace_path, "--pass", f"{tasks[0]},{tasks[1]}")

    assert result.exit_code == 1
    assert "3 nodes in both, 1 only in B" in result.stdout


def test_a_task_may_follow_the_file(trace_path, call, tasks) -> None:
    result = call("diff", f"{trace_path}:{tasks[0]}", f"{trace_path}:last", "--json")

    document = json.loads(result.stdout)
    assert result.exit_code == 1
    assert (document["schema"], document["version"]) == ("gradviz.comparison", 1)
    assert document["is_same"] is False
    assert [one["name"] for one in document["appeared"]] == ["Double"]
    assert (document["before"]["task"], document["after"]["task"]) == tasks


def test_a_file_may_be_called_as_if_a_task_followed(trace_path, call) -> None:
    named = trace_path.rename(trace_path.with_name("odd:7"))

    assert call("diff", named, named).exit_code == 0


def written(path, took_ns):
    """A trace of four passes of a node that takes so long."""
    story = Story()
    for task in range(4):
        node, at = story.node(task), 10_000 * task
        story.begin(task, [node], at=at)
        story.ran(task, node, at=at + 10, until=at + 10 + took_ns)
        story.end(task, at=at + 20 + took_ns)
    path.write_bytes(story.contents())
    return path


def test_a_duration_counts_if_asked_for(tmp_path, call) -> None:
    quick, slow = (
        written(tmp_path / f"{took_ns}.gvt", took_ns) for took_ns in (1_000, 5_000)
    )

    assert call("diff", quick, slow).exit_code == 0
    assert call("diff", "--durations", quick, slow).exit_code == 1
    assert call("diff", "--durations", quick, quick).exit_code == 0


@pytest.mark.parametrize(
    ("options", "words"),
    [
        ([], "got 0"),
        (["TRACE"], "expected two traces, or one and two passes"),
        (["TRACE", "TRACE", "TRACE"], "got 3"),
        (["TRACE", "--pass", "all", "TRACE"], "passes 'all', expected one"),
        (["TRACE", "--pass", "last"], "means 1"),
        (["TRACE:last", "--pass", "1,2"], "exclude each other"),
        (["TRACE", "nowhere.gvt"], "there is no trace 'nowhere.gvt'"),
        (["TRACE:99999999", "TRACE"], "no backward pass '99999999'"),
        (["TRACE", "poem.txt"], "is not a gradviz trace"),
    ],
)
def test_trouble_is_one_line_and_exits_with_two(
    options, words, trace_path, tmp_path, call
) -> None:
    (tmp_path / "poem.txt").write_text("Two roads diverged")
    words_given = [word.replace("TRACE", str(trace_path)) for word in options]

    result = call("diff", *words_given)

    assert (result.exit_code, result.stdout) == (2, "")
    assert words in result.stderr
    assert len(result.stderr.splitlines()) == 1


def test_a_trace_without_passes_is_trouble(record_empty, trace_path, tmp_path, call):
    empty = record_empty(tmp_path / "empty.gvt")

    assert call("diff", trace_path, empty).exit_code == 2


def test_a_cut_trace_is_compared_as_far_as_it_goes(trace_path, call) -> None:
    data = trace_path.read_bytes()
    cut = trace_path.with_name("cut.gvt")
    cut.write_bytes(data[: data.rindex(b"\x89GVT")])

    result = call("diff", trace_path, cut)

    assert result.exit_code == 0
    assert "cut.gvt is incomplete" in result.stderr


def test_control_characters_of_a_program_do_not_reach_the_terminal(
    failed_path, trace_path, call
):
    for options in [(), ("--json",)]:
        result = call("diff", failed_path, trace_path, *options)

        assert result.exit_code == 1
        assert "\x1b" not in result.stdout + result.stderr


def test_a_gate_prints_a_line_for_each_condition_and_fails_on_these_alone(
    tmp_path, call
) -> None:
    quick, slow = (
        written(tmp_path / f"{took_ns}.gvt", took_ns) for took_ns in (1_000, 5_000)
    )

    passed = call("diff", "--fail-on", "order,nodes,time:900%", quick, slow)
    failed = call("diff", "--fail-on", "order,time:20%", quick, slow)

    assert (passed.exit_code, failed.exit_code) == (0, 1)
    line = next(x for x in failed.stdout.splitlines() if x.startswith("failed "))
    assert "time:20%: the pass took 5.02 µs, before 1.02 µs (+392.2%)" in line
    assert "Look at: gradviz show critical --pass 3 " in line


def test_a_gate_over_nodes_that_only_one_pass_has(trace_path, call, tasks) -> None:
    one, other = (f"{trace_path}:{task}" for task in tasks)

    result = call("diff", "--fail-on", "nodes", one, other)
    looser = call("diff", "--fail-on", "shapes", one, other)

    assert (result.exit_code, looser.exit_code) == (1, 0)
    assert "1 node appeared or vanished: Double #" in result.stdout


def test_verdicts_are_in_the_document(tmp_path, call) -> None:
    quick, slow = (
        written(tmp_path / f"{took_ns}.gvt", took_ns) for took_ns in (1_000, 5_000)
    )

    result = call("diff", "--json", "--fail-on", "time:20%,saved", quick, slow)

    document = json.loads(result.stdout)
    assert result.exit_code == 1
    assert document["is_passed"] is False
    states = {one["name"]: one["state"] for one in document["verdicts"]}
    assert states["time"] == "failed"
    assert all(one["text"] for one in document["verdicts"])
    assert "verdicts" not in json.loads(call("diff", "--json", quick, slow).stdout)


def test_an_unknown_difference_passes_no_gate(tmp_path, call) -> None:
    for name, events in (("all.gvt", ()), ("few.gvt", "!hook_called")):
        with record(tmp_path / name, events=events):
            backward(Engine())

    result = call("diff", "--fail-on", "hooks,nodes", "all.gvt", "few.gvt")

    assert result.exit_code == 2
    assert "unknown    hooks: cannot be told" in result.stdout


@pytest.mark.parametrize(
    ("options", "words"),
    [
        (["--fail-on", "speed"], "no condition 'speed', expected some of order, nodes"),
        (["--fail-on", "order:5%"], "order takes no limit"),
        (["--fail-on", "time:soon"], "expected a limit in percent"),
        (["--fail-on", "order", "--durations"], "a condition for --durations: time"),
    ],
)
def test_a_bad_condition_is_one_line(options, words, trace_path, call) -> None:
    result = call("diff", *options, trace_path, trace_path)

    assert (result.exit_code, result.stdout) == (2, "")
    assert words in result.stderr
    assert len(result.stderr.splitlines()) == 1
