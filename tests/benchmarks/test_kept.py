"""Comparing what benchmarks measure with what was kept."""

import pytest

from benchmarks.kept import Row, changes, keep, load

DATE = "2026-11-23"


def row(ratio, low=None, high=None, *, case="a chain", build="compiled"):
    return Row(
        case, "gradviz", "PyTorch", build, ratio, low or ratio, high or ratio, DATE
    )


@pytest.fixture
def path(tmp_path):
    return tmp_path / "results.json"


def test_kept_rows_are_loaded_the_next_time(path):
    keep([row(1.0), row(2.0, 1.9, 2.2, case="a fan")], path)

    assert load(path) == [row(1.0), row(2.0, 1.9, 2.2, case="a fan")]


def test_nothing_is_kept_where_there_is_no_file(path):
    assert load(path) == []


def test_a_row_takes_the_place_of_that_of_its_case_and_build_only(path):
    keep([row(1.0), row(1.5, build="not compiled"), row(3.0, case="a fan")], path)
    keep([row(0.5)], path)

    assert [one.ratio for one in load(path)] == [0.5, 1.5, 3.0]


def test_a_ratio_beyond_the_noise_is_told():
    kept = [row(1.0, 0.95, 1.1)]

    assert changes(kept, [row(1.3, 1.25, 1.4)]) == [
        "worse: a chain (gradviz / PyTorch): 1.00 on 2026-11-23, now 1.30"
    ]
    assert changes(kept, [row(0.7, 0.65, 0.75)]) == [
        "better: a chain (gradviz / PyTorch): 1.00 on 2026-11-23, now 0.70"
    ]


@pytest.mark.parametrize(
    "now",
    [
        row(1.04, 1.3, 1.4),  # the best round was as good
        row(1.2, 1.1, 1.4),  # many rounds were
        row(0.97, 0.6, 0.7),
        row(0.8, 0.75, 0.95),
    ],
)
def test_a_change_within_the_spread_of_the_rounds_is_noise(now):
    assert changes([row(1.0, 0.95, 1.1)], [now]) == []


def test_builds_are_not_compared_with_each_other():
    assert changes([row(1.0, build="not compiled")], [row(2.0)]) == []


def test_a_run_without_pytorch_is_compared_with_no_run_with_it():
    alone = row(1.0)._replace(against="gradviz")

    assert changes([row(0.5)], [alone]) == []


def test_the_case_that_got_worse_is_listed_first():
    kept = [row(1.0), row(1.0, case="a fan")]

    lines = changes(kept, [row(0.5), row(2.0, case="a fan")])

    assert [line.partition(":")[0] for line in lines] == ["worse", "better"]
