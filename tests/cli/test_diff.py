import json

import pytest

from gradviz.trace.reader import load_trace
from tests.analysis.conftest import Story


@pytest.fixture
def tasks(trace_path):
    return load_trace(trace_path).tasks


def test_a_trace_is_the_same_as_itself(trace_path, call) -> None:
    result = call("diff", trace_path, trace_path)

    assert result.exit_code == 0
    assert "The same graph in the same order: 4 nodes in both" in result.stdout


def test_two_passes_of_one_trace_differ_by_a_node(trace_path, call, tasks) -> None:
    result = call("diff", trace_path, "--task", f"{tasks[0]},{tasks[1]}")

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
        (["TRACE", "--task", "all", "TRACE"], "passes 'all', expected one"),
        (["TRACE", "--task", "last"], "means 1"),
        (["TRACE:last", "--task", "1,2"], "say the same twice"),
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


def test_what_a_program_wrote_commands_no_terminal(failed_path, trace_path, call):
    for options in [(), ("--json",)]:
        result = call("diff", failed_path, trace_path, *options)

        assert result.exit_code == 1
        assert "\x1b" not in result.stdout + result.stderr
