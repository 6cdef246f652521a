"""Every reading command over files that want to do harm: little memory, little time."""

import json
import os
import subprocess
import sys
from collections.abc import Iterable
from pathlib import Path

import pytest

from tests.cli import bad_files
from tests.cli.under_limits import commands_for

#: What each of them takes is mostly what it takes to start.
QUICK = (
    bad_files.extreme_numbers,
    bad_files.long_name,
)

#: A part takes a minute or two, and has files enough to run all commands.
NUM_PARTS = 5


def outcomes(paths: Iterable[Path]) -> list[dict[str, object]]:
    done = subprocess.run(
        [sys.executable, "-m", "tests.cli.under_limits", *map(str, paths)],
        capture_output=True,
        text=True,
        # Each thread of OpenBLAS takes its share of addresses at once.
        env={**os.environ, "OPENBLAS_NUM_THREADS": "1"},
        check=True,
    )
    return [json.loads(line) for line in done.stdout.splitlines()]


def is_wrong(outcome: dict[str, object]) -> bool:
    """Return whether it was killed, failed in an unforeseen way, or said too much."""
    return (
        outcome["exit_code"] not in {0, 1, 2, 3}
        or "internal error" in str(outcome["stderr"])
        or len(str(outcome["stderr"]).splitlines()) > 4
        or not (is_whole(outcome) or str(outcome["stderr"]).startswith("gradviz: "))
    )


def is_whole(outcome: dict[str, object]) -> bool:
    """Return whether a file needs no message: its header is long, and no more."""
    return outcome["file"] == "header_of_arguments" and not outcome["stderr"]


@pytest.mark.parametrize(
    "builders",
    [
        pytest.param(QUICK, id="quick"),
        *(
            pytest.param(
                bad_files.BUILDERS[part::NUM_PARTS],
                marks=pytest.mark.stress,
                id=f"all, part {part}",
            )
            for part in range(NUM_PARTS)
        ),
    ],
)
def test_no_file_takes_more_than_its_share(tmp_path, builders):
    paths = []
    for build in builders:
        paths.append(tmp_path / build.__name__)
        paths[-1].write_bytes(build())

    found = outcomes(paths)
    assert len(found) == sum(map(len, map(commands_for, range(len(paths)))))
    assert [one for one in found if is_wrong(one)] == []


@pytest.mark.stress
def test_no_damage_takes_more_than_its_share(tmp_path, trace_path):
    paths = []
    for number, data in enumerate(bad_files.damaged(trace_path.read_bytes(), 10)):
        paths.append(tmp_path / str(number))
        paths[-1].write_bytes(data)

    assert [one for one in outcomes(paths) if is_wrong(one)] == []


def test_a_check_of_what_wants_to_do_harm_says_what_is_wrong(
    call, tmp_path, monkeypatch
):
    path = tmp_path / "x.gvt"
    path.write_bytes(bad_files.rows_for_nothing())
    monkeypatch.setattr("gradviz.trace.checking.lifecycle.MAX_SEEN", 2_000)

    done = call("check", path)
    lines = done.stdout.splitlines()
    assert done.exit_code == 1
    assert lines[0].endswith(" events out of place:")
    assert len(lines) < 120
    assert "998,000 events were not checked: that would take too long" in lines


def test_a_graph_that_is_too_large_is_cut_and_that_is_said(call, tmp_path):
    path = tmp_path / "x.gvt"
    path.write_bytes(bad_files.fan_out_of(50_000))

    done = call("render", "graph", "--engine", "own", "-o", "x.svg", path)
    assert done.exit_code == 0
    assert "one picture: 30,001 nodes and 30,001 edges are left out" in done.stderr
    assert (tmp_path / "x.svg").stat().st_size < 10_000_000
