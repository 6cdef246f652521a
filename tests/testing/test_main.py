import subprocess
import sys

import pytest
from click.testing import CliRunner

from gradviz.testing import pause
from gradviz.testing.__main__ import main


def crossed_locks(scheduler):
    locks = scheduler.lock(), scheduler.lock()

    def take(one, other):
        with one:
            pause()
            with other:
                pass

    scheduler.run(a=lambda: take(*locks), b=lambda: take(*reversed(locks)))


def harmless(scheduler):
    scheduler.run(a=pause, b=pause)


CROSSED_LOCKS = f"{__name__}:crossed_locks"
HARMLESS = f"{__name__}:harmless"


def run(*args):
    return CliRunner().invoke(main, args)


def test_a_scenario_alone_is_explored():
    result = run(HARMLESS, "-n", "5")

    assert result.exit_code == 0
    assert result.output == f"{HARMLESS}: 5 schedules, nothing wrong\n"


def test_the_line_that_a_failure_names_fails_in_the_same_way():
    result = run(CROSSED_LOCKS, "-n", "100")
    (line,) = (line for line in result.output.splitlines() if "repeat: " in line)
    _, python, *command = line.split()

    again = subprocess.run(
        [sys.executable, *command], capture_output=True, text=True, check=False
    )

    assert (result.exit_code, python, again.returncode) == (1, "python", 1)
    assert "Deadlock: every thread waits:" in again.stderr


def test_a_repeated_failure_is_shown_with_a_simpler_schedule():
    *_, spec = run(CROSSED_LOCKS, "-n", "100").output.split()

    result = run(CROSSED_LOCKS, spec)

    assert result.exit_code == 1
    assert "Deadlock: every thread waits:" in result.output
    assert "simpler: at:" in result.output


def test_a_schedule_that_goes_well_says_so():
    result = run(HARMLESS, "at:")

    assert result.exit_code == 0
    assert "nothing wrong after" in result.output


@pytest.mark.parametrize(
    "args",
    [
        [],
        ["nowhere:at_all"],
        ["nowhere"],
        [":harmless"],
        [f"{__name__}:nothing"],
        [HARMLESS, "fifo:1"],
    ],
)
def test_a_mistake_is_an_error_of_usage(args):
    assert run(*args).exit_code == 2
