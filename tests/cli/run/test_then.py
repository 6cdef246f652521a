import json
import os
import signal
import subprocess
import sys

import pytest

from gradviz.cli.run.then import Words, opened
from tests.warm_python import run_gradviz

BACKWARD = """
import numpy as np
from gradviz.engine import Edge, Engine, Node

class Double(Node):
    def apply(self, grad):
        return (2.0 * grad,)

Engine().execute([Edge(Double([Edge(None)]))], [np.ones(2)])
"""


@pytest.fixture
def run(tmp_path):
    """Run ``gradviz run ...`` in the folder of the test."""
    return lambda *words: run_gradviz("run", *words, cwd=tmp_path)


def test_commands_follow_on_the_trace_and_hide_no_exit_code(run, tmp_path) -> None:
    (tmp_path / "newer.gvt").write_text("no trace")
    os.utime(tmp_path / "newer.gvt", (2**31, 2**31))

    done = run(
        *("--then", "show order --json", "--then", "render graph -qo x.svg"),
        *("-qo", "x.gvt", "-c", f"{BACKWARD}print('ran', flush=True); exit(3)"),
    )

    assert done.exit_code == 3, done.errors
    ran, order = done.output.splitlines()
    assert ran == "ran"
    assert json.loads(order)["order"][0]["name"] == "Double"
    assert (tmp_path / "x.svg").read_text().startswith("<")


def test_they_follow_on_what_is_left_of_a_program_that_dies(run) -> None:
    done = run(
        "--then", "show summary", "-q", "-c", "import os; os.kill(os.getpid(), 9)"
    )

    assert done.exit_code == 128 + signal.SIGKILL, done.errors
    assert "passes      0" in done.output
    assert "broken off" in done.errors


def test_without_a_new_trace_no_command_runs(run, tmp_path) -> None:
    (tmp_path / "x.gvt").write_text("old")

    done = run("--then", "check", "-fo", "x.gvt", "missing.py")

    assert (done.exit_code, done.output) == (2, "")
    assert done.errors.startswith("gradviz: cannot read script missing.py")
    assert len(done.errors.splitlines()) == 1


def test_a_ring_that_is_not_written_is_told_to_be_none(run) -> None:
    done = run(
        "-q", "--ring", "1MB", "--dump-on", "signal", "--then", "check", "-c", ""
    )

    assert (done.exit_code, done.output) == (0, "")
    assert "no command follows" in done.errors


def test_a_command_that_fails_is_the_exit_code_of_a_program_that_a_signal_ends_well(
    tmp_path,
) -> None:
    program = (
        "import signal, sys\n"
        f"{BACKWARD}\n"
        "signal.signal(signal.SIGTERM, lambda *_: sys.exit(0))\n"
        "print('ready', flush=True); signal.pause()\n"
    )
    started = subprocess.Popen(
        [
            *(sys.executable, "-m", "gradviz", "run", "-q"),
            *("--then", "explain Nothing", "--then", "check", "-c", program),
        ],
        cwd=tmp_path,
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    )
    assert started.stdout is not None
    assert started.stdout.readline() == "ready\n"

    started.send_signal(signal.SIGTERM)
    out, err = started.communicate(timeout=60)

    assert started.returncode == 2, err
    assert "'explain Nothing' ended with exit code 2" in err
    assert "nothing is wrong" in out


@pytest.mark.parametrize(
    ("command", "told"),
    [
        ("show ordr", "Did you mean 'order'?"),
        ("show", "a command is missing"),
        ("explain", "Missing argument"),
        ("render graph --opne", "--opne"),
        ("show 'order", "No closing quotation"),
        ("", "a command is missing"),
    ],
)
def test_a_command_that_is_wrong_is_told_before_the_program_begins(
    command, told, call, tmp_path
) -> None:
    (tmp_path / "x.py").write_text("open('ran', 'w')")

    result = call("run", "--then", command, "x.py")

    assert (result.exit_code, result.stdout) == (2, "")
    assert told in result.stderr
    assert len(result.stderr.splitlines()) == 1
    assert not (tmp_path / "ran").exists()


def test_a_trace_that_exists_is_refused_before_the_program_begins(call, trace_path):
    result = call("run", "--then", "check", "-o", trace_path, "x.py")

    assert result.exit_code == 1
    assert "exists already" in result.stderr


def test_open_is_for_what_draws() -> None:
    commands = (("check",), ("render", "graph"))

    assert opened(commands) == (("check",), ("render", "graph", "--open"))


@pytest.mark.parametrize("then", [[], ["--then", "check"]])
def test_open_without_a_picture_is_wrong_usage(then, call) -> None:
    result = call("run", "--open", *then, "x.py")

    assert result.exit_code == 2
    assert "add --then 'render graph'" in result.stderr


def test_a_variable_may_hold_several_commands() -> None:
    words = Words()
    parts = words.split_envvar_value("show order; gradviz check")

    assert [words(part) for part in parts] == [("show", "order"), ("check",)]
