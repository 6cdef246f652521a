import pytest
from click.testing import CliRunner

from gradviz.testing import __main__ as command
from gradviz.testing.scenarios import SCENARIOS
from gradviz.testing.scheduler import pause


def crossed_locks(scheduler):
    locks = scheduler.lock(), scheduler.lock()

    def take(one, other):
        with one:
            pause()
            with other:
                pass

    scheduler.run(a=lambda: take(*locks), b=lambda: take(*reversed(locks)))


@pytest.fixture
def run(monkeypatch):
    """Run the command; one of its scenarios is wrong."""
    monkeypatch.setitem(SCENARIOS, "there_and_back", crossed_locks)
    return lambda *args: CliRunner().invoke(command.main, args)


def test_without_arguments_it_lists_the_scenarios(run):
    result = run()

    assert result.exit_code == 0
    assert result.output.split() == list(SCENARIOS)


def test_a_scenario_alone_is_explored(run):
    result = run("nested", "-n", "5")

    assert (result.exit_code, result.output) == (
        0,
        "nested: 5 schedules, nothing wrong\n",
    )


def test_a_failure_says_how_to_repeat_it(run):
    result = run("there_and_back", "-n", "100")

    assert result.exit_code == 1
    assert "repeat: python -m gradviz.testing crossed_locks" in result.output


def test_a_repeated_failure_is_shown_with_a_simpler_schedule(run):
    *_, spec = run("there_and_back", "-n", "100").output.split()

    result = run("there_and_back", spec)

    assert result.exit_code == 1
    assert "Deadlock: every thread waits:" in result.output
    assert "simpler: at:" in result.output


def test_a_schedule_that_goes_well_says_so(run):
    result = run("nested", "at:")

    assert result.exit_code == 0
    assert "nothing wrong after" in result.output


@pytest.mark.parametrize("args", [["nowhere"], ["nested", "fifo:1"]])
def test_a_mistake_is_an_error_of_usage(run, args):
    assert run(*args).exit_code == 2
