"""Processes to which something happens in the middle of their work."""

import subprocess
import sys

import pytest


def run_campaign(*arguments, seconds):
    """Run some cases of `campaign`; each of its processes ends by itself, at last."""
    command = [sys.executable, "-m", "tests.distributed.campaign"]
    done = subprocess.run(
        [*command, *map(str, arguments)],
        capture_output=True,
        text=True,
        timeout=seconds,
        check=False,
    )
    assert done.returncode == 0, done.stdout + done.stderr
    return done.stdout


def test_workers_that_are_killed_or_unplugged_are_named_and_leave_nothing():
    told = run_campaign(0, 2, 4, seconds=200)
    assert " is killed " in told
    assert " is unplugged " in told


@pytest.mark.stress
def test_an_error_names_each_fault_of_a_process_and_no_process_or_file_is_left():
    told = run_campaign(0, 30, 1, 6, seconds=280)
    assert told.count(" ok\n") == 30
