import contextlib
import io
import os
import pty
import subprocess
import sys
from pathlib import Path

import pytest

from gradviz.cli.console.paging import paged
from gradviz.cli.main import gradviz


class Terminal(io.StringIO):
    encoding = "utf-8"
    errors = "strict"

    def isatty(self) -> bool:
        return True

    def fileno(self) -> int:
        return 1


@pytest.fixture
def terminal(monkeypatch, tmp_path):
    """A terminal of five lines in place of stdout; the pager keeps what it is given."""
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("LINES", "5")
    monkeypatch.setenv("COLUMNS", "80")
    monkeypatch.delenv("PAGER", raising=False)
    monkeypatch.setenv("GRADVIZ_PAGER", "sh -c 'cat > paged'")
    return Terminal()


def in_pager() -> str | None:
    return Path("paged").read_text() if Path("paged").exists() else None


def write(terminal: Terminal, num_lines: int, text: str = "line") -> None:
    with contextlib.redirect_stdout(terminal), paged(wanted=True):
        for _ in range(num_lines):
            sys.stdout.write(f"{text}\n")
        if text == "error":
            raise KeyError


def test_output_that_fits_on_the_terminal_stays_there(terminal) -> None:
    write(terminal, 4)

    assert (terminal.getvalue(), in_pager()) == ("line\n" * 4, None)


def test_longer_output_goes_through_the_pager_as_a_whole(terminal) -> None:
    write(terminal, 1_000)

    assert (terminal.getvalue(), in_pager()) == ("", "line\n" * 1_000)


def test_less_keeps_colors_and_other_pagers_get_none(
    terminal, monkeypatch, tmp_path
) -> None:
    write(terminal, 9, "\x1b[1mbold\x1b[0m")
    assert in_pager() == "bold\n" * 9

    less = tmp_path / "less"
    less.write_text('#!/bin/sh\necho "$@" $LESS > paged\ncat >> paged\n')
    less.chmod(0o755)
    monkeypatch.delenv("GRADVIZ_PAGER")
    monkeypatch.delenv("LESS", raising=False)
    monkeypatch.setenv("PATH", f"{tmp_path}{os.pathsep}{os.environ['PATH']}")
    write(terminal, 9, "\x1b[1mbold\x1b[0m")

    assert in_pager() == "-R FRX\n" + "\x1b[1mbold\x1b[0m\n" * 9


@pytest.mark.parametrize("name", ["GRADVIZ_PAGER", "PAGER"])
@pytest.mark.parametrize("pager", ["", "cat", "missing-pager", "'"])
def test_without_a_pager_all_is_on_the_terminal(
    name, pager, terminal, monkeypatch
) -> None:
    monkeypatch.delenv("GRADVIZ_PAGER")
    monkeypatch.setenv(name, pager)

    write(terminal, 99)

    assert terminal.getvalue() == "line\n" * 99


def test_gradvizs_own_pager_wins(terminal, monkeypatch) -> None:
    monkeypatch.setenv("PAGER", "false")

    write(terminal, 9)

    assert in_pager() == "line\n" * 9


def test_a_reader_who_leaves_early_has_seen_enough(terminal, monkeypatch) -> None:
    monkeypatch.setenv("GRADVIZ_PAGER", "true")

    write(terminal, 20_000)

    assert terminal.getvalue() == ""


def test_output_written_before_an_error_is_shown(terminal) -> None:
    with pytest.raises(KeyError):
        write(terminal, 1, "error")

    assert terminal.getvalue() == "error\n"


def run(stdout: io.StringIO, *words: object) -> None:
    with contextlib.redirect_stdout(stdout), pytest.raises(SystemExit) as ended:
        gradviz.main(list(map(str, words)))
    assert not ended.value.code


@pytest.mark.parametrize(
    "command",
    [["show", "order", "--pass", "all"], ["show", "summary"], ["doctor"]],
    ids="-".join,
)
def test_long_tables_go_through_the_pager(command, terminal, trace_path) -> None:
    run(terminal, *command)

    assert terminal.getvalue() == ""
    assert len((in_pager() or "").splitlines()) > 5


@pytest.mark.parametrize("option", ["--json", "--no-pager"])
def test_json_does_not_nor_what_nobody_wants_to_page(
    option, terminal, trace_path
) -> None:
    run(terminal, "show", "order", "--pass", "all", option)

    assert terminal.getvalue()
    assert in_pager() is None


def test_output_to_a_file_is_not_paged(terminal, trace_path) -> None:
    run(io.StringIO(), "show", "order", "--pass", "all")

    assert in_pager() is None


def test_a_real_terminal_is_recognized(trace_path, tmp_path) -> None:
    keyboard, screen = pty.openpty()
    done = subprocess.run(
        [sys.executable, "-m", "gradviz", "show", "order", trace_path],
        stdout=screen,
        stderr=subprocess.PIPE,
        env={
            **os.environ,
            "LINES": "3",
            "GRADVIZ_PAGER": f"sh -c 'cat > {tmp_path}/paged'",
        },
        timeout=60,
        check=True,
    )
    os.close(screen)
    os.close(keyboard)

    assert done.stderr == b""
    assert "Double" in (tmp_path / "paged").read_text()
