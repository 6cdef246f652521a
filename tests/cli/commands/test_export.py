import json
import sqlite3
from contextlib import closing

import pytest

from gradviz.cli.commands.export import FORMATS


@pytest.mark.parametrize("name", FORMATS)
def test_the_format_is_that_of_the_suffix_or_of_t(name, trace_path, call, tmp_path):
    suffix = FORMATS[name].suffixes[0]
    by_suffix = call("export", trace_path, "-o", f"x{suffix}")
    by_name = call("export", trace_path, "-t", name, "-o", "y")
    by_default = call("export", trace_path, "-t", name)

    assert {by_suffix.exit_code, by_name.exit_code, by_default.exit_code} == {0}
    assert by_suffix.stderr.startswith(f"gradviz: wrote x{suffix}: ")
    written = {(tmp_path / file).stat().st_size for file in (f"x{suffix}", "y")}
    assert written == {(tmp_path / f"two{suffix}").stat().st_size}


@pytest.mark.parametrize("name", FORMATS)
def test_an_export_can_go_to_stdout(name, trace_path, call, tmp_path):
    call("export", trace_path, "-t", name, "-o", "x")
    done = call("export", trace_path, "-t", name, "-o", "-")

    assert len(done.stdout_bytes) == (tmp_path / "x").stat().st_size
    assert done.stderr == ""


@pytest.mark.parametrize("output", [[], ["-o", "-"], ["-o", "x.gvt"]])
def test_an_unknown_format_is_wrong_usage(output, trace_path, call):
    done = call("export", trace_path, *output)

    assert (done.exit_code, done.stdout) == (2, "")
    assert "jsonl" in done.stderr


def test_only_the_owner_may_read_an_export_as_with_its_trace(
    trace_path, call, tmp_path
):
    call("export", trace_path, "-o", "x.jsonl")

    assert (tmp_path / "x.jsonl").stat().st_mode & 0o777 == 0o600


def test_nothing_is_overwritten_without_force(trace_path, call, tmp_path):
    (tmp_path / "x.csv").write_text("mine")

    assert call("export", trace_path, "-o", "x.csv").exit_code == 1
    assert (tmp_path / "x.csv").read_text() == "mine"
    assert call("export", trace_path, "-o", "x.csv", "-f").exit_code == 0


def test_an_export_can_be_of_one_pass(trace_path, call):
    def tasks(*options):
        done = call("export", trace_path, "-t", "jsonl", "-o", "-", *options)
        events = map(json.loads, done.stdout.splitlines()[1:])
        return {one["task"] for one in events} - {-1}

    assert len(tasks()) == 2
    assert len(tasks("--pass", "last")) == 1
    assert call("export", trace_path, "-t", "csv", "--pass", "99").exit_code == 2


def test_the_table_option_selects_a_table_of_csv_and_is_refused_for_sqlite(
    trace_path, call
):
    done = call("export", trace_path, "-t", "csv", "--table", "threads", "-o", "-")

    assert done.stdout.startswith("thread,name,pid\n")
    wrong = call("export", trace_path, "-t", "sqlite", "--table", "threads")
    assert wrong.exit_code == 2


def test_a_trace_that_is_cut_is_exported_and_says_so(trace_path, call, tmp_path):
    trace_path.write_bytes(trace_path.read_bytes()[:-9])
    done = call("export", trace_path, "-o", "x.sqlite")

    assert done.exit_code == 0
    assert "warning" in done.stderr
    with closing(sqlite3.connect(tmp_path / "x.sqlite")) as database:
        lost = database.execute("SELECT what FROM losses").fetchall()
    assert ("truncated",) in lost


def test_a_trace_without_passes_is_exported_too(record_empty, call, tmp_path):
    path = record_empty(tmp_path / "empty.gvt")

    for name in FORMATS:
        assert call("export", path, "-t", name).exit_code == 0
    assert (tmp_path / "empty.csv").read_text().count("\n") == 1
