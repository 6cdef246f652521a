"""Streams that do not take all characters get plain ones, and columns stay columns."""

import io
import sys

import pytest
from click.testing import CliRunner

import gradviz as gv
from gradviz.cli.console.notes import plain
from gradviz.cli.main import gradviz
from tests.cli.under_limits import COMMANDS

VIEWS = [one for one in COMMANDS if one[0] != "render"]


@pytest.fixture(scope="module")
def path(tmp_path_factory):
    """A trace with bars, curves and arrows, and names that are not ASCII."""
    path = tmp_path_factory.mktemp("traces") / "tränen_数.gvt"
    model = gv.nn.Sequential(gv.nn.Linear(3, 4), gv.nn.Tanh(), gv.nn.Linear(4, 1))
    with gv.record(path):
        gv.nn.name_root(model, "modèle数")
        for _ in range(3):
            there = model(gv.ones(2, 3)).to("sim:0")
            (there * there).to("cpu").sum().backward()
    return path


def told(command, path, charset, **variables):
    words = command if "TRACE" in command else (*command, "TRACE")
    words = [str(path) if word == "TRACE" else word for word in words]
    runner = CliRunner(charset=charset, env={"COLUMNS": "80", **variables})
    done = runner.invoke(gradviz, words)
    assert done.exit_code in (0, 1), done.stderr
    assert "internal error" not in done.stderr
    return done.stdout_bytes + done.stderr_bytes


@pytest.mark.parametrize("command", VIEWS, ids=" ".join)
def test_every_view_is_ascii_where_that_is_all_the_stream_takes(command, path):
    assert told(command, path, "ascii").isascii()


@pytest.mark.parametrize("charset", ["latin-1", "cp437"])
def test_characters_that_a_stream_can_encode_stay(charset, path):
    assert "µs" in told(("show", "summary"), path, charset).decode(charset)


def test_a_view_is_ascii_in_the_locale_c(path):
    assert told(("show", "summary"), path, "utf-8", LC_ALL="C").isascii()


@pytest.mark.parametrize(
    "variables",
    [{}, {"LC_ALL": "C.UTF-8", "LANG": "C"}, {"LC_ALL": "C", "PYTHONUTF8": "1"}],
)
def test_other_streams_get_all_characters(variables, path, monkeypatch):
    for name in ("LC_ALL", "LC_CTYPE", "LANG", "PYTHONUTF8", "PYTHONIOENCODING"):
        monkeypatch.delenv(name, raising=False)

    assert "█" in told(("show", "summary"), path, "utf-8", **variables).decode()


def test_a_table_is_as_wide_as_it_would_be(path):
    full = told(("show", "summary"), path, "utf-8", LC_ALL="C.UTF-8").decode()
    poor = told(("show", "summary"), path, "ascii").decode()

    assert "#" in poor
    assert [len(line) for line in poor.splitlines() if "Backward0" in line] == [
        len(line) for line in full.splitlines() if "Backward0" in line
    ]


def test_a_stream_is_as_it_was_afterwards(path, monkeypatch):
    stream = io.TextIOWrapper(io.BytesIO(), encoding="ascii", errors="namereplace")
    monkeypatch.setattr(sys, "stdout", stream)

    with pytest.raises(SystemExit):
        gradviz.main(["show", "summary", str(path)])

    assert (stream.encoding, stream.errors) == ("ascii", "namereplace")


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("12 µs → é", "12 us > e"),
        ("█▏ ▁▇", "#. _%"),
        ("数 \ud800", "?? ?"),
        ("3 ± 1", "3 +- 1"),
    ],
)
def test_characters_are_replaced_by_plain_ones(text, expected):
    assert plain(text, io.TextIOWrapper(io.BytesIO(), encoding="ascii")) == expected
