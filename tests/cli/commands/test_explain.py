import json
import re

import pytest

from gradviz.trace.probe import Model, ModelParameter
from tests.analysis.conftest import Story
from tests.analysis.sent_messages import crossing


def test_a_node_is_explained_in_sentences(trace_path, call) -> None:
    result = call("explain", trace_path, "Double:0")

    assert result.exit_code == 0
    head, *sentences = result.stdout.splitlines()
    assert re.match(r"#\d+ Double, node ", head)
    assert any("It ran on thread" in sentence for sentence in sentences)


def test_it_is_one_json_object_for_each_pass(trace_path, call) -> None:
    result = call("explain", trace_path, "Double:0", "--json", "--pass", "all")

    documents = [json.loads(line) for line in result.stdout.splitlines()]
    assert [one["schema"] for one in documents] == ["gradviz.explanation"] * 2
    assert documents[0]["task"] != documents[1]["task"]


def test_the_newest_trace_is_meant_where_none_is_named(
    trace_path, call, monkeypatch
) -> None:
    monkeypatch.chdir(trace_path.parent)

    assert call("explain", "Double:0").exit_code == 0


def test_a_node_that_failed_and_one_that_never_ran_say_why(failed_path, call) -> None:
    order = json.loads(call("show", "order", failed_path, "--json").stdout)
    failed = next(row for row in order["order"] if row["status"] == "failed")

    told = call("explain", failed_path, failed["node"])

    assert "It failed on thread" in " ".join(told.stdout.split())


def test_words_that_name_no_single_node_are_refused_in_one_line(
    trace_path, call
) -> None:
    for words in (["Doublet"], ["Double"], ["99999"], ["a", "b"]):
        result = call("explain", trace_path, *words)

        assert (result.exit_code, result.stdout) == (2, "")
        assert len(result.stderr.splitlines()) == 1


def test_a_node_of_several_workers_passes_is_told_once(tmp_path, call) -> None:
    story = Story()
    crossing(story, lambda report: report())
    path = tmp_path / "workers.gvt"
    path.write_bytes(story.contents())

    result = call("explain", path, "2", "--pass", "1,2")

    assert result.stdout.startswith("#1 SendRpcBackward, node 2 of pass 1")
    assert result.stdout.count("Its gradient came from worker 0") == 1


@pytest.mark.parametrize("requires_grad", [False, True])
def test_a_parameter_that_no_pass_reached_is_explained(
    tmp_path, call, requires_grad
) -> None:
    story = Story()
    story.begin(0, [root := story.node(1)], at=0)
    story.ran(0, root, at=10, until=20)
    names = ("Net.unused.weight",)
    weight = ModelParameter(names, (2, 3), "float32", "cpu", requires_grad)
    story.recorder.model_defined(Model("Net", (weight,), 1))
    path = tmp_path / "some.gvt"
    path.write_bytes(story.contents())

    result = call("explain", path, "unused.weight")
    document = json.loads(call("explain", path, names[0], "--json").stdout)

    assert result.exit_code == 0
    head, *sentences = result.stdout.splitlines()
    assert head == "Parameter Net.unused.weight, (2, 3), float32, on cpu"
    assert "No pass reached it" in sentences[0]
    assert ("was frozen" in sentences[1]) is not requires_grad
    assert document["definition"]["requires_grad"] is requires_grad


def test_a_trace_without_a_node_is_wrong_usage(trace_path, call) -> None:
    result = call("explain", trace_path)

    assert (result.exit_code, result.stdout) == (2, "")
    assert "is a trace: name a node of it too" in result.stderr
