import json

import pytest


def test_a_change_is_predicted_beside_the_error_of_the_model(trace_path, call):
    result = call("simulate", trace_path, "--faster", "Double:0=2", "--json")

    document = json.loads(result.stdout)
    assert (document["schema"], document["version"]) == ("gradviz.simulation", 1)
    assert [(one["name"], one["times"]) for one in document["faster"]] == [
        ("Double", 2.0)
    ]
    assert document["unchanged_ns"] == document["measured_ns"]
    assert document["predicted_ns"] < document["unchanged_ns"]


def test_without_json_it_is_a_table_of_measured_unchanged_and_changed(trace_path, call):
    result = call("simulate", trace_path, "--policy", "random:7", "--infinite-streams")

    lines = [" ".join(line.split()) for line in result.stdout.splitlines()]
    assert lines[2].startswith("measured")
    assert lines[3].startswith("the model, nothing changed")
    assert lines[4].startswith("random:7, infinite streams")


@pytest.mark.parametrize(
    "wrong",
    [
        ("--faster", "Double:0"),
        ("--faster", "=2"),
        ("--faster", "Double:0=0"),
        ("--faster", "Double:0=inf"),
        ("--faster", "Double:0=nan"),
        ("--faster", "Halve=2"),
        ("--policy", "lifo"),
        ("--device-threads", "0"),
    ],
)
def test_options_that_make_no_sense_are_refused_in_one_line(wrong, trace_path, call):
    result = call("simulate", trace_path, *wrong)

    assert (result.exit_code, result.stdout) == (2, "")
    assert len(result.stderr.splitlines()) == 1


def test_a_pass_that_failed_is_refused_in_one_line(failed_path, call):
    result = call("simulate", failed_path)

    assert (result.exit_code, result.stdout) == (1, "")
    assert "is failed" in result.stderr
