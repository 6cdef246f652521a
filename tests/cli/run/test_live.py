"""``gradviz run --live``: the trace in a browser while the program runs."""

import os
import pty
import re
import signal
import subprocess
import sys

import pytest

from tests.cli.commands.test_view import Browser

#: Runs a pass, waits to be told to go on, runs another.
PROGRAM = """
import sys
import gradviz as gv
for _ in range(2):
    gv.ones(1, requires_grad=True).sum().backward()
    sys.stdin.readline()
sys.exit(3)
"""


@pytest.fixture
def start(tmp_path):
    """Starts it; gives the process, what it says, and its address."""
    processes = []

    def begin(*options: str, stderr: object = subprocess.PIPE):
        ours = [sys.executable, "-m", "gradviz", "run", "--live", "-o", "x.gvt"]
        process = subprocess.Popen(
            [*ours, *options, "-c", PROGRAM],
            cwd=tmp_path,
            env={**os.environ, "DISPLAY": "", "WAYLAND_DISPLAY": ""},
            stdin=subprocess.PIPE,
            stderr=stderr,
            text=True,
        )
        processes.append(process)
        return process

    yield begin
    for process in processes:
        process.kill()
        process.communicate()


def address_in(lines) -> str:
    return next(
        found[0] for one in lines if (found := re.search(r"http://127\S+", one))
    )


def test_passes_are_shown_as_they_end_and_the_exit_code_is_the_programs(
    start, tmp_path
):
    process = start()
    browser = Browser(address_in(process.stderr))

    browser.wait_for("/trace/x.gvt", b"pass 0")
    process.stdin.write("\n")
    process.stdin.flush()
    assert b"the recording goes on" in browser.wait_for("/trace/x.gvt", b"pass 1")
    process.stdin.write("\n")
    process.stdin.flush()
    assert process.wait(30) == 3
    assert (tmp_path / "x.gvt").exists()


def test_a_trace_that_is_replaced_is_not_shown(start, trace_path, tmp_path):
    trace_path.rename(tmp_path / "x.gvt")
    process = start("-f")
    browser = Browser(address_in(process.stderr))

    seen = browser.fetch("/trace/x.gvt")
    assert b"all 2 passes" not in seen  # as that of the old one has
    assert b"all 1 pass" in browser.wait_for("/trace/x.gvt", b"pass 0")


def test_an_existing_trace_is_refused_before_the_program_begins(start, tmp_path):
    (tmp_path / "x.gvt").touch()

    process = start()
    assert process.wait(30) == 1
    assert process.stderr.read() == (
        "gradviz: x.gvt exists already; replace it with -f\n"
    )


def test_on_a_terminal_it_is_shown_until_ctrl_c(start):
    ours, theirs = pty.openpty()
    process = start(stderr=theirs)
    os.close(theirs)
    with os.fdopen(ours) as lines:
        browser = Browser(address_in(lines))
        process.stdin.write("\n\n")
        process.stdin.flush()
        next(one for one in lines if "shown until Ctrl-C" in one)
        assert b"pass 1" in browser.fetch("/trace/x.gvt")
        process.send_signal(signal.SIGINT)
        assert process.wait(30) == 3
