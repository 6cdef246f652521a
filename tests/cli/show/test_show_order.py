import json

import pytest


def test_the_predicted_order_is_one_json_object_a_pass(trace_path, call) -> None:
    result = call("show", "order", trace_path, "--predicted", "--json", "--pass", "all")

    documents = [json.loads(line) for line in result.stdout.splitlines()]
    assert [one["schema"] for one in documents] == ["gradviz.predicted_order"] * 2
    assert [[row["ran"] for row in one["rows"]] for one in documents] == [
        [0, 1, 2],
        [0, 1, 2, 3],
    ]
    assert all(one["divergences"] == [] for one in documents)


def test_the_limit_is_one_of_rows_not_of_what_is_compared(trace_path, call) -> None:
    result = call("show", "order", trace_path, "--predicted", "--limit", 1)

    assert "1 node of 4 in the predicted order" in result.stdout
    assert "It ran as predicted, in 1 queue." in result.stdout


@pytest.mark.parametrize("options", [["--sort", "queued"], ["--filter", "name=Double"]])
def test_a_predicted_order_is_not_sorted_otherwise(options, trace_path, call) -> None:
    result = call("show", "order", trace_path, "--predicted", *options)

    assert (result.exit_code, result.stdout) == (2, "")
    assert "leave out --filter and --sort" in result.stderr


def test_passes_that_are_too_large_are_counted(trace_path, call, monkeypatch) -> None:
    monkeypatch.setattr("gradviz.analysis.nodes.predicted_order.MAX_PREDICTED", 3)

    result = call("show", "order", trace_path, "--predicted", "--pass", "all")

    assert "It ran as predicted" in result.stdout
    assert "1 pass beyond that left out" in result.stderr


def test_a_failed_pass_says_what_it_failed_with(failed_path, call) -> None:
    result = call("show", "order", failed_path, "--predicted")

    assert result.exit_code == 0
    assert "\x1b" not in result.stdout
