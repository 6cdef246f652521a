"""``python -m gradviz.testing [SCENARIO [POLICY]]``: run schedules by hand.

Without arguments it lists the scenarios; with a scenario it explores that one; with a
policy it repeats one schedule, and if that fails looks for a simpler one that does.
"""

import click

from gradviz.errors import UserError
from gradviz.testing.exploration import (
    ScheduleFailed,
    explore,
    mixed,
    run_once,
    simplify,
)
from gradviz.testing.policy import SPECS, parse_policy
from gradviz.testing.scenarios import SCENARIOS


@click.command(epilog=f"POLICY is {SPECS}.")
@click.argument("scenario", required=False, type=click.Choice(sorted(SCENARIOS)))
@click.argument("policy", required=False)
@click.option("-n", "num_runs", default=1000, show_default=True, help="Schedules.")
@click.option("--seed", default=0, show_default=True, help="Seed of the first one.")
def main(scenario: str | None, policy: str | None, num_runs: int, seed: int) -> None:
    """Run SCENARIO under many schedules, or again under the one of POLICY."""
    if scenario is None:
        for name in SCENARIOS:
            click.echo(name)
    elif policy is None:
        _explore(scenario, num_runs, seed)
    else:
        _repeat(scenario, policy)


def _explore(name: str, num_runs: int, seed: int) -> None:
    scenario = SCENARIOS[name]
    try:
        explore(scenario, mixed(scenario, num_runs, seed))
    except ScheduleFailed as failed:
        raise click.ClickException(str(failed)) from None
    click.echo(f"{name}: {num_runs} schedules, nothing wrong")


def _repeat(name: str, spec: str) -> None:
    scenario = SCENARIOS[name]
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
