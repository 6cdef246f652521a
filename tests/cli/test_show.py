import json
import subprocess
import sys

import pytest

ORDER_KEYS = {
    "index",
    "node",
    "name",
    "sequence_nr",
    "topological_nr",
    "device",
    "thread",
    "start_ns",
    "end_ns",
    "waited_ns",
}


def test_the_order_is_one_json_object(trace_path, call) -> None:
    result = call("show", "order", trace_path, "--json")

    document = json.loads(result.stdout)
    assert set(document) == {"schema", "version", "task", "order"}
    assert (document["schema"], document["version"]) == ("gradviz.order", 1)
    assert all(set(row) == ORDER_KEYS for row in document["order"])
    assert [row["index"] for row in document["order"]] == [0, 1, 2, 3]
    assert [row["name"] for row in document["order"]] == ["Double"] * 3 + ["Stop"]


def test_all_passes_are_one_json_object_a_line(trace_path, call) -> None:
    result = call("show", "order", trace_path, "--json", "--task", "all")

    documents = [json.loads(line) for line in result.stdout.splitlines()]
    assert [len(document["order"]) for document in documents] == [3, 4]


def test_one_pass_is_picked_by_its_number(trace_path, call) -> None:
    everything = call("show", "order", trace_path, "--json", "--task", "all")
    first = json.loads(everything.stdout.splitlines()[0])["task"]

    result = call("show", "order", trace_path, "--json", "--task", first)

    assert len(json.loads(result.stdout)["order"]) == 3


@pytest.mark.parametrize("view", ["order", "timeline", "summary"])
@pytest.mark.parametrize("task", ["77777777", "first"])
def test_an_unknown_pass_is_one_line(view, task, trace_path, call) -> None:
    result = call("show", view, trace_path, "--task", task)

    assert (result.exit_code, result.stdout) == (1, "")
    assert len(result.stderr.splitlines()) == 1
    assert task in result.stderr


@pytest.mark.parametrize("view", ["order", "timeline", "summary"])
def test_a_view_prints_plain_text_when_piped(view, trace_path, call) -> None:
    result = call("show", view, trace_path)

    assert result.exit_code == 0
    assert "Double" in result.stdout
    assert "\x1b" not in result.stdout


@pytest.mark.parametrize("view", ["timeline", "summary"])
def test_a_view_is_one_json_object(view, trace_path, call) -> None:
    document = json.loads(call("show", view, trace_path, "--json").stdout)

    assert (document["schema"], document["version"]) == (f"gradviz.{view}", 1)


@pytest.mark.parametrize("view", ["order", "timeline", "summary"])
def test_what_a_program_wrote_cannot_command_the_terminal(
    view, failed_path, call
) -> None:
    for options in [(), ("--json",)]:
        result = call("show", view, failed_path, *options)

        assert result.exit_code == 0
        assert "\x1b" not in result.stdout + result.stderr


def test_the_environment_sets_an_option_of_a_view(
    trace_path, call, monkeypatch
) -> None:
    monkeypatch.setenv("GRADVIZ_SHOW_ORDER_TASK", "all")

    result = call("show", "order", trace_path, "--json")

    assert len(result.stdout.splitlines()) == 2


@pytest.mark.parametrize("options", [(), ("--json",)])
def test_a_reader_that_leaves_hears_no_complaint(options, trace_path) -> None:
    show = ["-m", "gradviz", "show", "order", str(trace_path), *options]
    command = [sys.executable, *show]
    with subprocess.Popen(
        command, stdout=subprocess.PIPE, stderr=subprocess.PIPE
    ) as process:
        assert process.stdout is not None
        assert process.stderr is not None
        process.stdout.close()  # before anything can have been written
        complaint = process.stderr.read()

    assert (process.returncode, complaint) == (1, b"")
