import json
import subprocess
import sys

import pytest

import gradviz as gv
from gradviz.capture.session import record
from gradviz.render.words.text import duration

VIEWS = [
    *("critical", "memory", "order", "queues", "summary", "timeline", "utilization"),
]

ORDER_KEYS = {
    "index",
    "node",
    "name",
    "sequence_nr",
    "topological_nr",
    "device",
    "thread",
    "worker",
    "start_ns",
    "end_ns",
    "waited_ns",
    "status",
    "error",
    "module",
    "location",
    "shapes",
    "parameters",
    "thread_time_ns",
    "processor_wait_ns",
}


def test_the_order_is_one_json_object(trace_path, call) -> None:
    result = call("show", "order", trace_path, "--json")

    document = json.loads(result.stdout)
    expected = {"schema", "version", "task", "order", "begin_ns", "is_complete"}
    assert set(document) == expected
    assert (document["schema"], document["version"]) == ("gradviz.order", 1)
    assert all(set(row) == ORDER_KEYS for row in document["order"])
    assert [row["index"] for row in document["order"]] == [0, 1, 2, 3]
    assert [row["name"] for row in document["order"]] == ["Double"] * 3 + ["Stop"]


def test_all_passes_are_one_json_object_a_line(trace_path, call) -> None:
    result = call("show", "order", trace_path, "--json", "--pass", "all")

    documents = [json.loads(line) for line in result.stdout.splitlines()]
    assert [len(document["order"]) for document in documents] == [3, 4]


def test_one_pass_is_picked_by_its_number(trace_path, call) -> None:
    everything = call("show", "order", trace_path, "--json", "--pass", "all")
    first = json.loads(everything.stdout.splitlines()[0])["task"]

    result = call("show", "order", trace_path, "--json", "--pass", first)

    assert len(json.loads(result.stdout)["order"]) == 3


@pytest.mark.parametrize("view", VIEWS)
@pytest.mark.parametrize("task", ["77777777", "first"])
def test_an_unknown_pass_is_one_line(view, task, trace_path, call) -> None:
    result = call("show", view, trace_path, "--pass", task)

    assert (result.exit_code, result.stdout) == (2, "")
    assert len(result.stderr.splitlines()) == 1
    assert task in result.stderr


@pytest.mark.parametrize(
    ("view", "word"),
    [
        ("critical", "Double"),
        ("order", "Double"),
        ("memory", "all of it"),
        ("queues", "1 ready queue"),
        ("timeline", "Double"),
        ("utilization", "MainThread"),
        ("summary", "Double"),
    ],
)
def test_a_view_prints_plain_text_when_piped(view, word, trace_path, call) -> None:
    result = call("show", view, trace_path)

    assert result.exit_code == 0
    assert word in result.stdout
    assert "\x1b" not in result.stdout


@pytest.mark.parametrize("view", sorted({*VIEWS} - {"order"}))
def test_a_view_is_one_json_object(view, trace_path, call) -> None:
    document = json.loads(call("show", view, trace_path, "--json").stdout)

    assert (document["schema"], document["version"]) == (f"gradviz.{view}", 1)


