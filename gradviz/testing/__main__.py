"""``python -m gradviz.testing MODULE:FUNCTION [POLICY]``: run schedules by hand.

With a scenario alone it explores that one; with a policy it repeats one schedule, and
if that fails looks for a simpler one that does.
"""

import importlib
import operator

import click

from gradviz.errors import UserError
from gradviz.testing.exploration import (
    Scenario,
    ScheduleFailed,
    explore,
    mixed,
    run_once,
    simplify,
)
from gradviz.testing.policy import SPECS, parse_policy


@click.command(epilog=f"POLICY is {SPECS}.")
@click.argument("scenario", metavar="MODULE:FUNCTION")
@click.argument("policy", required=False)
@click.option("-n", "num_runs", default=1000, show_default=True, help="Schedules.")
@click.option("--seed", default=0, show_default=True, help="Seed of the first one.")
def main(scenario: str, policy: str | None, num_runs: int, seed: int) -> None:
    """Run a scenario under many schedules, or again under the one of POLICY.

    A scenario is a function of a `gradviz.testing.Scheduler`.
    """
    found = _find(scenario)
    if policy is None:
        _explore(scenario, found, num_runs, seed)
    else:
        _repeat(scenario, found, policy)


def _find(name: str) -> Scenario:
    module, _, function = name.partition(":")
    try:
        scenario: Scenario = operator.attrgetter(function)(
            importlib.import_module(module)
        )
    except (ImportError, AttributeError, ValueError) as error:
        raise click.UsageError(
            f"{name!r} is no scenario: {error}; expected MODULE:FUNCTION, of a module "
            "that can be imported from here"
        ) from None
    return scenario


def _explore(name: str, scenario: Scenario, num_runs: int, seed: int) -> None:
    try:
        explore(scenario, mixed(scenario, num_runs, seed))
    except ScheduleFailed as failed:
        raise click.ClickException(str(failed)) from None
    click.echo(f"{name}: {num_runs} schedules, nothing wrong")


def _repeat(name: str, scenario: Scenario, spec: str) -> None:
    try:
        run = run_once(scenario, parse_policy(spec))
    except UserError as error:
        raise click.UsageError(str(error)) from None
    if run.failure is None:
        click.echo(f"{name}: nothing wrong after {run.num_switches} switches")
        return
    simpler = simplify(scenario, run)
    raise click.ClickException(
        f"{type(run.failure).__name__}: {run.failure}\nsimpler: {simpler.policy.spec}"
    )


if __name__ == "__main__":
    main(prog_name="python -m gradviz.testing")