@pytest.mark.parametrize("view", VIEWS)
def test_control_characters_of_a_program_do_not_reach_the_terminal(
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


def test_a_failed_node_is_one_thing_in_every_view(failed_path, call) -> None:
    order = json.loads(call("show", "order", failed_path, "--json").stdout)["order"]
    timeline = json.loads(call("show", "timeline", failed_path, "--json").stdout)
    summary = json.loads(call("show", "summary", failed_path, "--json").stdout)

    row = order[1]
    (lane,) = timeline["lanes"]
    span = next(one for one in lane["spans"] if one["node"] == row["node"])
    (node,) = summary["failed"]
    name = next(one for one in summary["names"] if one["name"] == "Explode")
    took = row["end_ns"] - row["start_ns"]
    assert took > 0
    assert span["end_ns"] - span["start_ns"] == node["duration_ns"] == took
    assert name["total_ns"] == took
    assert {row["status"], span["status"], node["status"]} == {"failed"}
    assert row["error"] == span["error"] == node["error"]
    assert "boom" in row["error"]


def test_the_duration_of_a_pass_is_one_number_in_every_view(trace_path, call) -> None:
    timeline = json.loads(call("show", "timeline", trace_path, "--json").stdout)
    summary = json.loads(call("show", "summary", trace_path, "--json").stdout)
    picture = call("render", "graph", trace_path, "-o", "-").stdout

    last = timeline["passes"][-1]
    duration_ns = summary["passes"][-1]["duration_ns"]
    assert last["end_ns"] - last["begin_ns"] == duration_ns
    assert timeline["duration_ns"] == duration_ns
    assert f"· {duration(duration_ns)} ·" in picture


@pytest.mark.parametrize("options", [(), ("--json",)])
def test_nodes_beyond_the_rows_of_an_order_are_counted(
    options, trace_path, call, monkeypatch
) -> None:
    for module in (
        "gradviz.analysis.nodes.execution_order",
        "gradviz.cli.show.show_order",
    ):
        monkeypatch.setattr(f"{module}.MAX_ROWS", 5)

    result = call("show", "order", trace_path, "--pass", "all", *options)

    assert result.exit_code == 0
    assert result.stdout.count("Stop") == 1
    assert "the first 5 nodes are shown, 2 more are left out" in result.stderr


def test_the_contents_of_the_queues_at_a_moment(trace_path, call) -> None:
    every = json.loads(call("show", "queues", trace_path, "--json").stdout)
    (moment, length), *_ = every["queues"][0]["lengths"]

    told = call("show", "queues", trace_path, "--at", f"{moment}ns", "--json")

    contents = json.loads(told.stdout)
    assert contents["schema"] == "gradviz.queue_contents"
    assert sum(map(len, contents["queues"].values())) == length == 1
    assert (
        "1 task queued after"
        in call("show", "queues", trace_path, "--at", f"{moment / 1000}us").stdout
    )


@pytest.mark.parametrize(
    ("moment", "words"),
    [
        ("5 parsecs", "is not a time such as 1.5ms"),
        ("9s", "there is nothing 9,000,000,000 ns after the start"),
    ],
)
def test_a_moment_that_there_is_not_is_one_line(
    moment, words, trace_path, call
) -> None:
    result = call("show", "queues", trace_path, "--at", moment)

    assert (result.exit_code, result.stdout) == (2, "")
    assert words in result.stderr
    assert len(result.stderr.splitlines()) == 1


def test_show_memory_reports_the_bytes_held_at_a_moment(trace_path, call) -> None:
    every = json.loads(call("show", "memory", trace_path, "--json").stdout)
    (moment, total) = every["curves"]["total"][1]

    told = call("show", "memory", trace_path, "--at", f"{moment}ns", "--json")

    document = json.loads(told.stdout)
    assert document["schema"] == "gradviz.memory_moment"
    assert document["use"]["total"] == total
    result = call("show", "memory", trace_path, "--at", f"{moment}ns")
    assert result.stdout.startswith(f"{total} B held after")
    assert call("show", "memory", trace_path, "--at", "1000s").exit_code == 2


def test_an_order_shows_some_rows_in_another_order(trace_path, call) -> None:
    result = call(
        *("show", "order", trace_path, "--json", "--filter", "name=Double"),
        *("--filter", "status=completed", "--sort", "took", "--limit", 2),
    )

    document = json.loads(result.stdout)
    took = [row["end_ns"] - row["start_ns"] for row in document["order"]]
    assert took == sorted(took, reverse=True)
    assert {row["name"] for row in document["order"]} == {"Double"}
    assert (len(took), document["omitted"], result.stderr) == (2, 1, "")


@pytest.mark.parametrize(
    ("options", "words"),
    [
        (
            ("--filter", "color=red"),
            "with one of the keys name, module, parameter, line",
        ),
        (("--filter", "name"), "'name' is not KEY=TEXT"),
        (("--sort", "color"), "'start', 'took', 'running', 'lost', 'queued'"),
        (("--limit", "0"), "0 is not in the range x>=1"),
    ],
)
def test_an_unknown_key_is_one_line_that_names_those_there_are(
    options, words, trace_path, call
) -> None:
    result = call("show", "order", trace_path, *options)

    assert (result.exit_code, result.stdout) == (2, "")
    assert words in result.stderr
    assert len(result.stderr.splitlines()) == 1


def test_a_summary_by_something_is_groups(trace_path, call) -> None:
    result = call("show", "summary", trace_path, "--by", "name", "--json")

    document = json.loads(result.stdout)
    assert document["schema"] == "gradviz.groups"
    assert {one["label"]: one["runs"] for one in document["groups"]} == {
        "Double": 5,
        "Stop": 2,
    }
    told = call("show", "summary", trace_path, "--by", "name", "--limit", 1).stdout
    assert "7 runs" in told
    assert "(1 of 2 groups)" in told


def test_the_former_name_of_a_key_still_sorts(trace_path, call) -> None:
    def sorted_by(key):
        options = ("--by", "name", "--sort", key, "--json")
        return json.loads(call("show", "summary", trace_path, *options).stdout)

    assert sorted_by("nodes") == sorted_by("runs")
    assert sorted_by("runs")["sort"] == "runs"


@pytest.mark.parametrize(
    ("former", "present"),
    [
        (("--sort", "duration"), ("--sort", "took")),
        (("--sort", "wait"), ("--sort", "queued")),
        (("--sort", "source"), ("--sort", "line")),
        (("--filter", "source=*test*"), ("--filter", "line=*test*")),
    ],
)
def test_former_names_of_the_columns_of_an_order_still_work(
    former, present, trace_path, call
) -> None:
    def printed(options):
        result = call("show", "order", trace_path, *options)
        assert result.exit_code == 0, result.stderr
        return result.stdout

    assert printed(former) == printed(present)


def test_groups_by_the_former_name_of_a_column_are_those_by_the_column(
    trace_path, call
) -> None:
    def printed(by):
        return call("show", "summary", trace_path, "--by", by).stdout

    assert printed("source") == printed("line")
    assert printed("line").startswith("By line: ")


@pytest.mark.parametrize("column", ["took", "queued", "lost", "running", "line"])
def test_an_order_is_sorted_by_the_columns_that_it_shows(
    column, trace_path, call
) -> None:
    result = call("show", "order", trace_path, "--sort", column)

    assert result.exit_code == 0
    assert f"sorted by {column}" in result.stdout.splitlines()[0]


def test_options_of_groups_need_to_know_by_what(trace_path, call) -> None:
    result = call("show", "summary", trace_path, "--sort", "mean")

    assert (result.exit_code, result.stdout) == (2, "")
    assert "add --by" in result.stderr


@pytest.mark.parametrize("options", [{"events": "!tensor_saved"}, {"only": "Sin*"}])
def test_memory_of_less_that_was_recorded_on_purpose_is_refused(
    options, tmp_path, call
) -> None:
    with record(tmp_path / "x.gvt", **options):
        gv.ones(3, requires_grad=True).sin().sum().backward()

    result = call("show", "memory")

    assert (result.exit_code, result.stdout) == (1, "")
    assert "record it again" in result.stderr


def test_a_step_is_a_timeline(trace_path, call) -> None:
    timeline = json.loads(
        call("show", "timeline", trace_path, "--step", 1, "--json").stdout
    )
    told = call("show", "timeline", trace_path, "--step", "1").stdout

    assert timeline["step"] == 1
    assert len(timeline["passes"]) == 1
    assert told.startswith("Step 1: ")
    assert "█ backward" in told


@pytest.mark.parametrize(
    ("options", "words"),
    [
        (("--step", "9"), "no step '9'; there are 2, from 0 to 1"),
        (("--step", "0", "--pass", "all"), "exclude each other"),
    ],
)
def test_a_step_that_there_is_not_is_one_line(options, words, trace_path, call) -> None:
    result = call("show", "timeline", trace_path, *options)

    assert (result.exit_code, result.stdout) == (2, "")
    assert words in result.stderr
    assert len(result.stderr.splitlines()) == 1


def test_a_view_that_was_renamed_answers_to_its_former_name(call, trace_path):
    assert call("show", "utilisation", trace_path).output == (
        call("show", "utilization", trace_path).output
    )


def test_the_former_name_of_the_option_of_passes_works(call, trace_path):
    assert call("show", "order", trace_path, "--task", "0").output == (
        call("show", "order", trace_path, "--pass", "0").output
    )
